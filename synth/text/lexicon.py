"""The operator's lexicon: how words are to be pronounced that a voice gets wrong, read from a file.

Owns the file's format and where its words occur in a segment; it says so with marks (synth/segment.py), as the client's
own markup does, which goes first. Watches no file: whoever wants changes noticed compares `signature`s and loads again.

    [[word]]
    text = "voxgate"          # one word or several
    say = "vox gate"          # respelled; or: ipa = "ˈvɑksɡeɪt"
    language = "en"           # optional: for voices of this language, "en-US" or all of "en"
    voice = "heart"           # optional: for this voice alone
    match_case = true         # optional: "US" is not "us"; default false
"""

import os
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ..segment import Mark, MarkKind, Segment
from .blank import is_speakable
from .limits import VALUE_CODE_POINTS

MOST_WORDS = 10_000
_ALNUM = re.compile(r"[^\W_]+")


class LexiconError(ValueError):
    """The file cannot be used; the message names it, the word and what is wrong."""


class Word(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=64)]
    say: Annotated[str, Meta(min_length=1, max_length=VALUE_CODE_POINTS)] | None = None
    ipa: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    language: str | None = None
    voice: str | None = None
    match_case: bool = False

    @property
    def reading(self) -> tuple[MarkKind, str]:
        return (MarkKind.PHONEMES, self.ipa) if self.ipa else (MarkKind.ALIAS, self.say or "")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    word: Annotated[tuple[Word, ...], Meta(max_length=MOST_WORDS)] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    word: Word
    lead: int  # code points before its first letter or digit, by which it is found


class Lexicon:
    """Immutable; `Lexicon()` has no words and changes nothing."""

    def __init__(self, words: tuple[Word, ...] = ()) -> None:
        self._entries: dict[str, list[_Entry]] = {}
        for word in words:
            found = _ALNUM.search(word.text)
            assert found
            self._entries.setdefault(found.group().lower(), []).append(_Entry(word, found.start()))
        for entries in self._entries.values():  # the longest first, and what is said of one voice before the rest
            entries.sort(key=lambda each: (-len(each.word.text), each.word.voice is None, each.word.language is None))

    @staticmethod
    def load(file: Path) -> "Lexicon":
        """Raises `LexiconError`."""
        try:
            words = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _File).word
        except OSError as problem:
            raise LexiconError(f"{file}: {problem.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as problem:
            raise LexiconError(f"{file}: {problem}") from None
        seen: set[tuple[object, ...]] = set()
        for word in words:
            if not _ALNUM.search(word.text):
                raise LexiconError(f"{file}: the word {word.text!r} has no letter or digit to find it by")
            if (word.say is None) == (word.ipa is None):
                raise LexiconError(f"{file}: the word {word.text!r} needs one of say and ipa")
            if not is_speakable(word.say or word.ipa or ""):
                raise LexiconError(f"{file}: what is said for {word.text!r} has nothing to speak")
            name = (word.text if word.match_case else word.text.lower(), word.match_case, word.language, word.voice)
            if name in seen:
                raise LexiconError(f"{file}: the word {word.text!r} is there twice")
            seen.add(name)
        return Lexicon(words)

    def apply(self, segment: Segment, voice: str, language: str) -> Segment:
        """`segment` with a mark at every word of the lexicon that the client has not marked; linear in its text."""
        if not self._entries:
            return segment
        found: list[Mark] = []
        at = 0
        for run in _ALNUM.finditer(segment.text):
            if run.start() < at:
                continue
            if mark := self._find(segment.text, run, voice, language):
                at = mark.end
                if all(mark.end <= other.start or other.end <= mark.start for other in segment.marks):
                    found.append(mark)
        if not found:
            return segment
        return replace(segment, marks=tuple(sorted([*segment.marks, *found], key=lambda mark: mark.start)))

    def _find(self, text: str, run: re.Match[str], voice: str, language: str) -> Mark | None:
        for entry in self._entries.get(run.group().lower(), ()):
            word = entry.word
            start = run.start() - entry.lead
            end = start + len(word.text)
            if start < 0 or text[start - 1 : start].isalnum() or text[end : end + 1].isalnum():
                continue
            written = text[start:end]
            if written != word.text and (word.match_case or written.lower() != word.text.lower()):
                continue
            if word.voice in (None, voice) and (word.language is None or _speaks(language, word.language)):
                return Mark(start, end, *word.reading)
        return None


def signature(file: Path) -> tuple[int, int] | None:
    """Changes when the file does: modification time in ns, size; None when it cannot be read."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _speaks(language: str, wanted: str) -> bool:
    language, wanted = language.lower(), wanted.lower()
    return language == wanted or language.startswith(wanted + "-")

"""The phrase pool: sentences a server says over and over, spoken once at its start and never computed again.

Owns the file `phrases.toml` and the segments that contexts will cut a phrase into. Knows no engine and keeps no audio.

    [[phrase]]
    text = "One moment, please."
    voice = "heart"             # optional, like the others: the first voice
    speed = 1.0
    seed = 0
"""

import tomllib
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ..segment import Segment
from ..text.blank import is_speakable
from ..text.segmenter import Segmenter

MOST_PHRASES = 1000

# What may stand around a phrase. Contexts that flush cut the sentence after it like a first one.
BEFORE = "", "That is what was said. "
AFTER = " And this is what follows."


class PhrasesError(ValueError):
    """The file cannot be used; the message names it, the phrase and what is wrong."""


class Phrase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=1000)]
    voice: str | None = None
    speed: Annotated[float, Meta(ge=0.5, le=2.0)] = 1.0
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    phrase: Annotated[tuple[Phrase, ...], Meta(max_length=MOST_PHRASES)] = ()


def load(file: Path) -> tuple[Phrase, ...]:
    """Raises `PhrasesError`."""
    try:
        phrases = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _File).phrase
    except OSError as problem:
        raise PhrasesError(f"{file}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as problem:
        raise PhrasesError(f"{file}: {problem}") from None
    for phrase in phrases:
        if not is_speakable(phrase.text):
            raise PhrasesError(f"{file}: the phrase {phrase.text!r} has nothing to speak")
    return phrases


def segments(text: str, scripts: tuple[str, ...], speed: float = 1.0) -> list[Segment]:
    """Every segment a context gives for `text`: as all it says, or as a sentence among others, ended or flushed.

    The pauses before and after a sentence are part of its samples, so it is another one at the start, at the end and
    in the middle: four for most phrases.
    """
    found: dict[tuple[object, ...], Segment] = {}
    for before in BEFORE:
        for flushed in (False, True) if before else (False,):
            for ending in ("end", "flush", AFTER):
                for segment in _segments(before, flushed, text, ending, Segmenter(scripts, speed)):
                    words = " ".join(segment.text.split())
                    found.setdefault((words, segment.before, segment.after, segment.lead_in), segment)
    return list(found.values())


def _segments(before: str, flushed: bool, text: str, ending: str, segmenter: Segmenter) -> list[Segment]:
    """Those of `text` between what stands around it; none if they run into one another."""
    cut = segmenter.push(before)
    if flushed:
        cut += segmenter.flush()
    cut += segmenter.push(text)
    match ending:
        case "end":
            cut += segmenter.end()
        case "flush":
            cut += segmenter.flush()
        case _:
            cut += segmenter.push(ending) + segmenter.end()
    begin, end = len(before.rstrip()), len(before) + len(text)
    inside = [segment for segment in cut if segment.start < end and segment.end > len(before)]
    if any(segment.start < begin or segment.end > end for segment in inside):
        return []
    return inside

"""From a segment's text to the tokens ChatTTS is given, control tags and all.

The model was trained on Han characters, Latin letters and four marks; whatever else is written is turned into those or
left out, and a text without any of them is nothing to speak. Owns the tokenizer. Knows no tensors.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tokenizers import Tokenizer

from ..segment import Mark, Urls
from ..text.normalize.normalizer import normalize
from . import layout
from .errors import WeightsError

TAGS = frozenset({"[uv_break]", "[v_break]", "[lbreak]", "[laugh]"})
SPEEDS = 0.25, 4.0
REVISION = "1"  # of what this file makes of a text

_TAG = re.compile("|".join(re.escape(tag) for tag in sorted(TAGS)))
_HAN = re.compile(r"[\u3400-\u9fff]")
_MARKS = str.maketrans(
    {
        **dict.fromkeys("!?;…", "."),
        **dict.fromkeys(':()[]{}—–"“”', ","),
        **dict.fromkeys("！？；", "。"),
        **dict.fromkeys("：（）【】《》「」『』", "，"),
        "-": " ",
        "\n": " ",
        "\t": " ",
    }
)
_UNSPEAKABLE = re.compile(r"[^\u4e00-\u9fffA-Za-z，。、,. ]")
_RUN = re.compile(r"\s*([，。、,.])[，。、,.\s]*")


def speakable(text: str) -> str:
    """`text` in the characters the model knows: other marks become the nearest of these, other letters go."""
    text = unicodedata.normalize("NFC", text).translate(_MARKS)
    plain = "".join(_plain(character) for character in text)
    plain = _UNSPEAKABLE.sub("", plain)
    return " ".join(_RUN.sub(r"\1 ", plain).split()).lstrip("，。、,. ")


def written_out(text: str, marks: Sequence[Mark] = (), urls: Urls = "short", *, tags: bool = False) -> str:
    """What is spoken of `text`; with `tags` its control tags stay where they are, without they go. Other brackets are
    brackets: a token that is none of `TAGS` cannot be written in a text.

    Empty when there is nothing to speak.
    """
    pieces, at, language = [], 0, "zh" if _HAN.search(text) else "en-US"
    for tag in [*_TAG.finditer(text), None]:
        end = tag.start() if tag else len(text)
        inside = [mark for mark in marks if at <= mark.start and mark.end <= end]
        shifted = [replace(mark, start=mark.start - at, end=mark.end - at) for mark in inside]
        pieces.append(speakable(normalize(text[at:end], language, shifted, urls).text))
        if tag:
            pieces.append(tag[0] if tags else "")
            at = tag.end()
    if not any(any(character.isalpha() for character in piece) for piece in pieces if piece not in TAGS):
        return ""
    return " ".join(piece for piece in pieces if piece)


@dataclass(frozen=True, slots=True)
class Controls:
    """Ids of the tokens that are no text."""

    start: int
    end: int
    speaker: int
    no_speaker: int
    speeds: tuple[int, ...]  # slowest first


class Prompter:
    def __init__(self, tokenizer: Tokenizer, vocabulary: int) -> None:
        """Raises `WeightsError` for a tokenizer that is not ChatTTS'."""
        found = tokenizer.get_vocab_size(with_added_tokens=True)
        problems = [] if found == vocabulary else [f"{layout.TOKENIZER} has {found} tokens, not {vocabulary}"]
        self._tokenizer = tokenizer

        def resolve(token: str) -> int:
            number = tokenizer.token_to_id(token)
            if number is None:
                problems.append(f"{layout.TOKENIZER} has no token {token}")
                return -1
            return number

        speeds = tuple(resolve(f"[speed_{n}]") for n in range(10))
        self.controls = Controls(
            resolve("[Stts]"), resolve("[Ptts]"), resolve("[spk_emb]"), resolve("[empty_spk]"), speeds
        )
        for tag in sorted(TAGS):
            resolve(tag)
        if problems:
            raise WeightsError(problems)

    @classmethod
    def read(cls, folder: Path, vocabulary: int) -> "Prompter":
        """From the operator's directory. Raises `WeightsError`."""
        path = folder / layout.TOKENIZER
        if not path.is_file():
            raise WeightsError([f"{layout.TOKENIZER} is missing"])
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise WeightsError([f"{layout.TOKENIZER} cannot be read: {error}"]) from error
        return cls(tokenizer, vocabulary)

    def ids(self, text: str, *, speaker: bool, speed: float) -> tuple[int, ...]:
        """The tokens of `text`, as `written_out` gives it; with `speaker` there is a place for its vector."""
        controls = self.controls
        words = self._tokenizer.encode(text, add_special_tokens=False).ids
        who = controls.speaker if speaker else controls.no_speaker
        return (controls.start, who, controls.speeds[_speed_level(speed)], *words, controls.end)


def _speed_level(speed: float) -> int:
    """0 to 9; 5 is the normal speed. A level is some tenth of it, and no more can be asked of the model."""
    if not SPEEDS[0] <= speed <= SPEEDS[1]:
        raise ValueError(f"speed {speed} is outside {SPEEDS[0]}-{SPEEDS[1]}")
    return min(max(round(5 + 10 * (speed - 1)), 0), 9)


def _plain(character: str) -> str:
    """Without its accents; what has none stays."""
    if character.isascii() or _HAN.match(character):
        return character
    decomposed = unicodedata.normalize("NFD", character)
    return "".join(part for part in decomposed if not unicodedata.combining(part))

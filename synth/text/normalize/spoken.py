"""What normalization gives: the text to speak, and for every place in it the place in the source it stands for.

Owns the mapping and the spaces between what was copied and what was written out. Knows no language.
"""

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pronunciation:
    """`text[start:end]` of a `Spoken` is to sound like `ipa` in engines that can be told so."""

    start: int
    end: int
    ipa: str


@dataclass(frozen=True, slots=True)
class _Piece:
    at: int  # where it begins in the spoken text
    start: int  # what it stands for in the source
    end: int
    copied: bool  # code point for code point


@dataclass(frozen=True, slots=True)
class Spoken:
    """`text` is what an engine is given."""

    text: str
    pieces: tuple[_Piece, ...] = ()
    pronounced: tuple[Pronunciation, ...] = ()

    def source(self, at: int) -> tuple[int, int]:
        """The span of the source, in code points, that `text[at]` stands for; it never runs backwards."""
        if not self.pieces:
            return at, at + 1
        piece = self.pieces[max(bisect_right(self.pieces, at, key=lambda each: each.at) - 1, 0)]
        if not piece.copied:
            return piece.start, piece.end
        start = min(piece.start + at - piece.at, piece.end)
        return start, min(start + 1, piece.end)


class Writer:
    """Collects a `Spoken` from left to right."""

    def __init__(self, source: str, origin: list[int] | None = None) -> None:
        """`origin`: for every code point of `source`, and its end, the offset in the text the client sent."""
        self._source = source
        self._origin = origin
        self._out: list[str] = []
        self._pieces: list[_Piece] = []
        self._pronounced: list[Pronunciation] = []
        self._size = 0
        self._last = " "
        self._said = False  # the last piece was written out

    def copy(self, start: int, end: int) -> None:
        """Speak the source as it stands."""
        if start >= end:
            return
        text = self._source[start:end]
        if self._said and text[0].isalnum() and (self._last.isalnum() or self._last in ".,;:!?…)%"):
            place = start if self._origin is None else self._origin[start]
            self._add(" ", place, place, False)
        if self._origin is None:
            self._add(text, start, end, True)
        else:
            for at in range(start, end):  # folded text is short: it is only kept where it is not ASCII
                self._add(self._source[at], self._origin[at], self._origin[at + 1], False)
        self._said = False

    def say(self, start: int, end: int, words: str, ipa: str = "") -> None:
        """Speak `words` for `source[start:end]`."""
        begin, stop = (start, end) if self._origin is None else (self._origin[start], self._origin[end])
        words = words.strip() or " " * bool(words)
        if not words:
            return
        if words[0].isalnum() and (self._last.isalnum() or self._last in ".,;:!?…)%"):
            words = " " + words
        at = self._size + (words[0] == " ")
        self._add(words, begin, stop, False)
        if ipa:
            self._pronounced.append(Pronunciation(at, self._size, ipa))
        self._said = True

    def pronounce(self, at: int, ipa: str) -> None:
        """What was spoken from `at` on sounds like `ipa`."""
        text = "".join(self._out)
        at += len(text[at:]) - len(text[at:].lstrip())
        if at < self._size:
            self._pronounced.append(Pronunciation(at, self._size, ipa))

    @property
    def size(self) -> int:
        return self._size

    def finish(self) -> Spoken:
        return Spoken("".join(self._out), tuple(self._pieces), tuple(self._pronounced))

    def _add(self, text: str, start: int, end: int, copied: bool) -> None:
        self._pieces.append(_Piece(self._size, start, end, copied))
        self._out.append(text)
        self._size += len(text)
        self._last = text[-1]

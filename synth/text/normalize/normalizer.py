"""The front of every engine: a segment's text becomes what is spoken, with a way back to what the client sent.

Owns what all languages share: compatibility forms, marks (synth/segment.py) and the choice of a language's reader. A
language without a reader of its own has its digits read one by one where their names are known (digits.py).
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from ...segment import Mark, MarkKind
from . import codes, digits, english, numbers
from .addresses import Urls
from .spoken import Spoken, Writer

REVISION = 1  # of everything in this package that changes what is spoken; part of every cache key

_UNFOLDED = frozenset("½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒²³…℃℉№™©®")


def normalize(text: str, language: str, marks: Sequence[Mark] = (), urls: Urls = "short") -> Spoken:
    """`language` is a BCP 47 tag. Takes any text and time linear in its length; never raises."""
    folded, origin = (text, None) if text.isascii() else _fold(text)
    writer = Writer(folded, origin)
    read = _reader(language)
    at = 0
    for mark in marks:
        start, stop = _place(origin, mark.start), _place(origin, mark.end)
        if not at <= start < stop <= len(folded):
            continue
        read(folded, writer, urls, at, start)
        _mark(mark, folded, start, stop, writer, language, urls)
        at = stop
    read(folded, writer, urls, at, len(folded))
    return writer.finish()


def _reader(language: str):
    if language.split("-")[0].lower() == "en":
        return english.read
    return digits.reader(language)


def _mark(mark: Mark, text: str, start: int, end: int, writer: Writer, language: str, urls: Urls) -> None:
    match mark.kind:
        case MarkKind.ALIAS:
            writer.say(start, end, normalize(mark.value, language, urls=urls).text)
        case MarkKind.PHONEMES:
            at = writer.size
            _reader(language)(text, writer, urls, start, end)
            writer.pronounce(at, mark.value)
        case MarkKind.SAY_AS:
            writer.say(start, end, _say_as(mark.value, text[start:end], language, urls))


def _say_as(how: str, content: str, language: str, urls: Urls) -> str:
    if not language.lower().startswith("en"):
        return normalize(" ".join(content), language).text
    compact = content.replace(",", "").strip()
    match how:
        case "characters" | "spell-out" | "verbatim":
            return codes.spelled(content)
        case "digits" | "telephone":
            return ", ".join(codes.spelled("".join(filter(str.isalnum, group))) for group in content.split())
        case "ordinal" if compact.isdecimal():
            return numbers.ordinal(compact)
        case "cardinal" | "number" if compact.isdecimal():
            return numbers.cardinal(compact)
        case _:
            return normalize(content, language, urls=urls).text


def _place(origin: list[int] | None, offset: int) -> int:
    """Where the source offset `offset` is in the folded text."""
    if origin is None:
        return offset
    low, high = 0, len(origin) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if origin[middle] >= offset else (middle + 1, high)
    return low


def _fold(text: str) -> tuple[str, list[int]]:
    """NFKC by clusters of a character and its combining marks, and for each place of it the offset it comes from."""
    out: list[str] = []
    origin: list[int] = []
    at, size = 0, len(text)
    while at < size:
        stop = at + 1
        while stop < size and stop - at < 16 and not text[stop].isascii() and unicodedata.combining(text[stop]):
            stop += 1
        folded = _nfkc(text[at:stop])
        out.append(folded)
        origin += [at] * len(folded)
        at = stop
    origin.append(size)
    return "".join(out), origin


@lru_cache(maxsize=4096)
def _nfkc(cluster: str) -> str:
    if cluster[0] in _UNFOLDED or cluster.isascii():
        return cluster
    folded = _digits(cluster) if len(cluster) == 1 else cluster
    folded = unicodedata.normalize("NFKC", folded)
    return "".join(map(_digits, folded))


def _digits(char: str) -> str:
    """Numbers of every kind as ASCII digits."""
    if char in _UNFOLDED or unicodedata.category(char)[0] != "N":
        return char
    value = unicodedata.numeric(char)
    if char.isdecimal():
        return str(int(value))
    return f" {int(value)} " if value == int(value) else f" {value:.3f} "

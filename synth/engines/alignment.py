"""From what is said when to when each word of the source is said.

What was written out in front of the engine ("$5" as "five dollars", "March 3" as "March third") stands for a place in
the source; where that place is several words, those that are said as they are written get their own time, and the rest
share theirs by their length. Pure; knows no phonemes and no sound.
"""

from bisect import bisect_right
from dataclasses import dataclass

from ..speech import pack_times, words_of
from ..text.normalize.spoken import Spoken

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Said:
    """Samples `begin` to `end` say the spoken text `start` to `stop`."""

    begin: int
    end: int
    start: int
    stop: int


def align(text: str, spoken: Spoken, said: list[Said]) -> bytes:
    """The times of the words of `text`, of which `spoken` is the reading, as `Speech` has them."""
    words = [word.span() for word in words_of(text)]
    starts = [start for start, _ in words]
    times: list[Span | None] = [None] * len(words)
    shared: dict[range, list[Said]] = {}
    for each in said:
        start, stop = spoken.source(each.start)[0], spoken.source(each.stop - 1)[1]
        first = max(bisect_right(starts, start) - 1, 0)
        last = max(bisect_right(starts, max(stop - 1, start)) - 1, first)
        if first < last:
            shared.setdefault(range(first, last + 1), []).append(each)
        elif words:
            _add(times, first, (each.begin, each.end))
    for places, group in shared.items():
        _share(text, words, times, places, spoken.text, group)
    return pack_times([time or (0, 0) for time in times])


def _share(
    text: str, words: list[Span], times: list[Span | None], places: range, spoken: str, group: list[Said]
) -> None:
    """Gives the words at `places` the times in `group`, which says them all."""
    first, last = places[0], places[-1]
    while first < last and len(group) > 1 and _same(text[slice(*words[first])], spoken, group[0]):
        _add(times, first, (group[0].begin, group[0].end))
        first, group = first + 1, group[1:]
    while first < last and len(group) > 1 and _same(text[slice(*words[last])], spoken, group[-1]):
        _add(times, last, (group[-1].begin, group[-1].end))
        last, group = last - 1, group[:-1]
    lengths = [words[at][1] - words[at][0] + 1 for at in range(first, last + 1)]
    begin, end, done = group[0].begin, group[-1].end, 0
    for at, length in zip(range(first, last + 1), lengths, strict=True):
        edges = (begin + (end - begin) * part // sum(lengths) for part in (done, done + length))
        _add(times, at, (next(edges), next(edges)))
        done += length


def _same(word: str, spoken: str, said: Said) -> bool:
    return _letters(word) == _letters(spoken[said.start : said.stop])


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


def _add(times: list[Span | None], at: int, time: Span) -> None:
    known = times[at]
    times[at] = time if known is None else (min(known[0], time[0]), max(known[1], time[1]))

"""Which text sounds when: the segments of a context laid along its samples.

Word times are those of the engine; where it has none they are estimated here from the voiced part of each segment's
samples. Of a segment that comes in parts only those words are told that lie within what has come, at the pace
of the segments before. Knows text and sample counts, no wire and no clock.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..synth.segment import Segment
from ..synth.speech import Speech, unpack_times, words_of

VOICED = 184  # |int16| of -45 dBFS: where speech is told from its own padding
FIRST_PACE_S = 0.062  # per letter (a space counts as one), until a segment has been heard whole


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its text, its first and last instant in seconds of the context, its offset in the context's text."""

    text: str
    start: float
    end: float
    offset: int
    estimated: bool = True


@dataclass(frozen=True, slots=True)
class _Span:
    end_s: float
    text_end: int
    words: tuple[Word, ...]


@dataclass(slots=True)
class _Unfolding:
    """A segment that comes in parts."""

    segment: Segment
    words: list[re.Match[str]]  # not told yet
    sound_from: float | None = None  # seconds, where it is first loud
    sound_to: float = 0.0  # … and last, so far
    told_to: float = 0.0  # where the last word told ends
    letters: int = 0  # of all words that were told


class Timeline:
    """The spoken text of one context in seconds. Rates differ between engine and wire; seconds do not."""

    def __init__(self, source_rate: int) -> None:
        self.source_rate = source_rate
        self.seconds = 0.0
        self.samples = 0  # at `source_rate`
        self.text_end = 0  # code points of the text that have been spoken
        self._spans: list[_Span] = []
        self._unfolding: _Unfolding | None = None
        self._pace_s = FIRST_PACE_S

    def append(self, segment: Segment, speech: Speech) -> tuple[Word, ...]:
        """Lays `segment`, spoken at the engine's rate, behind what is there; returns its words."""
        begin = self.samples
        self.samples += len(speech.pcm)
        self.seconds = self.samples / self.source_rate
        self.text_end = segment.end
        words = _told(segment, begin, speech, self.source_rate)
        if words is None:
            words = _estimate(segment, begin, speech.pcm, self.source_rate)
        self._spans.append(_Span(self.seconds, segment.end, words))
        return words

    def extend(self, segment: Segment, speech: Speech, *, last: bool) -> tuple[Word, ...]:
        """`append` for a segment that comes in parts, the `last` of them marked; the words known from this one on."""
        unfolding, self._unfolding = self._unfolding, None
        if unfolding is None:
            if last:
                return self.append(segment, speech)
            unfolding = _Unfolding(segment, _words(segment))
        pcm, begin = speech.pcm, self.samples
        self.samples += len(pcm)
        self.seconds = self.samples / self.source_rate
        if sound := _voiced(pcm):
            first, stop = ((begin + sample) / self.source_rate for sample in sound)
            unfolding.sound_to = stop
            if unfolding.sound_from is None:
                unfolding.sound_from = unfolding.told_to = first
        words = self._rest_of(unfolding) if last else self._within(unfolding)
        self.text_end = segment.end if last else words[-1].offset + len(words[-1].text) if words else self.text_end
        self._spans.append(_Span(self.seconds, self.text_end, words))
        if not last:
            self._unfolding = unfolding
        return words

    def _within(self, unfolding: _Unfolding) -> tuple[Word, ...]:
        """The next words that end, at the usual pace, within the sound that is there."""
        told: list[Word] = []
        while unfolding.words and unfolding.sound_from is not None:
            letters = unfolding.letters + len(unfolding.words[0][0]) + 1
            end = unfolding.sound_from + letters * self._pace_s
            if end > unfolding.sound_to:
                break
            word = unfolding.words.pop(0)
            told.append(_word(unfolding.segment, word, unfolding.told_to, end))
            unfolding.letters, unfolding.told_to = letters, end
        return tuple(told)

    def _rest_of(self, unfolding: _Unfolding) -> tuple[Word, ...]:
        """All other words, over the rest of the sound; what pace that was is remembered."""
        if unfolding.sound_from is None:
            return ()
        begin, end = unfolding.told_to, max(unfolding.told_to, unfolding.sound_to)
        lengths = [len(word[0]) + 1 for word in unfolding.words]
        if letters := unfolding.letters + sum(lengths):
            self._pace_s = max(0.001, (unfolding.sound_to - unfolding.sound_from) / letters)
        edges = begin + np.cumsum([0, *lengths]) / max(1, sum(lengths)) * (end - begin)
        return tuple(
            _word(unfolding.segment, word, float(edges[i]), float(edges[i + 1]))
            for i, word in enumerate(unfolding.words)
        )

    def text_offset_at(self, seconds: float) -> int:
        """How far into the text, in code points, a listener is who has heard `seconds`: words at least half heard."""
        offset = 0
        for span in self._spans:
            if span.end_s <= seconds + 1e-6:
                offset = span.text_end
                continue
            for word in span.words:
                if (word.start + word.end) / 2 > seconds:
                    break
                offset = word.offset + len(word.text)
            break
        return offset


def _told(segment: Segment, begin: int, speech: Speech, rate: int) -> tuple[Word, ...] | None:
    """The words that are said, by the engine's own times; None when it gave none."""
    if not speech.times:
        return None
    words = words_of(segment.text)
    times = unpack_times(speech.times, len(words))
    if times is None:
        return None
    return tuple(
        Word(
            word[0],
            round((begin + start) / rate, 3),
            round((begin + end) / rate, 3),
            segment.start + word.start(),
            False,
        )
        for word, (start, end) in zip(words, times, strict=True)
        if end > start
    )


def _estimate(segment: Segment, begin: int, pcm: NDArray[np.int16], rate: int) -> tuple[Word, ...]:
    """Spreads the segment's words over its voiced samples, each by its length in letters (a space counts as one)."""
    words, sound = _words(segment), _voiced(pcm)
    if not words or sound is None:
        return ()
    first, stop = sound
    weights = np.cumsum([0, *(len(word[0]) + 1 for word in words)])
    edges = (begin + first + weights / weights[-1] * (stop - first)) / rate
    return tuple(_word(segment, word, float(edges[i]), float(edges[i + 1])) for i, word in enumerate(words))


def _words(segment: Segment) -> list[re.Match[str]]:
    return [word for word in words_of(segment.text) if any(map(str.isalnum, word[0]))]


def _voiced(pcm: NDArray[np.int16]) -> tuple[int, int] | None:
    """The first and one past the last sample that is no silence."""
    loud = np.flatnonzero((pcm > VOICED) | (pcm < -VOICED))
    return (int(loud[0]), int(loud[-1]) + 1) if len(loud) else None


def _word(segment: Segment, word: re.Match[str], start: float, end: float) -> Word:
    return Word(word[0], round(start, 3), round(end, 3), segment.start + word.start())

"""Which text sounds when: the segments of a context laid along its samples.

Word times are those of the engine; where it has none they are estimated here from the voiced part of each segment's
samples. Knows text and sample counts, no wire and no clock.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..synth.segment import Segment
from ..synth.speech import Speech, unpack_times, words_of

VOICED = 184  # |int16| of -45 dBFS: where speech is told from its own padding


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


class Timeline:
    """The spoken text of one context in seconds. Rates differ between engine and wire; seconds do not."""

    def __init__(self, source_rate: int) -> None:
        self.source_rate = source_rate
        self.seconds = 0.0
        self.samples = 0  # at `source_rate`
        self.text_end = 0  # code points of the text that have been spoken
        self._spans: list[_Span] = []

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
    words = [word for word in words_of(segment.text) if any(map(str.isalnum, word[0]))]
    loud = np.flatnonzero((pcm > VOICED) | (pcm < -VOICED))
    if not words or not len(loud):
        return ()
    first, last = int(loud[0]), int(loud[-1]) + 1
    weights = np.cumsum([0, *(len(word[0]) + 1 for word in words)])
    edges = (begin + first + weights / weights[-1] * (last - first)) / rate
    return tuple(
        Word(word[0], round(float(edges[i]), 3), round(float(edges[i + 1]), 3), segment.start + word.start())
        for i, word in enumerate(words)
    )

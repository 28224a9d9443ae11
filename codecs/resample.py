"""One continuous conversion of sample rate for one stream of PCM, with an exact length.

Knows no frames and no codecs.
"""

import numpy as np
import soxr
from numpy.typing import NDArray

from .pcm import to_float, to_int16


def resampled_length(samples: int, source_rate: int, rate: int) -> int:
    """How many samples at `rate` stand for `samples` at `source_rate`: the nearest whole number, halves up."""
    return (2 * samples * rate + source_rate) // (2 * source_rate)


class Resampler:
    """A stream at `source_rate` turned into one at `rate`.

    However the input is cut, the output is the same to the bit. Between pushes the filter holds back at most 80 ms
    at 24 kHz in (the worst case is 8 kHz out, 73 ms measured; 39 ms for the other rates); `finish` gives them.
    """

    def __init__(self, source_rate: int, rate: int):
        self._source_rate = source_rate
        self._rate = rate
        # float32, because soxr dithers int16 with noise seeded by clock and address: the same speech would differ.
        # HQ, because VHQ holds back twice as much (153 ms for 24 -> 8 kHz) for an error 16-bit samples cannot show.
        self._stream = soxr.ResampleStream(source_rate, rate, 1, dtype="float32", quality="HQ")
        self._pushed = 0
        self._given = 0

    def push(self, pcm: NDArray[np.int16]) -> NDArray[np.int16]:
        """What can be given so far; often nothing for a short push."""
        self._pushed += len(pcm)
        ready = to_int16(self._stream.resample_chunk(to_float(pcm)))
        self._given += len(ready)
        return ready

    def finish(self) -> NDArray[np.int16]:
        """The rest: all that was given is then `resampled_length` of all that was pushed. Nothing may follow."""
        rest = to_int16(self._stream.resample_chunk(np.zeros(0, np.float32), last=True))
        missing = resampled_length(self._pushed, self._source_rate, self._rate) - self._given
        self._given += missing
        return np.pad(rest[:missing], (0, max(0, missing - len(rest))))

"""G.711: 16-bit samples to one byte each and back, mu-law and A-law, by table.

The tables follow the reference software of the ITU (G.191, ulaw_compress and alaw_compress), which treats negative
samples as the complement of positive ones; so what is silent stays silent. Knows no rates and no streams.
"""

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

RATE = 8000  # Hz, the rate of G.711

Law = Literal["mulaw", "alaw"]

_BIAS = 33  # of mu-law, in steps of 14 bits
_EVEN_BITS = 0x55  # A-law inverts every other bit on the line


def encode(pcm: NDArray[np.int16], law: Law) -> bytes:
    """One byte for each sample."""
    return _codes(law)[pcm.view(np.uint16)].tobytes()


def decode(data: bytes, law: Law) -> NDArray[np.int16]:
    """One sample for each byte, the middle of its interval."""
    return _values(law)[np.frombuffer(data, np.uint8)]


@cache
def _codes(law: Law) -> NDArray[np.uint8]:
    """The code of every sample; the index is its 16 bits read as an unsigned number."""
    pcm = np.arange(1 << 16, dtype=np.uint16).view(np.int16).astype(np.int32)
    negative = pcm < 0
    size = np.where(negative, ~pcm, pcm)
    if law == "mulaw":
        size = np.minimum((size >> 2) + _BIAS, 0x1FFF)
        segment = np.floor(np.log2(size)).astype(np.int32) - 5
        code = segment << 4 | size >> segment + 1 & 0xF
        return (np.where(negative, 0x80, 0) ^ 0xFF ^ code).astype(np.uint8)
    size >>= 4
    segment = np.maximum(np.floor(np.log2(np.maximum(size, 1))).astype(np.int32) - 3, 1)
    code = np.where(size < 32, size, segment << 4 | size >> segment - 1 & 0xF)
    return (np.where(negative, 0, 0x80) ^ _EVEN_BITS ^ code).astype(np.uint8)


@cache
def _values(law: Law) -> NDArray[np.int16]:
    """The sample of every code."""
    code = np.arange(256)
    if law == "mulaw":
        code ^= 0xFF
        segment, step = code >> 4 & 7, code & 0xF
        size = ((2 * step + _BIAS << segment) - _BIAS) * 4
        return np.where(code & 0x80, -size, size).astype(np.int16)
    code ^= _EVEN_BITS
    segment, step = code >> 4 & 7, code & 0xF
    size = np.where(segment == 0, 2 * step + 1, 2 * step + _BIAS << np.maximum(segment - 1, 0)) * 8
    return np.where(code & 0x80, size, -size).astype(np.int16)

"""Who speaks: a vector of the model's width, out of a speaker string or drawn at random.

A speaker string is base16384 of raw LZMA2 of float16 numbers. Random voices need the mean and deviation of the voices
the model was trained with, which come with the weights and are not ours to ship. Knows no tensors of the model.
"""

import lzma

import numpy as np
from numpy.typing import NDArray

from .base16384 import decode, encode
from .errors import SpeakerError

# How such strings are made: LZMA2 without a container.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
_MAX_BYTES = 1 << 16  # unpacked; a string could be made to unpack to gigabytes


def from_string(text: str, width: int) -> NDArray[np.float32]:
    """The vector of `width` numbers in a speaker string. Raises `SpeakerError`."""
    try:
        packed = decode(text.strip())
        data = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS).decompress(packed, _MAX_BYTES)
    except (ValueError, lzma.LZMAError, EOFError) as error:
        raise SpeakerError(f"not a speaker string: {error}") from error
    return _vector(data, width, "the speaker string")


def to_string(vector: NDArray[np.floating]) -> str:
    data = np.asarray(vector, "<f2").tobytes()
    return encode(lzma.compress(data, lzma.FORMAT_RAW, filters=_FILTERS))


def read_statistics(text: str, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(deviation, mean) of the speakers from the text of a statistics file. Raises `SpeakerError`."""
    try:
        data = decode(text.strip())
    except ValueError as error:
        raise SpeakerError(f"not a statistics file: {error}") from error
    both = _vector(data, 2 * width, "the statistics file")
    return both[:width], both[width:]


def random_speaker(seed: int, deviation: NDArray[np.float32], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same voice for the same seed, on every machine."""
    drawn = np.random.Generator(np.random.Philox(key=seed)).standard_normal(len(mean), np.float32)
    return drawn * deviation + mean


def _vector(data: bytes, width: int, what: str) -> NDArray[np.float32]:
    if len(data) != 2 * width:
        raise SpeakerError(f"{what} holds {len(data)} bytes, not {2 * width}")
    vector = np.frombuffer(data, "<f2").astype(np.float32)
    if not np.isfinite(vector).all():
        raise SpeakerError(f"{what} holds numbers that are none")
    return vector

"""What an engine makes of a segment: its sound and, where the engine knows, when each word of its text sounds.

Owns the compact form of those times, in which they travel and are cached. Knows no engine and no context.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\S+")
_TIME = np.dtype("<u4")


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """`pcm` is mono, at the engine's rate. `times` are of `words_of` the segment's text; empty: the engine knows none.

    Words are counted, not placed: how much white space lies between them makes no difference to what is cached.
    """

    pcm: NDArray[np.int16]
    times: bytes = b""


def words_of(text: str) -> list[re.Match[str]]:
    """What is between white space, punctuation alone included."""
    return list(_WORD.finditer(text))


def pack_times(spans: Sequence[tuple[int, int]]) -> bytes:
    """For every word the first sample and the one behind the last; the same number twice for one that is not said."""
    return np.asarray(spans, _TIME).tobytes()


def unpack_times(times: bytes, words: int) -> list[tuple[int, int]] | None:
    """None unless they are those of so many words."""
    if not times or len(times) != 2 * _TIME.itemsize * words:
        return None
    return [(start, end) for start, end in np.frombuffer(times, _TIME).reshape(-1, 2).tolist()]

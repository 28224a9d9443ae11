"""Arithmetic on mono 16-bit PCM: conversion to and from float, and edge fades.

Full scale is 32768, so every int16 value survives the way to float32 and back. Knows no frames and no streams.
"""

import numpy as np
from numpy.typing import NDArray

FADE_SECONDS = 0.005
_FULL_SCALE = 32768.0


def to_float(pcm: NDArray[np.int16]) -> NDArray[np.float32]:
    """Samples as float32 in [-1, 1)."""
    return pcm.astype(np.float32) / np.float32(_FULL_SCALE)


def to_int16(samples: NDArray[np.floating]) -> NDArray[np.int16]:
    """Samples in [-1, 1) rounded to the nearest step; what lies outside saturates instead of wrapping."""
    return np.clip(np.rint(samples * samples.dtype.type(_FULL_SCALE)), -32768, 32767).astype(np.int16)


def fade_in(pcm: NDArray[np.int16], rate: int, seconds: float = FADE_SECONDS) -> NDArray[np.int16]:
    """A copy that rises from silence along half a raised cosine over its first `seconds` at `rate` Hz."""
    ramp = _rise(min(round(rate * seconds), len(pcm)))
    faded = pcm.copy()
    faded[: len(ramp)] = np.rint(faded[: len(ramp)] * ramp)
    return faded


def fade_out(pcm: NDArray[np.int16], rate: int, seconds: float = FADE_SECONDS) -> NDArray[np.int16]:
    """A copy that falls to silence along half a raised cosine over its last `seconds` at `rate` Hz."""
    return fade_in(pcm[::-1], rate, seconds)[::-1].copy()


def _rise(length: int) -> NDArray[np.float64]:
    """`length` gains from near 0 to near 1, sampled at mid-steps so that in and out add up to exactly one."""
    return 0.5 - 0.5 * np.cos(np.pi * (np.arange(length) + 0.5) / max(length, 1))

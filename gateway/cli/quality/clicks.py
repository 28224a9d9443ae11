"""Finds clicks: joins that stand out of the sound around them, in the size of a step or in the spectrum. Pure.

The measure of what stands out is the sound itself: a join counts as a click when its largest step from one sample to
the next, or its largest spectral flux, is over the 99.9th percentile of those everywhere else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....codecs.pcm import to_float

PERCENTILE = 99.9
NEAR_S = 0.002  # around a join, for steps
WINDOW_S = 0.010  # of the spectrum
HOP_S = 0.0025

Signal = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sound:
    pcm: NDArray[np.int16]
    joins: tuple[int, ...]  # the first samples after each


@dataclass(frozen=True, slots=True)
class Verdict:
    joins: int
    clicks_by_step: int
    clicks_by_flux: int
    worst_step: float  # over the threshold
    worst_flux: float


def judge(sounds: Sequence[Sound], rate: int) -> Verdict:
    """Of all joins of all `sounds` against all that is between them."""
    steps = _Tally()
    fluxes = _Tally()
    for sound in sounds:
        signal = to_float(sound.pcm)
        near = round(NEAR_S * rate)
        steps.add(np.abs(np.diff(signal)), [(at - 1 - near, at + near) for at in sound.joins])
        hop, window = round(HOP_S * rate), round(WINDOW_S * rate)
        # Flux n is that from frame n to n + 1: those whose later frame holds samples of both sides.
        spans = [((at - window) // hop, at // hop) for at in sound.joins]
        fluxes.add(flux(signal, window, hop), spans)
    by_step, worst_step = steps.over()
    by_flux, worst_flux = fluxes.over()
    return Verdict(sum(len(sound.joins) for sound in sounds), by_step, by_flux, worst_step, worst_flux)


def flux(signal: Signal, window: int, hop: int) -> Signal:
    """How much the magnitudes of the spectrum grow from frame to frame."""
    if len(signal) < window + hop:
        return np.zeros(0, np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(signal, window)[::hop]
    spectrum = np.abs(np.fft.rfft(frames * np.hanning(window).astype(np.float32), axis=1))
    return np.maximum(np.diff(spectrum, axis=0), 0).sum(axis=1).astype(np.float32)


class _Tally:
    """Values at joins and elsewhere."""

    def __init__(self) -> None:
        self._at: list[float] = []
        self._elsewhere: list[NDArray[np.float32]] = []

    def add(self, values: NDArray[np.float32], spans: Iterable[tuple[int, int]]) -> None:
        apart = np.ones(len(values), bool)
        for begin, end in spans:
            begin, end = max(begin, 0), min(end, len(values))
            self._at.append(float(values[begin:end].max(initial=0.0)))
            apart[begin:end] = False
        self._elsewhere.append(values[apart])

    def over(self) -> tuple[int, float]:
        """How many joins are over the threshold, and the largest as a multiple of it."""
        threshold = float(np.percentile(np.concatenate(self._elsewhere), PERCENTILE)) or 1.0
        return sum(value > threshold for value in self._at), max(self._at, default=0.0) / threshold

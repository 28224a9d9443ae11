"""How much of what follows a window must be known for it to sound right: measured on the weights at hand.

The receptive field is 52 steps on each side, most of which hardly matters. The error of windows with less look-ahead
against the decode of the whole is measured, and the least that is good enough is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .shape import Shape

CANDIDATES = 0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 52  # steps
GOOD_DB = 40.0  # signal to error; a seam is not heard
BEARABLE_DB = 25.0  # for the first chunk of a speech, where each step is latency
LEAST = 3  # the end of a speech is told up to two steps late, and something must be left for the last window
CHUNK = 8  # steps in a window, as in the first seconds of a stream


@dataclass(frozen=True, slots=True)
class LookAhead:
    """Steps behind a window: the least that is bearable, and those that make it good."""

    least: int
    most: int


def curve(decode: Callable[[Tensor, int], Tensor], speeches: Sequence[Tensor], shape: Shape) -> dict[int, float]:
    """Signal to error in dB for each look-ahead, over all windows of `speeches` [T, H].

    `decode(states [T, H], steps)` gives the sound of the first `steps` of them, decoded as a speech that ends there.
    """
    context, samples = shape.context_steps, shape.samples_per_step
    candidates = sorted({min(ahead, context) for ahead in CANDIDATES})
    signal, error = 0.0, dict.fromkeys(candidates, 0.0)
    for states in speeches:
        whole = decode(states, len(states)).double()
        # Windows that reach the end have nothing behind them to miss.
        for begin in range(0, len(states) - context - CHUNK, CHUNK):
            start, end = max(0, begin - context), begin + CHUNK
            expected = whole[begin * samples : end * samples]
            signal += float(expected.square().sum())
            for ahead in candidates:
                window = states[start : end + ahead]
                heard = decode(window, len(window))[(begin - start) * samples : (end - start) * samples].double()
                error[ahead] += float((heard - expected).square().sum())
    if not signal:
        raise ValueError(f"no speech is longer than {context + CHUNK} steps")
    return {ahead: 10 * float(torch.log10(torch.tensor(signal / max(e, signal * 1e-15)))) for ahead, e in error.items()}


def choose(measured: dict[int, float]) -> LookAhead:
    """The smallest look-aheads that are bearable and good; the largest where none is."""

    def smallest(wanted: float) -> int:
        return min((ahead for ahead, level in measured.items() if level > wanted), default=max(measured))

    least = max(LEAST, smallest(BEARABLE_DB))
    return LookAhead(least, max(least, smallest(GOOD_DB)))

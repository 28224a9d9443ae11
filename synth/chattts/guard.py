"""Rails around a model that may babble or fall silent: how long a text may take, and when silence means the end.

Pure arithmetic.
"""

import numpy as np
from numpy.typing import NDArray

from ..text.estimate import seconds

SLACK = 1.6  # times what a text is expected to take, and some
SPARE_STEPS = 32
LEAST_SHARE = 0.15  # of the expected steps, before which a speech does not end
SILENCE_DBFS = -50.0
SILENCE_S = 3.0  # of it, and the model is not going to speak again
_THRESHOLD = 10 ** (SILENCE_DBFS / 20)
_BLOCK_S = 0.01


def step_bounds(text: str, speed: float, steps_per_second: float) -> tuple[int, int]:
    """(least, most) steps of speech for `text`."""
    expected = sum(seconds(word) for word in text.split()) / speed * steps_per_second
    return int(LEAST_SHARE * expected), int(SLACK * expected) + SPARE_STEPS


class SilenceWatch:
    """Listens to one segment and says when it has been silent for too long."""

    def __init__(self, rate: int) -> None:
        self._block = int(_BLOCK_S * rate)
        self._most = int(SILENCE_S * rate)
        self._silent = 0  # samples

    def push(self, sound: NDArray[np.float32]) -> bool:
        """Whether the speech has ended, for all that is to be heard."""
        if len(sound):
            starts = np.arange(0, len(sound), self._block)
            energy = np.add.reduceat(np.square(sound, dtype=np.float64), starts)
            lengths = np.diff(np.append(starts, len(sound)))
            loud = np.flatnonzero(energy > _THRESHOLD**2 * lengths)
            last = int(starts[loud[-1]] + lengths[loud[-1]]) if len(loud) else 0
            self._silent = len(sound) - last + (0 if len(loud) else self._silent)
        return self._silent > self._most

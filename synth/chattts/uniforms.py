"""The random numbers of a stream: one for every step and codebook, by seed and step alone.

Drawn on the host once for a whole segment and looked up on the device, so that they are the same on every device and
in every batch. Philox counts: what step n gets does not depend on how many steps came before.
"""

import numpy as np
from numpy.typing import NDArray

ATTEMPTS = 3  # draws for the first step: a speech that ends before its first sound is drawn again


def uniforms(seed: int, steps: int, codebooks: int) -> NDArray[np.float32]:
    """Numbers in [0, 1) of the steps 0, 1, … [steps, codebooks]."""
    return _draw(seed, 0, steps, codebooks)


def retries(seed: int, codebooks: int) -> NDArray[np.float32]:
    """Those of the further attempts at the first step [ATTEMPTS - 1, codebooks]."""
    return _draw(seed, 1, ATTEMPTS - 1, codebooks)


def _draw(seed: int, purpose: int, rows: int, codebooks: int) -> NDArray[np.float32]:
    key = seed & 0xFFFF_FFFF_FFFF_FFFF | purpose << 64
    width = -(-codebooks // 4) * 4  # a count of Philox is four numbers, and a step begins at one
    raw = np.random.Philox(key=key).random_raw(rows * width).reshape(rows, width)[:, :codebooks]
    return (raw >> 40).astype(np.float32) / np.float32(1 << 24)

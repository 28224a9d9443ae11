"""The loudness all voices are brought to, so that none of them is louder than the next: by one constant gain each.

The gain follows from what a voice measures by itself (ITU-R BS.1770 over many sentences, EBU R 128); it is never found
out from the signal at hand, which would pump. Knows no engine.
"""

import numpy as np
from numpy.typing import NDArray

# EBU R 128. Speech peaks 18 to 24 dB above its loudness, so -16, as podcasts have it, would clip in every sentence.
TARGET_LUFS = -23.0
KNEE = 0.85  # -1.4 dBFS: above it a peak is bent, below nothing is touched …
CEILING = 0.97  # … and never reaches this, so that what is between two samples does not clip either

ROOM = CEILING - KNEE


def gain_for(measured_lufs: float) -> float:
    """The factor for a voice of this integrated loudness."""
    return 10 ** ((TARGET_LUFS - measured_lufs) / 20)


def level(signal: NDArray[np.float32], gain: float) -> NDArray[np.float32]:
    """`signal` times `gain`, its rare peaks over the knee bent to stay below `CEILING`. It has no memory."""
    out = signal * np.float32(gain)
    over = np.flatnonzero((out > KNEE) | (out < -KNEE))
    if len(over):
        peaks = out[over]
        out[over] = np.sign(peaks) * (KNEE + ROOM * np.tanh((np.abs(peaks) - KNEE) / ROOM))
    return out

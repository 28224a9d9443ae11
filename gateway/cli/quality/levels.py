"""Whether the voice has the loudness all voices are to have, and never clips: over many sentences, joined."""

import numpy as np
import pyloudnorm

from ....codecs.resample import Resampler
from ....synth.loudness import TARGET_LUFS
from ..bench import Figure
from .sentences import sentences
from .speaking import Bare

OVERSAMPLING = 4  # for true peaks (ITU-R BS.1770, annex 2)
PROMISED_OFF_LU = 0.5


async def measure(count: int) -> list[Figure]:
    bare = Bare()
    meter = pyloudnorm.Meter(bare.rate)
    parts, true_peak, clipped = [], 0.0, 0
    for text in sentences(count):
        pcm = bare.speak(text).pcm
        parts.append(pcm)
        clipped += int(np.count_nonzero(np.abs(pcm.astype(np.int32)) >= 32767))
        resampler = Resampler(bare.rate, bare.rate * OVERSAMPLING)
        for each in (resampler.push(pcm), resampler.finish()):
            true_peak = max(true_peak, float(np.abs(each.astype(np.int32)).max(initial=0)))
    loudness = float(meter.integrated_loudness(np.concatenate(parts) / 32768))
    return [
        Figure(f"loudness below 0, {count} sentences", -loudness, "LU"),
        Figure(f"off {TARGET_LUFS:g} LUFS", abs(loudness - TARGET_LUFS), "LU", PROMISED_OFF_LU, "0.5 LU"),
        Figure("true peak below full scale", -20 * float(np.log10(true_peak / 32768)), "dB"),
        Figure("samples at full scale", clipped, "", 0, "none"),
    ]

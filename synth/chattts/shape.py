"""The sizes of ChatTTS and what follows from them: rates, receptive fields, bytes per token.

`TRUE` is the published model; `TINY` has its structure at a size that a test can run. Knows no tensors.
"""

from dataclasses import dataclass
from functools import cached_property

SAMPLE_RATE = 24_000  # Hz
FRAMES_PER_STEP = 2  # mel frames out of one autoregressive step


@dataclass(frozen=True)
class ConvNeXt:
    """A stack of ConvNeXt blocks over time."""

    width: int
    inner: int
    blocks: int
    kernel: int = 7
    dilation: int = 1

    @property
    def reach(self) -> int:
        """Frames to each side that one output frame depends on."""
        return self.blocks * self.dilation * (self.kernel // 2)


@dataclass(frozen=True)
class Shape:
    hidden: int
    intermediate: int
    heads: int
    layers: int
    positions: int  # the longest sequence, prompt included
    text_vocabulary: int
    codes: int  # per codebook; the last one ends the speech
    decoder: ConvNeXt
    decoder_neck: int
    vocos: ConvNeXt
    mels: int
    n_fft: int
    hop: int
    dvae: ConvNeXt
    dvae_neck: int
    dvae_dim: int  # of the quantized vectors
    codebooks: int = 4
    rms_eps: float = 1e-5
    rope_theta: float = 10_000.0

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads

    @property
    def end_code(self) -> int:
        return self.codes - 1

    @property
    def mel_in(self) -> int:
        """Channels of a mel frame's half of a hidden state."""
        return self.hidden // FRAMES_PER_STEP

    @property
    def samples_per_step(self) -> int:
        return FRAMES_PER_STEP * self.hop

    @property
    def steps_per_second(self) -> float:
        return SAMPLE_RATE / self.samples_per_step

    @cached_property
    def context_steps(self) -> int:
        """Steps on each side with which a window decodes exactly as the whole does.

        Frames: three convolutions of 3 around the decoder's blocks, Vocos' first of 7, and the ISTFT's overlap.
        """
        frames = 3 + self.decoder.reach + self.vocos.kernel // 2 + self.vocos.reach + self.n_fft // self.hop // 2
        return -(-frames // FRAMES_PER_STEP)

    def kv_bytes_per_token(self, element_bytes: int) -> int:
        return 2 * self.layers * self.hidden * element_bytes


TRUE = Shape(
    hidden=768,
    intermediate=3072,
    heads=12,
    layers=20,
    positions=4096,
    text_vocabulary=21178,
    codes=626,
    decoder=ConvNeXt(512, 2048, 12, dilation=2),
    decoder_neck=128,
    vocos=ConvNeXt(512, 1536, 8),
    mels=100,
    n_fft=1024,
    hop=256,
    dvae=ConvNeXt(256, 1024, 12, dilation=2),
    dvae_neck=128,
    dvae_dim=1024,
)
TINY = Shape(
    hidden=32,
    intermediate=64,
    heads=2,
    layers=2,
    positions=256,
    text_vocabulary=128,
    codes=626,
    decoder=ConvNeXt(16, 32, 2, dilation=2),
    decoder_neck=8,
    vocos=ConvNeXt(16, 32, 2),
    mels=10,
    n_fft=64,
    hop=16,
    dvae=ConvNeXt(8, 16, 2, dilation=2),
    dvae_neck=8,
    dvae_dim=16,
)

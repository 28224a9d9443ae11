"""The DVAE: sound into codes, for cloning a voice, and codes into mel.

Streams do not need it: the decoder takes hidden states. Codes are two groups of two residual codes, each code four
numbers of five levels (grouped residual FSQ).
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from . import layout
from .shape import FRAMES_PER_STEP, SAMPLE_RATE
from .vocoder import MelStack
from .weights import Model

LEVELS = 5
DIGITS = 4
GROUPS = 2
RESIDUALS = 2
LEAST = 1e-5  # of a mel band, before its logarithm
_BOUND = (LEVELS - 1) * (1 + 1e-3) / 2


class Dvae:
    def __init__(self, model: Model) -> None:
        self._weights = weights = model[layout.DVAE]
        self.shape = shape = model.shape
        self._encoder = MelStack(weights, "encoder", shape.dvae)
        self._decoder = MelStack(weights, "decoder", shape.dvae)
        self._filters = mel_filters(shape.mels, shape.n_fft)

    def encode(self, sound: Tensor) -> Tensor:
        """Codes [Q, T] of sound [samples] at 24 kHz, float32."""
        mel = self._mel(sound)
        mel = mel[..., : mel.shape[2] // FRAMES_PER_STEP * FRAMES_PER_STEP]
        weights = self._weights
        x = F.gelu(F.conv1d(mel / weights["coef"], *self._conv("downsample_conv.0"), padding=1))
        x = F.gelu(F.conv1d(x, *self._conv("downsample_conv.2"), stride=2, padding=1))
        return self._quantize(self._encoder(x, x.new_ones(1, 1, x.shape[2])))

    def decode(self, codes: Tensor) -> Tensor:
        """Log-mel [1, mels, 2 T] of codes [Q, T]."""
        x = self._dequantize(codes)  # [1, dim, T]
        _, dim, time = x.shape
        x = x.view(1, FRAMES_PER_STEP, dim // FRAMES_PER_STEP, time).permute(0, 2, 3, 1).flatten(2)
        x = self._decoder(x, x.new_ones(1, 1, x.shape[2]))
        return F.conv1d(x, self._weights["out_conv.weight"], padding=1) * self._weights["coef"]

    def _conv(self, name: str) -> tuple[Tensor, Tensor]:
        return self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]

    def _mel(self, sound: Tensor) -> Tensor:
        n_fft, hop = self.shape.n_fft, self.shape.hop
        window = torch.hann_window(n_fft)
        spectrum = torch.stft(sound[None], n_fft, hop, window=window, center=True, return_complex=True).abs()
        return (self._filters @ spectrum).clamp(min=LEAST).log()

    # --- codes ------------------------------------------------------------------------------------------------------

    def _project(self, group: int, way: str, x: Tensor) -> Tensor:
        name = f"vq_layer.quantizer.rvqs.{group}.project_{way}"
        return F.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _quantize(self, x: Tensor) -> Tensor:
        codes = []
        for group, part in enumerate(x[0].T.chunk(GROUPS, 1)):  # [T, dim / groups]
            left = _bounded(self._project(group, "in", part))
            for n in range(RESIDUALS):
                scale = (LEVELS - 1.0) ** -n
                digits = _bounded(left / scale).round() + LEVELS // 2
                left = left - (digits / (LEVELS // 2) - 1) * scale
                codes.append((digits * LEVELS ** torch.arange(DIGITS)).sum(1).long())
        return torch.stack(codes)

    def _dequantize(self, codes: Tensor) -> Tensor:
        groups = []
        for group, rows in enumerate(codes.chunk(GROUPS)):
            levels = [_levels(row) * (LEVELS - 1.0) ** -n for n, row in enumerate(rows)]
            groups.append(self._project(group, "out", torch.stack(levels).sum(0)))
        return torch.cat(groups, 1).T[None]


def _bounded(x: Tensor) -> Tensor:
    return x.tanh() * _BOUND


def _levels(codes: Tensor) -> Tensor:
    """[T, DIGITS] in -1 to 1."""
    digits = codes[:, None] // LEVELS ** torch.arange(DIGITS) % LEVELS
    return digits / (LEVELS // 2) - 1


def mel_filters(mels: int, n_fft: int) -> Tensor:
    """Triangles [mels, bins], evenly spaced on the HTK mel scale from 0 to half the sample rate, not normalized."""
    top = 2595 * math.log10(1 + SAMPLE_RATE / 2 / 700)
    edges = 700 * (10 ** (torch.linspace(0, top, mels + 2, dtype=torch.float64) / 2595) - 1)
    bins = torch.linspace(0, SAMPLE_RATE / 2, n_fft // 2 + 1, dtype=torch.float64)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0).float()

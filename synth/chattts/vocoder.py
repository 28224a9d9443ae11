"""Hidden states into sound: the decoder (to mel), Vocos (to a spectrum), and the inverse STFT.

All of it is convolution, so a window of steps with enough on both sides sounds exactly as it does in the whole. Rows
of a batch have lengths of their own: behind its end a row is zero before every convolution, as if it were alone.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from . import layout
from .layout import block
from .shape import FRAMES_PER_STEP, ConvNeXt
from .weights import Model, Weights

MOST_MAGNITUDE = 100.0


class MelStack:
    """Convolutions in, ConvNeXt blocks, a projection out: the decoder, and both halves of the DVAE."""

    def __init__(self, weights: Weights, prefix: str, stack: ConvNeXt) -> None:
        self._stack = stack
        self._in = [(weights[f"{prefix}.conv_in.{n}.weight"], weights[f"{prefix}.conv_in.{n}.bias"]) for n in (0, 2)]
        self._blocks = [
            {part: weights[name] for part, name in block(f"{prefix}.decoder_block", n, "weight").items()}
            for n in range(stack.blocks)
        ]
        self._out = weights[f"{prefix}.conv_out.weight"]

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        """[B, out, F] of [B, in, F], zero wherever `mask` [B, 1, F] is."""
        (first, first_bias), (second, second_bias) = self._in
        x = F.gelu(F.conv1d(x * mask, first, first_bias, padding=1)) * mask
        x = F.conv1d(x, second, second_bias, padding=1) * mask
        for weights in self._blocks:
            x = convnext(x, weights, self._stack, mask)
        return F.conv1d(x, self._out) * mask


class Vocoder:
    """The decoder and Vocos of `model`."""

    def __init__(self, model: Model, device: torch.device, dtype: torch.dtype) -> None:
        def placed(weights: Weights) -> Weights:
            return {name: tensor.to(device=device, dtype=dtype) for name, tensor in weights.items()}

        decoder, vocos, shape = placed(model[layout.DECODER]), placed(model[layout.VOCOS]), model.shape
        self.shape = shape
        self._decoder = MelStack(decoder, "decoder", shape.decoder)
        self._mel, self._coef = decoder["out_conv.weight"], decoder["coef"]
        self._vocos = vocos
        self._blocks = [
            {part: vocos[name] for part, name in block("backbone.convnext", n, "gamma").items()}
            for n in range(shape.vocos.blocks)
        ]
        basis, window = inverse_stft(shape.n_fft)
        self._basis, self._squares = basis.to(device), window.square().to(device)

    def __call__(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """Sound [B, T * samples per step], float32, of hidden states [B, T, H] of which `lengths` [B] steps are there.

        As long as the frames are, so the last `hop` samples of a row lie behind its end.
        """
        mask = (
            torch.arange(hidden.shape[1] * FRAMES_PER_STEP, device=hidden.device) < FRAMES_PER_STEP * lengths[:, None]
        )[:, None]
        return self.sound(self.mel(hidden, mask), mask)

    def mel(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Log-mel [B, mels, F] with F = 2 T; the two halves of a hidden state are two frames."""
        batch, time, _ = hidden.shape
        frames = hidden.reshape(batch, time * FRAMES_PER_STEP, self.shape.mel_in).transpose(1, 2)
        mask = mask.to(self._mel.dtype)
        x = self._decoder(frames.to(self._mel.dtype), mask)
        return F.conv1d(x, self._mel, padding=1) * self._coef * mask

    def sound(self, mel: Tensor, mask: Tensor) -> Tensor:
        """Samples [B, F * hop] of log-mel frames."""
        shape, weights = self.shape, self._vocos
        present = mask.to(mel.dtype)
        padding = shape.vocos.kernel // 2
        x = F.conv1d(mel, weights["backbone.embed.weight"], weights["backbone.embed.bias"], padding=padding)
        x = layer_norm(x, weights["backbone.norm.weight"], weights["backbone.norm.bias"]) * present
        for each in self._blocks:
            x = convnext(x, each, shape.vocos, present)
        x = layer_norm(x, weights["backbone.final_layer_norm.weight"], weights["backbone.final_layer_norm.bias"])
        spectrum = F.linear(x.transpose(1, 2), weights["head.out.weight"], weights["head.out.bias"]).float()
        magnitude, phase = spectrum.chunk(2, 2)
        magnitude = magnitude.exp().clamp(max=MOST_MAGNITUDE) * mask.transpose(1, 2)
        frames = torch.cat([magnitude * phase.cos(), magnitude * phase.sin()], 2) @ self._basis  # [B, F, n_fft]
        envelope = mask.transpose(1, 2) * self._squares
        return self._overlapped(frames) / self._overlapped(envelope).clamp(min=1e-11)

    def _overlapped(self, frames: Tensor) -> Tensor:
        """Frames [B, F, n_fft], each `hop` after the one before, added up; the first half frame is left out."""
        hop = self.shape.hop
        parts = self.shape.n_fft // hop
        time = frames.shape[1]
        half = parts // 2
        padded = F.pad(frames, (0, 0, half - 1, half))  # frame f is padded[f + half - 1]
        pieces = padded.unflatten(2, (parts, hop))
        # Samples [k * hop, (k + 1) * hop) lie in the frames k - half + 1 to k + half, in a part further back each time.
        total = sum(pieces[:, n : n + time, parts - 1 - n] for n in range(parts))
        assert isinstance(total, Tensor)
        return total.flatten(1)


def convnext(x: Tensor, weights: Weights, stack: ConvNeXt, mask: Tensor) -> Tensor:
    """One block: depthwise convolution, norm over channels, two layers, its own scale per channel, added on."""
    y = F.conv1d(
        x,
        weights["depthwise.weight"],
        weights["depthwise.bias"],
        padding=stack.dilation * (stack.kernel // 2),
        dilation=stack.dilation,
        groups=stack.width,
    )
    y = F.layer_norm(y.transpose(1, 2), (stack.width,), weights["norm.weight"], weights["norm.bias"], 1e-6)
    y = F.gelu(F.linear(y, weights["widen.weight"], weights["widen.bias"]))
    y = F.linear(y, weights["narrow.weight"], weights["narrow.bias"]) * weights["scale"]
    return (x + y.transpose(1, 2)) * mask


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Over channels, of [B, C, F]."""
    return F.layer_norm(x.transpose(1, 2), (x.shape[1],), weight, bias, 1e-6).transpose(1, 2)


def inverse_stft(n_fft: int) -> tuple[Tensor, Tensor]:
    """(basis [n_fft + 2, n_fft], window [n_fft]): real and imaginary parts times the basis are a windowed frame.

    A matrix instead of a transform: TensorRT has no inverse DFT, and this fuses with what is around it.
    """
    bins = n_fft // 2 + 1
    angles = 2 * math.pi / n_fft * torch.outer(torch.arange(bins, dtype=torch.float64), torch.arange(n_fft).double())
    weight = torch.full((bins, 1), 2.0, dtype=torch.float64)
    weight[0] = weight[-1] = 1.0  # these two have no mirror image
    window = torch.hann_window(n_fft, periodic=True, dtype=torch.float64)
    basis = torch.cat([weight * angles.cos(), -weight * angles.sin()]) / n_fft * window
    return basis.float(), window.float()

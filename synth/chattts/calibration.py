"""Scales for INT8: how large the inputs of each linear layer get when real prompts are spoken.

Collects from the torch model while it runs. Weights need no calibration: their scales are their own.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .core import TorchCore
from .stepper import Prompt, Stepper

QUANTILE = 0.9999  # outliers beyond it are clipped: they would cost everything else its precision
_SAMPLED = 65_536  # values looked at of one input


class Activations:
    """The largest of each layer's inputs, by quantile, over all that it is shown."""

    def __init__(self) -> None:
        self.peaks: dict[str, float] = {}

    def __call__(self, name: str, x: Tensor) -> None:
        values = x.detach().abs().float().flatten()
        values = values[:: max(1, len(values) // _SAMPLED)]
        self.peaks[name] = max(self.peaks.get(name, 0.0), float(torch.quantile(values, QUANTILE)))

    def scales(self) -> dict[str, float]:
        """What one step of an INT8 number is worth in each layer."""
        return {name: max(peak, 1e-6) / 127 for name, peak in self.peaks.items()}


def calibrate(stepper: Stepper, prompts: Sequence[Prompt], steps: int) -> dict[str, float]:
    """Scales of every linear layer of the transformer. Not on a GPU: a captured graph cannot be watched."""
    if stepper.device.type == "cuda":
        raise ValueError("calibrate on the CPU")
    seen = Activations()
    assert isinstance(stepper.core, TorchCore)
    llama = stepper.core.llama
    llama.observe = seen
    try:
        for prompt in prompts:
            stepper.load(0, prompt)
            for _ in range(steps):
                if stepper.step([0])[0].ended:
                    break
            stepper.release(0)
    finally:
        llama.observe = None
    return seen.scales()

"""Where the model computes and how precisely. Says what is wrong with a device before the model is loaded onto it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .errors import DeviceError

PRECISIONS = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
_LEAST_CAPABILITY = 7, 5  # Turing; bfloat16 needs Ampere, 8.0


@dataclass(frozen=True, slots=True)
class Device:
    torch: torch.device
    dtype: torch.dtype

    @classmethod
    def find(cls, *, on_gpu: bool, precision: str = "") -> "Device":
        """The first GPU, or the CPU. Raises `DeviceError`, and `ValueError` for a precision that is none."""
        if precision and precision not in PRECISIONS:
            raise ValueError(f"precision {precision!r} is none of {', '.join(PRECISIONS)}")
        if not on_gpu:
            return cls(torch.device("cpu"), PRECISIONS[precision or "float32"])
        if not torch.backends.cuda.is_built():
            raise DeviceError(f"torch {torch.__version__} is a build without CUDA: install one for the GPU's CUDA")
        if not torch.cuda.is_available():
            raise DeviceError("torch finds no GPU: is its driver installed, and new enough for this torch?")
        capability = torch.cuda.get_device_capability(0)
        dtype = PRECISIONS[precision or "float16"]
        least = (8, 0) if dtype is torch.bfloat16 else _LEAST_CAPABILITY
        if capability < least:
            raise DeviceError(
                f"{torch.cuda.get_device_name(0)} has compute capability {capability[0]}.{capability[1]}, "
                f"and {precision or 'float16'} needs {least[0]}.{least[1]}"
            )
        return cls(torch.device("cuda", 0), dtype)

    @property
    def is_gpu(self) -> bool:
        return self.torch.type == "cuda"

    def timed(self, call: Callable[[], object]) -> float:
        """Seconds until `call` has been computed, not just asked for."""
        self.settle()
        began_at = time.perf_counter()
        call()
        self.settle()
        return time.perf_counter() - began_at

    def settle(self) -> None:
        """Wait for all that the device was asked for."""
        if self.is_gpu:
            torch.cuda.synchronize(self.torch)

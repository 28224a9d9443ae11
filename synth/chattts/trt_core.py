"""TensorRT engines in the places of the torch model: a core for the stepper, a vocoder for the renderer.

Memory, streams and CUDA graphs stay torch's: an engine is given the addresses of the stepper's tensors and runs on the
stream torch is on, so that a step can be captured with all that stands around it. Caches are updated in place.
On a GPU this has not been executed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from . import layout
from .core import Drawn, Rows
from .shape import Shape
from .trt_run import Binding, Program
from .weights import Model

Stream = Callable[[], int]  # the handle of the stream that torch is on now

LEAST_STEPS = 2  # of a window: what the vocoder's profiles begin with


@dataclass(frozen=True, slots=True)
class Programs:
    """The engines of one directory, loaded."""

    prefill: Program
    step: Program
    vocoder: Program
    stream: Stream


def stream_of(device: torch.device) -> Stream:
    """Of a GPU."""
    return lambda: torch.cuda.current_stream(device).cuda_stream


class TensorRtCore:
    by_length = False  # its profiles are by rows; the mask is over the whole capacity
    fixed_prefill = False  # the row of the slot is bound by its address

    def __init__(self, programs: Programs, model: Model, slots: int, device: torch.device, dtype: torch.dtype) -> None:
        shape = model.shape
        self._programs = programs
        self._text = model[layout.EMBED]["emb_text.weight"].to(device=device, dtype=dtype)
        self._start = torch.zeros(1, dtype=torch.int64, device=device)
        self._hidden = torch.zeros(slots, shape.hidden, dtype=dtype, device=device)
        self._embedded = torch.zeros_like(self._hidden)
        self._codes = torch.zeros(slots, shape.codebooks, dtype=torch.int64, device=device)

    def embed_text(self, ids: Tensor) -> Tensor:
        return self._text[ids]

    def prefill(self, x: Tensor, slot: Tensor, row: int, cache: Tensor) -> Tensor:
        given = {"x": x, "start": self._start, **_caches(cache[:, :, row : row + 1])}
        self._programs.prefill.enqueue(_bound(given), self._programs.stream())
        return x

    def step(self, rows: Rows, length: int) -> Drawn:
        count = len(rows.x)
        drawn = Drawn(self._hidden[:count], self._codes[:count], self._embedded[:count])
        given = {
            "x": rows.x,
            "position": rows.position,
            "steps": rows.steps,
            "recent": rows.recent,
            "uniforms": rows.uniforms,
            "settings": rows.settings,
            "hidden": drawn.hidden,
            "codes": drawn.codes,
            "next": drawn.embedded,
            **_caches(rows.cache),
        }
        self._programs.step.enqueue(_bound(given), self._programs.stream())
        return drawn


class TensorRtVocoder:
    """As `Vocoder` is called."""

    def __init__(self, programs: Programs, shape: Shape, dtype: torch.dtype) -> None:
        self._programs, self._shape, self._dtype = programs, shape, dtype

    def __call__(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """Sound [B, T * samples per step] of hidden states [B, T, H], of which `lengths` [B] steps are there."""
        rows, steps, _ = hidden.shape
        padded = F.pad(hidden.to(self._dtype), (0, 0, 0, max(0, LEAST_STEPS - steps)))
        samples = padded.shape[1] * self._shape.samples_per_step
        sound = torch.empty(rows, samples, dtype=torch.float32, device=hidden.device)
        given = {"hidden": padded, "lengths": lengths, "sound": sound}
        self._programs.vocoder.enqueue(_bound(given), self._programs.stream())
        return sound[:, : steps * self._shape.samples_per_step]


def _caches(cache: Tensor) -> dict[str, Tensor]:
    """By the names of the graphs, [L, 2, B, heads, capacity, D]; what is written is what is read."""
    named = {f"{kind}_{n}": layer[at] for n, layer in enumerate(cache) for at, kind in enumerate(("key", "value"))}
    return {**named, **{f"new_{name}": tensor for name, tensor in named.items()}}


def _bound(tensors: Mapping[str, Tensor]) -> dict[str, Binding]:
    """Raises `ValueError` for a tensor whose rows do not lie side by side: its address would mean something else."""
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(f"{name} is not contiguous")
    return {name: Binding(tensor.data_ptr(), tuple(tensor.shape)) for name, tensor in tensors.items()}

"""What computes: a prompt into a row of the cache, and a step of many rows with its sampler, behind two calls.

`TorchCore` runs the model in torch, `TensorRtCore` (trt_core.py) engines of the same graphs. Neither keeps anything of
a slot: caches and everything else that changes are the stepper's.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from .llama import Llama
from .sampler import sample
from .weights import Model


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a step, B of them."""

    x: Tensor  # [B, H], the embedding each is fed
    position: Tensor  # [B]
    steps: Tensor  # [B], taken so far
    recent: Tensor  # [B, RECENT, Q], the codes before, -1 where there are none
    uniforms: Tensor  # [B, ATTEMPTS, Q]
    settings: Tensor  # [B, COLUMNS]
    cache: Tensor  # [L, 2, B, heads, capacity, D], written at `position`


@dataclass(frozen=True, slots=True)
class Drawn:
    """What came of a step. Overwritten by the next one."""

    hidden: Tensor  # [B, H]
    codes: Tensor  # [B, Q]
    embedded: Tensor  # [B, H], of these codes: what the next step is fed


class Core(Protocol):
    by_length: bool  # a step over fewer columns of the cache is a cheaper one
    fixed_prefill: bool  # a prefill is the same computation at the same addresses, whatever the slot

    def embed_text(self, ids: Tensor) -> Tensor:
        """[..., H] of token ids [...]."""
        ...

    def prefill(self, x: Tensor, slot: Tensor, row: int, cache: Tensor) -> Tensor:
        """A sequence `x` [1, T, H] from its beginning into row `slot` [1], which is `row`, of all rows' `cache`."""
        ...

    def step(self, rows: Rows, length: int) -> Drawn:
        """`length`: columns of the cache that any row has anything in."""
        ...


class TorchCore:
    by_length = True
    fixed_prefill = True

    def __init__(self, model: Model, capacity: int, device: torch.device, dtype: torch.dtype) -> None:
        self.llama = Llama(model, capacity, device, dtype)

    def embed_text(self, ids: Tensor) -> Tensor:
        return self.llama.embed_text(ids)

    def prefill(self, x: Tensor, slot: Tensor, row: int, cache: Tensor) -> Tensor:
        return self.llama.prefill(x, slot, cache)

    def step(self, rows: Rows, length: int) -> Drawn:
        hidden = self.llama.step(rows.x, rows.position, rows.cache, length)
        codes = sample(self.llama.scores(hidden), rows.recent, rows.uniforms, rows.settings, rows.steps)
        return Drawn(hidden, codes, self.llama.embed_codes(codes))

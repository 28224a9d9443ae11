"""The slots of the transformer: segments join by a prefill and then advance one step at a time, side by side.

Everything that changes from step to step lies in tensors on the device, one row a slot: positions, codes, random
numbers, settings, the ring of hidden states. A row that is left out of a step, or has ended, is computed along and
changes nothing. So a row's codes depend on its prompt, settings and seed alone (for one width of the batch: other
widths add up numbers in another order). Knows no text and no sound.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .core import Core, Rows, TorchCore
from .errors import OutOfMemory, TextTooLong
from .replay import Replay
from .sampler import COLUMNS, RECENT, Sampling
from .uniforms import ATTEMPTS, retries, uniforms
from .weights import Model

PROMPT_BUCKETS = 32, 64, 128, 256, 512, 1024, 2048  # lengths prompts are padded to
LENGTH_BUCKETS = 128, 256, 512, 1024, 2048, 4096  # columns of the cache that are attended to
GRAPHS_BYTES = 512 << 20  # for captured graphs and what a step needs besides


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a slot is loaded with. `speaker` [hidden] replaces the token `speaker_id` wherever it stands."""

    ids: tuple[int, ...]
    speaker: NDArray[np.float32] | None
    speaker_id: int
    sampling: Sampling
    seed: int
    budget: int  # steps after which the speech ends, whatever the model says


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a slot is: steps of sound so far, and whether there will be no more."""

    steps: int
    ended: bool


@dataclass(slots=True)
class _Slot:
    """What the host knows of a slot without asking the device."""

    generation: int = 0
    tokens: int = 0  # at most in its cache


@dataclass(slots=True)
class _Report:
    """A copy of the slots' progress on its way from the device."""

    host: Tensor
    asked: dict[int, int] = field(default_factory=dict[int, int])  # slot -> its generation
    arrived: torch.cuda.Event | None = None


class Stepper:
    """`slots` rows of at most `capacity` tokens, prompt and speech together.

    `late`: `step` tells how the step before it went, so that the device never waits for the host. Raises `OutOfMemory`.
    """

    def __init__(
        self,
        model: Model,
        *,
        slots: int,
        capacity: int,
        ring: int,
        device: torch.device,
        dtype: torch.dtype,
        widths: Sequence[int] | None = None,
        late: bool = False,
        core: Core | None = None,
    ) -> None:
        """`core`: what computes, the torch model if not given."""
        shape = model.shape
        self.shape, self.slots, self.capacity, self.ring_steps = shape, slots, capacity, ring
        self.device, self.late = device, late
        self.widths = tuple(widths) if widths else _powers(slots)
        self.pool_bytes = slots * slot_bytes(model, capacity, ring, dtype)
        _check_memory(device, self.pool_bytes)
        self.core = core or TorchCore(model, capacity, device, dtype)

        def zeros(*size: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(size, device=device, dtype=dtype)

        books = shape.codebooks
        self._cache = zeros(shape.layers, 2, slots, shape.heads, capacity, shape.head_dim, dtype=dtype)
        self.ring = zeros(slots, ring, shape.hidden, dtype=dtype)
        self.codes = zeros(slots, capacity, books, dtype=torch.int64)
        self._next = zeros(slots, shape.hidden, dtype=dtype)  # embedding of the token that a step feeds
        self._position = zeros(slots, dtype=torch.int64)
        self.steps = zeros(slots, dtype=torch.int64)
        self._ended = zeros(slots, dtype=torch.bool)
        self._budget = zeros(slots, dtype=torch.int64)
        self._settings = zeros(slots, COLUMNS, dtype=torch.float32)
        self._settings += torch.tensor(Sampling().row(), device=device)
        self._uniforms = zeros(slots, capacity, books, dtype=torch.float32)
        self._retries = zeros(slots, ATTEMPTS - 1, books, dtype=torch.float32)
        self._active = zeros(slots, dtype=torch.bool)
        self._progress = zeros(slots, dtype=torch.int64)  # 2 * steps + ended
        self._loading = zeros(1, dtype=torch.int64)
        self._prompts = {size: zeros(1, size, shape.hidden, dtype=dtype) for size in PROMPT_BUCKETS if size <= capacity}
        lengths = LENGTH_BUCKETS if self.core.by_length else ()
        self._lengths = (*(size for size in lengths if size < capacity), capacity)
        self._back = -1 - torch.arange(RECENT, device=device)
        self._rows = torch.arange(slots, device=device)

        pinned = device.type == "cuda"
        self._masks = [torch.zeros(slots, dtype=torch.bool, pin_memory=pinned) for _ in range(2)]
        self._reports = [_Report(torch.zeros(slots, dtype=torch.int64, pin_memory=pinned)) for _ in range(2)]
        self._turn = 0
        self._table = [_Slot() for _ in range(slots)]
        self._unheard: dict[int, Progress] = {}
        self._replay = Replay(device)

    # --- the calls --------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def load(self, slot: int, prompt: Prompt) -> None:
        """Put a segment into a slot. Raises `TextTooLong` for what has no room in it."""
        ids = torch.tensor(prompt.ids, dtype=torch.int64)
        read = len(ids) - 1  # the last one is fed by the first step
        padded = next((size for size in self._prompts if size >= read), None)
        if padded is None or len(ids) + prompt.budget > self.capacity:
            raise TextTooLong(
                f"{len(ids)} tokens of text and {prompt.budget} steps of speech do not fit {self.capacity}, "
                "which is what a slot has room for"
            )
        embedded = self.core.embed_text(ids.to(self.device))
        if prompt.speaker is not None:
            speaker = torch.from_numpy(prompt.speaker).to(self.device)
            speaker = (speaker / speaker.norm().clamp(min=1e-12)).to(embedded.dtype)
            embedded = torch.where((ids == prompt.speaker_id).to(self.device)[:, None], speaker, embedded)
        self._prompts[padded][0, :read] = embedded[:read]
        self._prefill(padded, slot)
        self._next[slot] = embedded[read]
        self._position[slot] = read
        self.steps[slot] = 0
        self._ended[slot] = False
        self._budget[slot] = prompt.budget
        self._settings[slot] = torch.tensor(prompt.sampling.row())
        books = self.shape.codebooks
        self._uniforms[slot, : prompt.budget] = torch.from_numpy(uniforms(prompt.seed, prompt.budget, books))
        self._retries[slot] = torch.from_numpy(retries(prompt.seed, books))
        self._table[slot] = _Slot(self._table[slot].generation + 1, len(ids))

    @torch.inference_mode()
    def step(self, slots: Sequence[int]) -> dict[int, Progress]:
        """Advance these slots; how far they are, or were before this step (see `late`).

        What was late for a slot that is left out of a step is told by the next one it is part of.
        """
        width = next(width for width in self.widths if width > max(slots))
        tokens = max(self._table[slot].tokens for slot in slots)
        length = next(size for size in self._lengths if size >= tokens)
        for slot in slots:
            self._table[slot].tokens = min(self._table[slot].tokens + 1, self.capacity)
        self._turn ^= 1
        mask, report = self._masks[self._turn], self._reports[self._turn]
        mask.zero_()
        mask[list(slots)] = True
        self._active.copy_(mask, non_blocking=True)
        self._replay(("step", width, length), partial(self._advance, width, length))
        report.host.copy_(self._progress, non_blocking=True)
        report.asked = {slot: self._table[slot].generation for slot in slots}
        if self.device.type == "cuda":
            report.arrived = torch.cuda.Event()
            report.arrived.record()
        self._unheard |= self._read(self._reports[self._turn ^ 1] if self.late else report)
        return {slot: self._unheard.pop(slot) for slot in slots if slot in self._unheard}

    def release(self, slot: int) -> None:
        """Reports of it that are still on their way will be ignored."""
        self._table[slot] = _Slot(self._table[slot].generation + 1)
        self._unheard.pop(slot, None)

    @torch.inference_mode()
    def warm(self) -> None:
        """Run, on a GPU capture, every computation there will be. Only while nothing is loaded."""
        self._active.zero_()
        for size in self._prompts:
            self._prefill(size, 0)
        for width in self.widths:
            for length in self._lengths:
                self._replay(("step", width, length), partial(self._advance, width, length))
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    # --- a step -----------------------------------------------------------------------------------------------------

    def _prefill(self, size: int, slot: int) -> None:
        self._loading.fill_(slot)
        compute = partial(self.core.prefill, self._prompts[size], self._loading, slot, self._cache)
        if self.core.fixed_prefill:
            self._replay(("prefill", size), compute)
        else:
            compute()

    def _advance(self, width: int, length: int) -> Tensor:
        """One step of the first `width` rows, looking at `length` columns of the cache."""
        rows, steps, position = self._rows[:width], self.steps[:width], self._position[:width]
        next_, ended, codes_so_far, ring = (
            self._next[:width],
            self._ended[:width],
            self.codes[:width],
            self.ring[:width],
        )
        at = steps.clamp(max=self.capacity - 1)
        before = steps[:, None] + self._back
        recent = codes_so_far[rows[:, None], before.clamp(min=0)].masked_fill((before < 0)[..., None], -1)
        drawn = torch.cat([self._uniforms[:width][rows, at][:, None], self._retries[:width]], 1)
        cache = self._cache[:, :, :width]
        came = self.core.step(Rows(next_, position, steps, recent, drawn, self._settings[:width], cache), length)
        hidden, codes = came.hidden, came.codes

        live = self._active[:width] & ~ended
        ends = (codes == self.shape.end_code).any(1)
        grows = live & ~ends
        codes_so_far[rows, at] = torch.where(grows[:, None], codes, codes_so_far[rows, at])
        place = steps % self.ring_steps
        ring[rows, place] = torch.where(grows[:, None], hidden, ring[rows, place])
        next_.copy_(torch.where(grows[:, None], came.embedded, next_))
        steps += grows
        position += grows
        ended |= live & (ends | (steps >= self._budget[:width]))
        self._progress[:width] = 2 * steps + ended
        return self._progress

    def _read(self, report: _Report) -> dict[int, Progress]:
        if report.arrived is not None:
            report.arrived.synchronize()
        return {
            slot: Progress(int(report.host[slot]) >> 1, bool(report.host[slot] & 1))
            for slot, generation in report.asked.items()
            if self._table[slot].generation == generation
        }


def slot_bytes(model: Model, capacity: int, ring: int, dtype: torch.dtype) -> int:
    """Device memory of one slot: keys and values, hidden states, codes and random numbers."""
    shape = model.shape
    element = dtype.itemsize
    numbers = capacity * shape.codebooks * (8 + 4)
    return capacity * shape.kv_bytes_per_token(element) + ring * shape.hidden * element + numbers


def _check_memory(device: torch.device, pool_bytes: int) -> None:
    if device.type != "cuda":
        return
    free, total = torch.cuda.mem_get_info(device)
    if pool_bytes + GRAPHS_BYTES > free:
        raise OutOfMemory(
            f"the slots need {pool_bytes / 2**30:.1f} GiB and the model's work {GRAPHS_BYTES / 2**30:.1f} GiB, but "
            f"only {free / 2**30:.1f} of {total / 2**30:.1f} GiB of the device are free: take fewer slots"
        )


def _powers(slots: int) -> tuple[int, ...]:
    """1, 2, 4, … up to the number of slots itself."""
    widths = [1]
    while widths[-1] < slots:
        widths.append(min(2 * widths[-1], slots))
    return tuple(widths)

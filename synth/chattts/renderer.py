"""Spans of hidden states into sound, many slots at once: gathers them out of the ring and runs the vocoder.

On a GPU every size of batch is a CUDA graph, on a stream of its own, and the sound comes back through pinned memory;
that part has not been executed by any test. Knows no text and no schedule.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .replay import Replay
from .windows import Span, batches, bucket

MOST_ROWS = 32  # of one batch: more does not go faster, and takes memory
STEP_BUCKETS = 64, 96, 128, 192, 256

Vocode = Callable[[Tensor, Tensor], Tensor]  # as `Vocoder` is called


class Renderer:
    def __init__(self, vocoder: Vocode, ring: Tensor, known: Tensor) -> None:
        """`ring` [S, R, H]: step n of a slot lies at n modulo R. `known` [S]: how many steps a slot has.

        A span may reach beyond what is known, when the end of a speech has not been told yet: what is not there is
        silence to the vocoder, as it is behind every end.
        """
        slots, size, _ = ring.shape
        device = ring.device
        self._vocoder, self._ring, self._known = vocoder, ring, known
        self._rows = tuple(2**n for n in range(MOST_ROWS.bit_length()) if 2**n < 2 * slots)
        self._steps = (*(steps for steps in STEP_BUCKETS if steps < size), size)
        rows = self._rows[-1]
        self._slots = torch.zeros(rows, dtype=torch.int64, device=device)
        self._starts = torch.zeros(rows, dtype=torch.int64, device=device)
        self._lengths = torch.zeros(rows, dtype=torch.int64, device=device)
        self._offsets = torch.arange(size, device=device)
        self._on_gpu = device.type == "cuda"
        self._stream = torch.cuda.Stream(device) if self._on_gpu else None
        self._replay = Replay(device)

    @torch.inference_mode()
    def render(self, spans: Sequence[Span]) -> list[NDArray[np.float32]]:
        """The samples of each span."""
        if self._stream is None:
            return self._render(spans)
        self._stream.wait_stream(torch.cuda.current_stream())  # the states must have been computed
        with torch.cuda.stream(self._stream):
            sounds = self._render(spans)
        torch.cuda.current_stream().wait_stream(self._stream)  # and stay until they have been read
        return sounds

    @torch.inference_mode()
    def warm(self) -> None:
        """Run, on a GPU capture, every size there will be."""
        for rows in self._rows if self._on_gpu else self._rows[:1]:
            for steps in self._steps:
                self.render([Span(0, 0, steps, 0, 0)] * rows)

    def _render(self, spans: Sequence[Span]) -> list[NDArray[np.float32]]:
        sounds: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(spans)
        for batch in batches(spans, self._rows[-1]):
            chosen = [spans[n] for n in batch]
            sound = self._batch(chosen)
            for row, n in enumerate(batch):
                sounds[n] = sound[row, spans[n].first : spans[n].last].copy()
        return sounds

    def _batch(self, spans: Sequence[Span]) -> NDArray[np.float32]:
        rows = bucket(len(spans), self._rows) if self._on_gpu else len(spans)
        longest = max(each.steps for each in spans)
        steps = bucket(longest, self._steps) if self._on_gpu else longest
        padded = [*spans, *[Span(0, 0, 0, 0, 0)] * (rows - len(spans))]
        for into, values in (
            (self._slots, [each.slot for each in padded]),
            (self._starts, [each.start for each in padded]),
            (self._lengths, [each.steps for each in padded]),
        ):
            into[:rows] = torch.tensor(values)
        sound = self._replay((rows, steps), lambda: self._compute(rows, steps))
        if not self._on_gpu:
            return sound.numpy()
        landed = torch.empty(sound.shape, dtype=sound.dtype, pin_memory=True)
        landed.copy_(sound, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return landed.numpy()

    def _compute(self, rows: int, steps: int) -> Tensor:
        slots, starts = self._slots[:rows], self._starts[:rows]
        places = (starts[:, None] + self._offsets[:steps]) % self._ring.shape[1]
        lengths = torch.minimum(self._lengths[:rows], self._known[slots] - starts)
        return self._vocoder(self._ring[slots[:, None], places], lengths)

"""Runs the same computation again and again: on a GPU as a captured CUDA graph, elsewhere as it is.

A step is some 400 small kernels; launched one by one they take longer than they compute. A graph replays at the same
addresses, so what is captured must read and write tensors that stay. The part for the GPU has not been executed by
any test.
"""

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

_WARM_UPS = 3  # before a capture: libraries choose their kernels and allocate


class Replay:
    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self._stream = torch.cuda.Stream(device) if self._on_gpu else None
        # Graphs of one device never run at once here, so they share their memory.
        self._pool = torch.cuda.graph_pool_handle() if self._on_gpu else None

    def __call__(self, key: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        """What `compute` returns. All calls with one key must mean the same computation on the same tensors; on a GPU
        the result is overwritten by the next one, and the first call runs it several times."""
        if not self._on_gpu:
            return compute()
        if key not in self._graphs:
            self._graphs[key] = self._capture(compute)
        graph, result = self._graphs[key]
        graph.replay()
        return result

    def _capture(self, compute: Callable[[], Tensor]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        current = torch.cuda.current_stream()
        assert self._stream is not None
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            for _ in range(_WARM_UPS):
                compute()
        current.wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            result = compute()
        return graph, result

"""Encoding off the event loop: the tracks of all contexts over a few threads (libopus releases the GIL).

Each track is encoded in order, by one thread at a time, everything that waits for it in one go.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ..codecs.packetizer import Format, Packet, Packetizer

# A push so short is encoded on the loop (60 ms: 0.1 ms): behind the threads' work and two changes of threads the first
# audio of a listener waited 3 ms with 160 others.
HERE_S = 0.1

Answer = Callable[[list[Packet], int | None], None]


class Encoders:
    """The threads. Must be made and closed on the event loop's thread."""

    def __init__(self, threads: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="encode")

    def track(self, form: Format, source_rate: int, answer: Answer) -> "EncoderTrack":
        """An encoder of its own for one context; `answer` is called on the event loop."""
        return EncoderTrack(self._loop, self._executor, form, source_rate, answer)

    def close(self) -> None:
        """Waits for what is being encoded."""
        self._executor.shutdown(wait=True, cancel_futures=True)


class EncoderTrack:
    """One context's encoder. Its methods are called on the event loop only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: ThreadPoolExecutor,
        form: Format,
        source_rate: int,
        answer: Answer,
    ) -> None:
        self._loop = loop
        self._executor = executor
        self._form = form
        self._source_rate = source_rate
        self._packetizer: Packetizer | None = None  # made when there is something to encode: 44 KB for Opus
        self._answer: Answer | None = answer
        self._jobs: deque[NDArray[np.int16] | None] = deque()  # None: finish
        self._running = False

    def push(self, pcm: NDArray[np.int16]) -> None:
        """Encode more; answered by one call."""
        if self._running or self._answer is None or len(pcm) > HERE_S * self._source_rate:
            self._add(pcm)
        else:
            self._loop.call_soon(self._deliver, self._open().push(pcm), None)

    def finish(self) -> None:
        """Pad and drain; answered by one call that states the length."""
        self._add(None)

    def close(self) -> None:
        """Forget the rest: nothing more is answered."""
        self._answer = None
        self._jobs.clear()
        if not self._running:
            self._packetizer = None

    def _add(self, job: NDArray[np.int16] | None) -> None:
        self._jobs.append(job)
        if not self._running:
            self._submit()

    def _submit(self) -> None:
        self._running = True
        jobs = tuple(self._jobs)
        self._jobs.clear()
        self._executor.submit(self._encode, jobs)

    def _encode(self, jobs: tuple[NDArray[np.int16] | None, ...]) -> None:
        packetizer = self._open()
        for job in jobs:
            if self._answer is None:
                break
            if job is None:
                packets, length = packetizer.finish(), packetizer.samples
            else:
                packets, length = packetizer.push(job), None
            self._loop.call_soon_threadsafe(self._deliver, packets, length)
        self._loop.call_soon_threadsafe(self._drained)

    def _open(self) -> Packetizer:
        if self._packetizer is None:
            self._packetizer = Packetizer(self._form, self._source_rate)
        return self._packetizer

    def _deliver(self, packets: list[Packet], length: int | None) -> None:
        if self._answer is not None:
            self._answer(packets, length)

    def _drained(self) -> None:
        self._running = False
        if self._answer is None:
            self._packetizer = None
        if self._jobs:
            self._submit()

"""Segments in, PCM out: the scheduler decides who is next, the pool computes, this passes between them.

Owns the utterances being spoken and who listens to each. Knows neither sessions nor sockets nor how a voice works.
Output is checked against its utterance, never against the worker it came from.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .engine import Voice
from .pool import Pool
from .scheduler import Scheduler
from .segment import Segment, Style

TARGET_LEAD_S = 4.0  # a listener with so much audio in hand does not need a core


class Listener(Protocol):
    """Called on the event loop; must not block, may call the synthesizer back."""

    def on_audio(self, utterance: int, segment: Segment, pcm: NDArray[np.int16]) -> None:
        """The whole of a segment, in order of the segments; may be empty."""
        ...

    def on_failed(self, utterance: int, message: str) -> None:
        """The utterance is closed; nothing of it follows."""
        ...


@dataclass(slots=True, eq=False)
class _Utterance:
    id: int
    style: Style
    listener: Listener
    covered_until: float


class Synthesizer:
    def __init__(self, *, workers: int, nice: int = 5, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.target_lead_s = TARGET_LEAD_S
        self._scheduler = Scheduler(self.target_lead_s)
        self._pool = Pool(self, workers=workers, nice=nice)
        self._utterances: dict[int, _Utterance] = {}
        self._jobs: dict[int, tuple[_Utterance, Segment]] = {}
        self._dispatch_soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.compute_s = 0.0  # spent in engines so far
        self.audio_s = 0.0  # that came of it

    # --- life ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the workers and return: `ready` turns true when every one has warmed."""
        self._pool.start()

    async def wait_ready(self) -> None:
        """Raises `WorkersUnavailable` when the engine cannot be loaded."""
        await self._pool.wait_ready()

    async def close(self) -> None:
        """End the workers; listeners hear nothing more."""
        self._utterances.clear()
        for handle in (self._dispatch_soon, self._timer):
            if handle is not None:
                handle.cancel()
        await self._pool.close()

    @property
    def ready(self) -> bool:
        return self._pool.ready

    @property
    def voices(self) -> tuple[Voice, ...]:
        """Empty until the first worker has warmed."""
        return self._pool.info.voices if self._pool.info else ()

    @property
    def backlog(self) -> int:
        """Segments that wait for a worker."""
        return self._scheduler.backlog

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Processes of the workers that are warmed and alive: what they cost is the server's cost."""
        return self._pool.pids

    @property
    def restarts(self) -> int:
        """Workers that had to be replaced."""
        return self._pool.restarts

    # --- utterances ---------------------------------------------------------------------------------------------

    def open(self, utterance: int, style: Style, listener: Listener) -> None:
        """Begin an utterance. An id is used once and never again."""
        if utterance in self._utterances:
            raise ValueError(f"utterance {utterance} is open already")
        now = self._clock()
        self._utterances[utterance] = _Utterance(utterance, style, listener, now)
        self._scheduler.add(utterance, now)

    def speak(self, utterance: int, segment: Segment) -> None:
        if utterance in self._utterances:
            self._scheduler.push(utterance, segment)
            self._dispatch()

    def cover(self, utterance: int, until: float) -> None:
        """The listener has audio up to the instant `until`, what is generated and not sent yet included."""
        if record := self._utterances.get(utterance):
            record.covered_until = until
            self._scheduler.cover(utterance, until)
            self._dispatch_later()

    def hold(self, utterance: int) -> None:
        """Skip the utterance until `release`."""
        if utterance in self._utterances:
            self._scheduler.hold(utterance)

    def release(self, utterance: int) -> None:
        if utterance in self._utterances:
            self._scheduler.release(utterance)
            self._dispatch_later()

    def close_utterance(self, utterance: int) -> None:
        """Drop what is pending; what a worker has in hand will be thrown away."""
        if self._utterances.pop(utterance, None):
            self._scheduler.cancel(utterance)

    # --- what the pool reports ----------------------------------------------------------------------------------

    def on_idle(self) -> None:
        self._dispatch()

    def on_spoken(self, job: int, pcm: NDArray[np.int16], compute_s: float) -> None:
        record, segment = self._jobs.pop(job)
        assert self._pool.info is not None
        duration = len(pcm) / self._pool.info.sample_rate
        self.compute_s += compute_s
        self.audio_s += duration
        if self._utterances.get(record.id) is not record:
            return
        # Until the listener says better, it has this much more in hand: or the same utterance would be next again.
        record.covered_until = max(record.covered_until, self._clock()) + duration
        self._scheduler.cover(record.id, record.covered_until)
        self._scheduler.done(record.id)
        self._dispatch()  # before the listener: encoding takes longer than handing out the next segment
        record.listener.on_audio(record.id, segment, pcm)

    def on_failed(self, job: int, message: str) -> None:
        record, _segment = self._jobs.pop(job)
        if self._utterances.get(record.id) is record:
            self.close_utterance(record.id)
            record.listener.on_failed(record.id, message)

    # --- dispatch -----------------------------------------------------------------------------------------------

    def _dispatch_later(self) -> None:
        """Once for all the changes of this turn of the loop: covers arrive in bursts."""
        if self._dispatch_soon is None and self._pool.idle:
            self._dispatch_soon = asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        """Hand work to idle workers; when some stay idle, come back when the scheduler wants to be asked again."""
        for handle in (self._dispatch_soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._dispatch_soon = self._timer = None
        now = self._clock()
        while self._pool.idle and (work := self._scheduler.next(now)):
            utterance, segment = work
            record = self._utterances[utterance]
            self._jobs[self._pool.submit(segment, record.style)] = record, segment
        if self._pool.idle and (wake_at := self._scheduler.wake_at(now)) is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, wake_at - now), self._dispatch)

"""One engine, segments in, PCM out: the scheduler decides who is next, the pool computes, this passes between them.

    spoken -> fresh: looked up when its listener needs it, hit or not -> missed: for the next idle worker

Both are in the scheduler's order, and an utterance has one segment beyond `fresh` at a time. Owns the utterances being
spoken and who listens to each. Knows neither sessions nor sockets nor how a voice works. Output is checked against its
utterance, never against the worker it came from. A stepwise engine's comes in chunks, and is cancelled, held and told
of its listener's lead in mid-segment; its order within a batch is its worker's (runner.py).
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .cache.key import key_of
from .cache.levels import Levels
from .engine import EngineInfo, Setup, Voice
from .forecast import Cost, predicted_wait
from .occupancy import RESTART_S, Occupancy
from .pool import JOB_DEADLINE_S, SETUP, Pool
from .scheduler import Scheduler
from .segment import Segment, Style
from .speech import Speech
from .wakeup import call_at

TARGET_LEAD_S = 4.0  # a listener with so much audio in hand does not need a core
COVER_STEP_S = 0.25  # a stepwise worker reckons with the sound it sent; told so much of a difference, no less
BULK_NICE = 15  # leaves an express worker 97 % of a core it shares with a bulk one (sched(7): 1024 against 36)


class Listener(Protocol):
    """Called on the event loop; must not block, may call the synthesizer back."""

    def on_audio(self, utterance: int, segment: Segment, speech: Speech, last: bool = True) -> None:
        """Sound of a segment, in order, the `last` of it marked; may be empty."""
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
    crowding: bool = False
    heard: bool = False  # some of it has been delivered
    job: int = 0  # what the pool has of it, 0: nothing
    told_until: float = 0.0  # `covered_until` as the pool knows it
    key: bytes = b""  # of the segment that is beyond `fresh`


class Synthesizer:
    def __init__(
        self,
        *,
        workers: int,
        express: int = 0,
        nice: int = BULK_NICE,
        setup: Setup = SETUP,
        job_deadline_s: float = JOB_DEADLINE_S,
        caches: Levels | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_broken: Callable[[str], None] = lambda engine: None,
    ) -> None:
        """`setup`: of the engine. `on_broken`: is told its name when it failed for no fault of a text."""
        self.name = setup.name
        self._clock = clock
        self.target_lead_s = TARGET_LEAD_S
        self.caches = caches or Levels()
        self._fresh = Scheduler(self.target_lead_s)
        self._missed = Scheduler(self.target_lead_s)
        self._hits: deque[tuple[_Utterance, Segment, Speech]] = deque()
        self._pool = Pool(self, workers=workers, nice=nice, express=express, setup=setup, job_deadline_s=job_deadline_s)
        self._utterances: dict[int, _Utterance] = {}
        self._jobs: dict[int, tuple[_Utterance, Segment]] = {}
        self._chunks: dict[int, list[NDArray[np.int16]]] = {}  # what has come of a stepwise engine's jobs
        self._begun_at: dict[int, float] = {}  # … and since when they are its
        self._dispatch_soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._workers = workers
        self._on_broken = on_broken
        self._cost = Cost(workers)
        self._occupancy = Occupancy()
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
    def info(self) -> EngineInfo | None:
        """What the engine declares of itself; None until the first worker has warmed."""
        return self._pool.info

    @property
    def backlog(self) -> int:
        """Segments that nobody has begun to speak."""
        return self._fresh.backlog + self._missed.backlog

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Processes of the workers that are warmed and alive: what they cost is the server's cost."""
        return self._pool.pids

    @property
    def restarts(self) -> int:
        """Workers that had to be replaced."""
        return self._pool.restarts

    @property
    def batch_width(self) -> int:
        """Segments being computed: by so many workers, or in one step of those of a stepwise engine."""
        return self._pool.batch if self._pool.stepwise else len(self._jobs)

    @property
    def idle_pool_bytes(self) -> int:
        """Device memory that a stepwise engine has reserved and does not use just now."""
        return self._pool.idle_bytes

    def narrow(self, width: int) -> None:
        """Let no more than so many slots of each worker be taken by what begins from now on."""
        self._pool.narrow(width)

    @property
    def loads(self) -> int:
        """Times an engine was loaded by a worker and warmed."""
        return self._pool.loads

    def predicted_wait(self, characters: int, now: float) -> float:
        """Seconds until a newcomer's first segment of so many characters can be computed without harm to others."""
        if self._pool.stepwise:
            dry_before = now + self.target_lead_s
            before = sum(dry_at < dry_before for each in (self._fresh, self._missed) for dry_at, _segment in each.due())
            return self._occupancy.predicted_wait(before=before, busy=len(self._jobs), slots=self._pool.slots)
        if not self._pool.alive:
            return RESTART_S
        cost = self._cost.of
        due = [
            (dry_at, cost(len(segment.text)))
            for fresh in (self._fresh, self._missed)
            for dry_at, segment in fresh.due()
        ]
        running_s = sum(cost(len(segment.text)) for _, segment in self._jobs.values()) / 2  # on average half done
        return predicted_wait(due, own_s=cost(characters), running_s=running_s, workers=self._workers, now=now)

    def is_cached(self, segment: Segment, style: Style) -> bool:
        """Whether a segment is in this process's memory, phrase pool included."""
        info = self._pool.info
        return info is not None and self.caches.holds(key_of(info, style, segment))

    # --- utterances ---------------------------------------------------------------------------------------------

    def open(self, utterance: int, style: Style, listener: Listener, *, crowding: bool = False) -> None:
        """Begin an utterance. An id is used once and never again. `crowding`: as in `Scheduler.add`."""
        if utterance in self._utterances:
            raise ValueError(f"utterance {utterance} is open already")
        now = self._clock()
        self._utterances[utterance] = _Utterance(utterance, style, listener, now, crowding)
        self._fresh.add(utterance)
        self._missed.add(utterance, crowding=crowding)

    def speak(self, utterance: int, segment: Segment) -> None:
        if utterance in self._utterances:
            self._fresh.push(utterance, segment)
            self._dispatch()

    def cover(self, utterance: int, until: float) -> None:
        """The listener has audio up to the instant `until`, what is generated and not sent yet included."""
        if record := self._utterances.get(utterance):
            self._cover(record, until)
            if record.job and self._pool.stepwise and abs(until - record.told_until) > COVER_STEP_S:
                record.told_until = until
                self._pool.cover(record.job, until)
            self._dispatch_later()

    def hold(self, utterance: int) -> None:
        """Skip the utterance until `release`."""
        if record := self._utterances.get(utterance):
            self._fresh.hold(utterance)
            self._missed.hold(utterance)
            self._pool.hold(record.job, True)

    def release(self, utterance: int) -> None:
        if record := self._utterances.get(utterance):
            self._fresh.release(utterance)
            self._missed.release(utterance)
            self._pool.hold(record.job, False)
            self._dispatch_later()

    def close_utterance(self, utterance: int) -> None:
        """Drop what is pending; what a worker has in hand is cut short or will be thrown away."""
        if record := self._utterances.pop(utterance, None):
            self._fresh.cancel(utterance)
            self._missed.cancel(utterance)
            if self._pool.cancel(record.job):
                self._forget(record.job)
                self._dispatch_later()

    # --- what the pool reports ----------------------------------------------------------------------------------

    def on_idle(self) -> None:
        self._dispatch()

    def on_spoken(self, job: int, speech: Speech, compute_s: float, last: bool) -> None:
        self.compute_s += compute_s
        self.audio_s += self._seconds(speech)
        if self._pool.stepwise:
            self._on_chunk(job, speech, last)
            return
        record, segment = self._jobs.pop(job)
        self._cost.end(job, self._clock(), characters=len(segment.text), compute_s=compute_s)
        if self._utterances.get(record.id) is record:
            self.caches.put(record.key, speech)
            self._missed.done(record.id)
            self._deliver(record, segment, speech)

    def _on_chunk(self, job: int, speech: Speech, last: bool) -> None:
        record, segment = self._jobs[job]
        if self._utterances.get(record.id) is not record:
            return  # all is being closed: an utterance that is closed by itself has its job cancelled
        chunks = self._chunks[job]
        chunks.append(speech.pcm)
        record.told_until = max(record.told_until, self._clock()) + self._seconds(speech)  # as its worker reckons
        if last:
            self._occupancy.measure(self._clock() - self._begun_at[job])
            self._forget(job)
            record.job = 0
            self.caches.put(record.key, Speech(np.concatenate(chunks)))
            self._missed.done(record.id)
        self._deliver(record, segment, speech, last)

    def on_failed(self, job: int, message: str) -> None:
        record, _segment = self._jobs[job]
        self._forget(job)
        record.job = 0
        if self._utterances.get(record.id) is record:
            self.close_utterance(record.id)
            record.listener.on_failed(record.id, message)

    def _forget(self, job: int) -> None:
        del self._jobs[job]
        if self._pool.stepwise:
            del self._chunks[job], self._begun_at[job]
        else:
            self._cost.end(job, self._clock())

    def on_broken(self) -> None:
        if self.info is not None:
            self._on_broken(self.info.name)

    # --- look-up ------------------------------------------------------------------------------------------------

    def _look_up(self, info: EngineInfo, now: float) -> None:
        """Look for every segment that is needed now; what is not to be had goes on to `missed`."""
        while work := self._fresh.next(now):
            utterance, segment = work
            record = self._utterances[utterance]
            record.key = key_of(info, record.style, segment)
            if (speech := self.caches.get(record.key)) is not None:
                self._hit(record, segment, speech)
            elif not self.caches.fetch(record.key, partial(self._fetched, record, segment)):
                self._missed.push(utterance, segment)

    def _fetched(self, record: _Utterance, segment: Segment, speech: Speech | None) -> None:
        if self._utterances.get(record.id) is not record:
            return
        if speech is not None:
            self._hit(record, segment, speech)
        else:
            self._missed.push(record.id, segment)
            self._dispatch()

    def _hit(self, record: _Utterance, segment: Segment, speech: Speech) -> None:
        """Deliver it in a turn of the loop of its own: `speak` must not call back, and sockets are served between."""
        self._hits.append((record, segment, speech))
        if len(self._hits) == 1:
            asyncio.get_running_loop().call_soon(self._deliver_hit)

    def _deliver_hit(self) -> None:
        record, segment, speech = self._hits.popleft()
        if self._hits:
            asyncio.get_running_loop().call_soon(self._deliver_hit)
        if self._utterances.get(record.id) is record:
            self._deliver(record, segment, speech)

    def _deliver(self, record: _Utterance, segment: Segment, speech: Speech, last: bool = True) -> None:
        # Until the listener says better, it has this much more in hand: or the same utterance would be next again.
        record.heard = True
        self._cover(record, max(record.covered_until, self._clock()) + self._seconds(speech))
        if last:
            self._fresh.done(record.id)
            self._dispatch()  # before the listener: encoding takes longer than handing out the next segment
        record.listener.on_audio(record.id, segment, speech, last)

    def _cover(self, record: _Utterance, until: float) -> None:
        record.covered_until = until
        self._fresh.cover(record.id, until)
        self._missed.cover(record.id, until)

    def _seconds(self, speech: Speech) -> float:
        assert self._pool.info is not None
        return len(speech.pcm) / self._pool.info.sample_rate

    # --- dispatch -----------------------------------------------------------------------------------------------

    def _dispatch_later(self) -> None:
        """Once for all the changes of this turn of the loop: covers arrive in bursts."""
        if self._dispatch_soon is None and self.backlog:
            self._dispatch_soon = asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        """Look up what is needed, hand the rest to idle workers, come back when a scheduler wants to be asked again."""
        for handle in (self._dispatch_soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._dispatch_soon = self._timer = None
        info = self._pool.info
        if info is None:
            return
        now = self._clock()
        self._look_up(info, now)
        while work := self._next_missed(now):
            utterance, segment = work
            record = self._utterances[utterance]
            if (speech := self.caches.get_late(record.key)) is not None:
                self._missed.done(utterance)
                self._hit(record, segment, speech)
            else:
                self._submit(record, segment)
        missed_at = self._missed.wake_at(now, urgent=self._bulk_takes) if self._pool.idle else None
        wakes = [self._fresh.wake_at(now), missed_at]
        if (wake_at := min((at for at in wakes if at is not None), default=None)) is not None:
            self._timer = call_at(wake_at, self._dispatch)

    def _submit(self, record: _Utterance, segment: Segment) -> None:
        if not self._pool.stepwise:
            urgent = self._pool.express and not (record.heard or record.crowding)
            job = self._pool.submit(segment, record.style, express=urgent)
            self._jobs[job] = record, segment
            self._cost.begin(job, self._clock(), urgent=urgent)
            return
        record.told_until = record.covered_until if record.heard else -math.inf
        job = record.job = self._pool.submit(segment, record.style, covered_until=record.told_until)
        self._jobs[job] = record, segment
        self._chunks[job] = []
        self._begun_at[job] = self._clock()

    def _next_missed(self, now: float) -> tuple[int, Segment] | None:
        """What an idle worker can take."""
        if self._pool.idle_express and (work := self._missed.next(now, urgent=True)) is not None:
            return work
        return self._missed.next(now, urgent=self._bulk_takes) if self._pool.idle else None

    @property
    def _bulk_takes(self) -> bool | None:
        """Urgent segments wait for an express worker: with another they would wait for all that come after them."""
        return False if self._pool.express else None

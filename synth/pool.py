"""The workers of one engine as the gateway's event loop sees them: started, watched, replaced, given jobs.

Those of a whole-segment engine have one job each. Most do the bulk of the work at a low priority; a few express ones
stand ready at the gateway's own, so that a first segment takes the core from a bulk segment in mid-computation instead
of waiting for its end (docs/processes.md). Those of a stepwise engine have as many jobs as slots, and one more, which
joins as soon as a slot is free without asking us.

Owns processes and their sockets. Knows neither utterances nor the order of work: whoever submits decides.
"""

import asyncio
import contextlib
import itertools
import logging
import math
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np

from .engine import EngineInfo, Setup
from .link import START_DEADLINE_S, Link
from .messages import Cancel, Cover, Failed, Hold, Narrow, Spoken, Synthesize
from .registry import BUNDLED, DEFAULT
from .segment import Segment, Style, without_margins
from .speech import Speech

logger = logging.getLogger("voxgate.pool")

# -P: modules in the directory the gateway was started in must not shadow ours.
WORKER_COMMAND = (sys.executable, "-P", "-m", f"{__package__}.worker")
SETUP = Setup(DEFAULT, BUNDLED[DEFAULT].factory)
DEVICE_START_DEADLINE_S = 600.0  # weights of gigabytes, and graphs captured at every width
AT_THE_DOOR = 1  # jobs of a stepwise worker beyond its slots
JOB_DEADLINE_S = 10.0  # one segment takes about 30 ms, and steps less; a worker silent for so long is stuck
START_ATTEMPTS = 3  # a worker that never came up is given up after so many
BACK_OFF_S = 0.5, 30.0  # before a restart: the first, doubled up to the last while workers die young
SETTLED_S = 30.0  # a worker that lived so long did not die young
EXIT_S = 0.2  # for a worker whose socket has closed to be gone by itself


class WorkersUnavailable(RuntimeError):
    """The workers do not come up: the engine cannot be loaded here."""


class PoolListener(Protocol):
    """Called on the event loop; must not block."""

    def on_idle(self) -> None:
        """A worker can take a job."""
        ...

    def on_spoken(self, job: int, speech: Speech, compute_s: float, last: bool) -> None:
        """Sound of a job; not the `last` of it only where the engine is stepwise."""
        ...

    def on_failed(self, job: int, message: str) -> None: ...

    def on_broken(self) -> None:
        """The engine failed, not one text: a worker was lost, or its model raised what is no answer."""
        ...


class Pool:
    def __init__(
        self,
        listener: PoolListener,
        *,
        workers: int,
        nice: int,
        express: int = 0,
        setup: Setup = SETUP,
        job_deadline_s: float = JOB_DEADLINE_S,
        back_off_s: tuple[float, float] = BACK_OFF_S,
        command: Sequence[str] = WORKER_COMMAND,
    ) -> None:
        self._listener = listener
        self._nices = (nice,) * workers + (0,) * express  # of each seat
        self._bulk_seats = workers
        self._job_deadline_s = job_deadline_s
        self._back_off_s = back_off_s
        self._command = command
        self._setup = setup
        self._alive: set[Link] = set()  # warmed
        self._idle_bulk: list[Link] = []  # whole-segment engines only, like the next
        self._idle_express: list[Link] = []
        self._by_job: dict[int, Link] = {}  # stepwise engines only
        self._width = math.inf  # slots that may be given away, of each stepwise worker
        self._job_numbers = itertools.count(1)
        self._supervisors: list[asyncio.Task[None]] = []
        self._all_warmed: asyncio.Future[None] | None = None
        self._warmed_seats: set[int] = set()
        self.info: EngineInfo | None = None  # what the first warmed worker declared
        self.stepwise = False
        self.restarts = 0
        self.loads = 0

    # --- life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._all_warmed = asyncio.get_running_loop().create_future()
        self._supervisors = [
            asyncio.create_task(self._supervise(seat), name=f"voxgate-worker-{seat}")
            for seat in range(len(self._nices))
        ]

    async def wait_ready(self) -> None:
        """Until every worker has warmed; raises `WorkersUnavailable` when one cannot."""
        if self._all_warmed is None:
            raise RuntimeError("the pool has not been started")
        await asyncio.shield(self._all_warmed)

    @property
    def ready(self) -> bool:
        """Every worker warmed at the start, and at least one is alive now."""
        return len(self._warmed_seats) == len(self._nices) and bool(self._alive)

    async def close(self) -> None:
        """End every worker; a job in flight gets no answer any more."""
        for supervisor in self._supervisors:
            supervisor.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        self._supervisors.clear()
        if self._all_warmed is not None:
            self._all_warmed.cancel()

    # --- work ---------------------------------------------------------------------------------------------------

    @property
    def idle(self) -> int:
        """How many more jobs of any kind can be submitted now."""
        if self.stepwise:
            return sum(self._places(worker) for worker in self._alive)
        return len(self._idle_bulk)

    @property
    def idle_express(self) -> int:
        """Workers that can take an express job now, besides those."""
        return len(self._idle_express)

    @property
    def express(self) -> bool:
        """Whether there are express workers at all just now, idle or not."""
        return any(worker.seat >= self._bulk_seats for worker in self._alive)

    @property
    def alive(self) -> int:
        """Workers that are there."""
        return len(self._alive)

    @property
    def pids(self) -> tuple[int, ...]:
        """Processes of the workers that are warmed and alive."""
        return tuple(worker.pid for worker in self._alive)

    @property
    def slots(self) -> int:
        """Segments that can be computed at once."""
        if not self.stepwise:
            return len(self._alive)
        return sum(self._open_slots for _ in self._alive)

    @property
    def batch(self) -> int:
        """Rows that stepwise workers computed last, together."""
        return sum(worker.batch for worker in self._alive)

    @property
    def idle_bytes(self) -> int:
        """Device memory that stepwise workers have reserved for slots that nothing is in."""
        return sum(worker.idle_bytes for worker in self._alive)

    def submit(self, segment: Segment, style: Style, *, express: bool = False, covered_until: float = -math.inf) -> int:
        """Give one segment to a worker (`idle` or, with `express`, `idle_express` must be over 0); the job's number."""
        job = next(self._job_numbers)
        if self.stepwise:
            worker = max(self._alive, key=self._places)
            self._by_job[job] = worker
        else:
            worker = (self._idle_express if express and self._idle_express else self._idle_bulk).pop()
        worker.give(Synthesize(job, without_margins(segment), style, covered_until), self._job_deadline_s)
        return job

    # Of a stepwise engine; jobs of others run to their end.

    def cancel(self, job: int) -> bool:
        """Nothing more of it is wanted, and nothing more is told; False where it must run to its end."""
        worker = self._by_job.pop(job, None)
        if worker is None:
            return False
        worker.take_back(job)
        worker.tell(Cancel(job))
        return True

    def hold(self, job: int, held: bool) -> None:
        if worker := self._by_job.get(job):
            worker.tell(Hold(job, held))

    def cover(self, job: int, until: float) -> None:
        """The listener has audio up to the instant `until`."""
        if worker := self._by_job.get(job):
            worker.tell(Cover(job, until))

    def narrow(self, width: int) -> None:
        """Give no more than so many slots of each worker away; segments that have one keep it."""
        if width == self._width:
            return
        self._width = width
        if self.stepwise:
            for worker in self._alive:
                worker.tell(Narrow(width))
            self._listener.on_idle()

    @property
    def _open_slots(self) -> int:
        """Of each stepwise worker, those that may be given away."""
        assert self.info is not None
        return int(min(self._width, self.info.max_slots))

    def _places(self, worker: Link) -> int:
        return max(0, self._open_slots + AT_THE_DOOR - len(worker.jobs))

    # --- what workers report ------------------------------------------------------------------------------------

    def on_worker_ready(self, worker: Link, info: EngineInfo) -> None:
        self.info = self.info or info
        self.stepwise = info.stepwise
        self._alive.add(worker)
        self.loads += 1
        if not self.stepwise:
            self._idle_like(worker).append(worker)
        elif self._width < info.max_slots:
            worker.tell(Narrow(int(self._width)))
        self._warmed_seats.add(worker.seat)
        if len(self._warmed_seats) == len(self._nices) and self._all_warmed is not None and not self._all_warmed.done():
            self._all_warmed.set_result(None)
        self._listener.on_idle()

    def on_worker_reply(self, worker: Link, reply: Spoken | Failed) -> None:
        over = isinstance(reply, Failed) or reply.last
        if not self.stepwise:
            self._idle_like(worker).append(worker)
        elif over:
            del self._by_job[reply.job]
        match reply:
            case Spoken(job, pcm, compute_s, last, times):
                self._listener.on_spoken(job, Speech(np.frombuffer(pcm, np.int16), times), compute_s, last)
            case Failed(job, message, broken):
                self._listener.on_failed(job, message)
                if broken:
                    self._listener.on_broken()
        if over:
            self._listener.on_idle()

    def on_worker_lost(self, worker: Link, jobs: tuple[int, ...]) -> None:
        self._alive.discard(worker)
        with contextlib.suppress(ValueError):
            self._idle_like(worker).remove(worker)
        for job in jobs:
            self._by_job.pop(job, None)
        for job in jobs:
            self._listener.on_failed(job, "the engine worker died")
        if worker.ready:  # one that never came up is the start's to judge
            self._listener.on_broken()

    def _idle_like(self, worker: Link) -> list[Link]:
        return self._idle_bulk if worker.seat < self._bulk_seats else self._idle_express

    # --- supervision --------------------------------------------------------------------------------------------

    async def _supervise(self, seat: int) -> None:
        """One worker process after the other, for as long as the pool lives."""
        loop = asyncio.get_running_loop()
        first, cap = self._back_off_s
        young_deaths = 0
        while True:
            began_at = loop.time()
            worker = Link(self, seat, DEVICE_START_DEADLINE_S if self._setup.device else START_DEADLINE_S)
            try:
                cause = await self._run(worker)
            except OSError as error:  # no process or no socket to be had just now
                cause = str(error)
            young_deaths = 0 if worker.ready and loop.time() - began_at > SETTLED_S else young_deaths + 1
            if seat not in self._warmed_seats and young_deaths == START_ATTEMPTS:
                return self._give_up(cause)
            delay = min(first * 2 ** max(young_deaths - 1, 0), cap)
            logger.error("a worker of %s ended (%s); a new one starts in %.1f s", self._setup.name, cause, delay)
            self.restarts += 1
            await asyncio.sleep(delay)

    async def _run(self, worker: Link) -> str:
        """One process from its start to its end; returns how it ended."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                str(theirs.fileno()),
                str(self._nices[worker.seat]),
                msgspec.json.encode(self._setup).decode(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=2,  # standard output belongs to the gateway
                pass_fds=[theirs.fileno()],
            )
            theirs.close()  # or its end would never be seen to close
            try:
                await worker.live(ours, process)
                # One whose socket closed is on its way out: killing it now could take its exit status from asyncio.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), EXIT_S)
            finally:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
                code = await process.wait()
        return worker.cause or _ending(code)

    def _give_up(self, cause: str) -> None:
        message = f"the workers of {self._setup.name} do not come up: {cause}, {START_ATTEMPTS} times"
        logger.error("%s", message)
        if self._all_warmed is not None and not self._all_warmed.done():
            self._all_warmed.set_exception(WorkersUnavailable(message))
            self._all_warmed.exception()  # marks it as seen: the line above is there for those who do not wait


def _ending(code: int) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit status {code}"

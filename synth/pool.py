"""The engine workers as the gateway's event loop sees them: started, watched, replaced, given one job each.

Most do the bulk of the work at a low priority; a few express ones stand ready at the gateway's own, so that a first
segment takes the core from a bulk segment in mid-computation instead of waiting for its end (docs/processes.md).

Owns processes and their sockets. Knows neither utterances nor the order of work: whoever submits decides.
"""

import asyncio
import contextlib
import itertools
import logging
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np

from .engine import EngineInfo
from .messages import (
    MAX_REPLY_BYTES,
    PREFIX,
    BadMessage,
    Failed,
    Ready,
    Reply,
    Spoken,
    Synthesize,
    decode_reply,
    encode,
    payload_length,
)
from .segment import Segment, Style, without_margins
from .speech import Speech

logger = logging.getLogger("voxgate.pool")

# -P: modules in the directory the gateway was started in must not shadow ours.
WORKER_COMMAND = (sys.executable, "-P", "-m", f"{__package__}.worker")
START_DEADLINE_S = 60.0  # load and warm-up; about 1 s on the reference machine
JOB_DEADLINE_S = 10.0  # one segment takes about 30 ms; a worker silent for so long is stuck
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

    def on_spoken(self, job: int, speech: Speech, compute_s: float) -> None: ...

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
        self._alive: set[_Worker] = set()  # warmed
        self._idle_bulk: list[_Worker] = []
        self._idle_express: list[_Worker] = []
        self._job_numbers = itertools.count(1)
        self._supervisors: list[asyncio.Task[None]] = []
        self._all_warmed: asyncio.Future[None] | None = None
        self._warmed_seats: set[int] = set()
        self.info: EngineInfo | None = None  # what the first warmed worker declared
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
        """Workers that can take any job now."""
        return len(self._idle_bulk)

    @property
    def idle_express(self) -> int:
        """Workers that can take an express job now, besides those."""
        return len(self._idle_express)

    @property
    def pids(self) -> tuple[int, ...]:
        """Processes of the workers that are warmed and alive."""
        return tuple(worker.pid for worker in self._alive)

    def submit(self, segment: Segment, style: Style, *, express: bool = False) -> int:
        """Give one segment to an idle worker (there must be one that takes it) and return the number of the job."""
        idle = self._idle_express if express and self._idle_express else self._idle_bulk
        worker, job = idle.pop(), next(self._job_numbers)
        worker.give(Synthesize(job, without_margins(segment), style), self._job_deadline_s)
        return job

    # --- what workers report ------------------------------------------------------------------------------------

    def on_worker_ready(self, worker: "_Worker", info: EngineInfo) -> None:
        self.info = self.info or info
        self._alive.add(worker)
        self.loads += 1
        self._idle_like(worker).append(worker)
        self._warmed_seats.add(worker.seat)
        if len(self._warmed_seats) == len(self._nices) and self._all_warmed is not None and not self._all_warmed.done():
            self._all_warmed.set_result(None)
        self._listener.on_idle()

    def on_worker_reply(self, worker: "_Worker", reply: Spoken | Failed) -> None:
        self._idle_like(worker).append(worker)
        match reply:
            case Spoken(job, pcm, compute_s, times):
                self._listener.on_spoken(job, Speech(np.frombuffer(pcm, np.int16), times), compute_s)
            case Failed(job, message, broken):
                self._listener.on_failed(job, message)
                if broken:
                    self._listener.on_broken()
        self._listener.on_idle()

    def on_worker_lost(self, worker: "_Worker", job: int | None) -> None:
        self._alive.discard(worker)
        with contextlib.suppress(ValueError):
            self._idle_like(worker).remove(worker)
        if job is not None:
            self._listener.on_failed(job, "the engine worker died")
        if worker.ready:  # one that never came up is the start's to judge
            self._listener.on_broken()

    def _idle_like(self, worker: "_Worker") -> "list[_Worker]":
        return self._idle_bulk if worker.seat < self._bulk_seats else self._idle_express

    # --- supervision --------------------------------------------------------------------------------------------

    async def _supervise(self, seat: int) -> None:
        """One worker process after the other, for as long as the pool lives."""
        loop = asyncio.get_running_loop()
        first, cap = self._back_off_s
        young_deaths = 0
        while True:
            began_at = loop.time()
            worker = _Worker(self, seat)
            try:
                cause = await self._run(worker)
            except OSError as error:  # no process or no socket to be had just now
                cause = str(error)
            young_deaths = 0 if worker.ready and loop.time() - began_at > SETTLED_S else young_deaths + 1
            if seat not in self._warmed_seats and young_deaths == START_ATTEMPTS:
                return self._give_up(cause)
            delay = min(first * 2 ** max(young_deaths - 1, 0), cap)
            logger.error("engine worker ended (%s); a new one starts in %.1f s", cause, delay)
            self.restarts += 1
            await asyncio.sleep(delay)

    async def _run(self, worker: "_Worker") -> str:
        """One process from its start to its end; returns how it ended."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                str(theirs.fileno()),
                str(self._nices[worker.seat]),
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
        message = f"the engine workers do not come up: {cause}, {START_ATTEMPTS} times"
        logger.error("%s", message)
        if self._all_warmed is not None and not self._all_warmed.done():
            self._all_warmed.set_exception(WorkersUnavailable(message))
            self._all_warmed.exception()  # marks it as seen: the line above is there for those who do not wait


class _Worker(asyncio.BufferedProtocol):
    """One worker process: its socket, the job it has, the time it has left for it."""

    def __init__(self, pool: Pool, seat: int) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._gone = asyncio.get_running_loop().create_future()
        self._deadline: asyncio.TimerHandle | None = None
        self._job: int | None = None
        self._prefix = bytearray(PREFIX.size)
        self._payload: bytearray | None = None  # None while the prefix is being read
        self._filled = 0
        self.seat = seat
        self.ready = False
        self.cause = ""  # why we ended it, if we did

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def live(self, connection: socket.socket, process: asyncio.subprocess.Process) -> None:
        """Serve the socket until it closes: the end of the process closes it too."""
        loop = asyncio.get_running_loop()
        self._process = process
        self._allow(START_DEADLINE_S)
        transport, _ = await loop.create_unix_connection(lambda: self, sock=connection)
        try:
            await self._gone
        finally:
            transport.abort()
            self._end_deadline()

    def give(self, request: Synthesize, deadline_s: float) -> None:
        assert self._transport is not None
        self._job = request.job
        self._allow(deadline_s)
        self._transport.write(encode(request))

    # --- BufferedProtocol: a reply is received where it will be decoded from, whatever its size -----------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._prefix if self._payload is None else self._payload)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        try:
            if self._payload is None:
                if self._filled == PREFIX.size:
                    self._payload, self._filled = bytearray(payload_length(self._prefix, MAX_REPLY_BYTES)), 0
            elif self._filled == len(self._payload):
                payload, self._payload, self._filled = self._payload, None, 0
                self._on_reply(decode_reply(payload))
        except BadMessage as error:
            self._kill(f"it broke the protocol: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        job, self._job = self._job, None
        self._pool.on_worker_lost(self, job)
        if not self._gone.done():
            self._gone.set_result(None)

    # --- its parts ----------------------------------------------------------------------------------------------

    def _on_reply(self, reply: Reply) -> None:
        self._end_deadline()
        match reply:
            case Ready(info) if not self.ready:
                self.ready = True
                self._pool.on_worker_ready(self, info)
            case Spoken(job) | Failed(job) if job == self._job:
                self._job = None
                self._pool.on_worker_reply(self, reply)
            case _:
                raise BadMessage(f"an unexpected reply of type {type(reply).__name__}")

    def _allow(self, seconds: float) -> None:
        cause = f"it was silent for {seconds:g} s"
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._kill, cause)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _kill(self, cause: str) -> None:
        self.cause = cause
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        if self._transport is not None:
            self._transport.abort()


def _ending(code: int) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit status {code}"

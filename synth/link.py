"""One engine worker as the gateway's event loop sees it: its socket, the jobs it has, the time it has left for them.

Knows the messages and when a worker is stuck. What the worker is for and who replaces it is the pool's (pool.py).
"""

import asyncio
import contextlib
import socket
from typing import Protocol, cast

from .engine import EngineInfo
from .messages import (
    MAX_REPLY_BYTES,
    PREFIX,
    BadMessage,
    Failed,
    Figures,
    NotReady,
    Ready,
    Reply,
    Request,
    Spoken,
    Synthesize,
    decode_reply,
    encode,
    payload_length,
)

START_DEADLINE_S = 60.0  # load and warm-up; about 1 s on the reference machine


class LinkListener(Protocol):
    """Called on the event loop; must not block."""

    def on_worker_ready(self, worker: "Link", info: EngineInfo) -> None: ...

    def on_worker_reply(self, worker: "Link", reply: Spoken | Failed) -> None:
        """A job of this worker is answered; one that is over is not among `worker.jobs` any more."""
        ...

    def on_worker_lost(self, worker: "Link", jobs: tuple[int, ...]) -> None:
        """It has gone, and with it these jobs."""
        ...


class Link(asyncio.BufferedProtocol):
    """One worker process, from its start to its end."""

    def __init__(self, listener: LinkListener, seat: int, start_deadline_s: float = START_DEADLINE_S) -> None:
        self._listener = listener
        self._start_deadline_s = start_deadline_s
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._gone = asyncio.get_running_loop().create_future()
        self._deadline: asyncio.TimerHandle | None = None
        self._deadline_s = start_deadline_s
        self._prefix = bytearray(PREFIX.size)
        self._payload: bytearray | None = None  # None while the prefix is being read
        self._filled = 0
        self._stepwise = False
        self.jobs: set[int] = set()
        self.batch = 0  # rows that a stepwise engine computed last
        self.idle_bytes = 0  # reserved by a stepwise engine for its slots, and used by none
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
        self._allow(self._start_deadline_s)
        transport, _ = await loop.create_unix_connection(lambda: self, sock=connection)
        try:
            await self._gone
        finally:
            transport.abort()
            self._end_deadline()

    def give(self, request: Synthesize, deadline_s: float) -> None:
        """One more job; a worker that says nothing for `deadline_s` while it has any is stuck."""
        self.jobs.add(request.job)
        self._deadline_s = deadline_s
        if self._deadline is None:
            self._allow(deadline_s)
        self.tell(request)

    def take_back(self, job: int) -> None:
        """It is not wanted any more; what comes of it is thrown away. For stepwise engines."""
        self.jobs.discard(job)
        if not self.jobs:
            self._end_deadline()

    def tell(self, request: Request) -> None:
        assert self._transport is not None
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
        jobs, self.jobs = tuple(self.jobs), set()
        self._listener.on_worker_lost(self, jobs)
        if not self._gone.done():
            self._gone.set_result(None)

    # --- its parts ----------------------------------------------------------------------------------------------

    def _on_reply(self, reply: Reply) -> None:
        self._end_deadline()
        match reply:
            case Spoken(job, last=last) if job in self.jobs and (last or self._stepwise):
                if last:
                    self.jobs.discard(job)
                self._listener.on_worker_reply(self, reply)
            case Failed(job) if job in self.jobs:
                self.jobs.discard(job)
                self._listener.on_worker_reply(self, reply)
            case Figures(batch, idle_bytes) if self._stepwise:
                self.batch, self.idle_bytes = batch, idle_bytes
            case Spoken() | Failed() if self._stepwise:
                pass  # of a job that was taken back
            case Ready(info) if not self.ready:
                self.ready = True
                self._stepwise = info.stepwise
                self.idle_bytes = info.steps.pool_bytes if info.steps is not None else 0
                self._listener.on_worker_ready(self, info)
            case NotReady(message) if not self.ready:
                self._kill(message)
            case _:
                raise BadMessage(f"an unexpected reply of type {type(reply).__name__}")
        if self.jobs and self._deadline is None:
            self._allow(self._deadline_s)

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

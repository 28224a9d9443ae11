"""A whole run: one driver here, or several in processes of their own, and an eye on the server's processes.

The processes speak pickles over their standard streams, each with its length before it. They share nothing but the
instant at which the plan begins.
"""

import asyncio
import contextlib
import pickle
import struct
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .conversation import Target
from .driver import Driver
from .histogram import Histogram
from .plan import Load
from .processes import Usage, usage
from .statistics import Statistics

START_SECONDS = 30.0  # for a process of ours to be there
LOOK_SECONDS = 1.0  # between two looks at progress and at the server
_LENGTH = struct.Struct("!I")


@dataclass(slots=True)
class Progress:
    """Where a run stands. `ttfa`: of the last seconds."""

    live: int = 0
    done: int = 0
    refused: int = 0
    failed: int = 0
    underrun_seconds: float = 0.0
    ttfa: Histogram = field(default_factory=Histogram)

    def merge(self, other: "Progress") -> None:
        self.live += other.live
        self.done += other.done
        self.refused += other.refused
        self.failed += other.failed
        self.underrun_seconds += other.underrun_seconds
        self.ttfa.merge(other.ttfa)


@dataclass(frozen=True, slots=True)
class ServerUse:
    """What the server's processes used on the plateau."""

    processes: int
    cpu_seconds: float
    seconds: float
    peak_rss_bytes: int


class Stop:
    """Ctrl+C, so to speak: `request` once, from the event loop."""

    def __init__(self) -> None:
        self.why = ""
        self._asked = asyncio.Event()

    def request(self, why: str) -> None:
        self.why = self.why or why
        self._asked.set()

    async def requested(self) -> str:
        await self._asked.wait()
        return self.why


async def run(
    load: Load,
    target: Target,
    *,
    processes: int = 1,
    server_pid: int | None = None,
    on_progress: Callable[[float, Progress], None],
    stop: Stop,
) -> tuple[Statistics, ServerUse | None]:
    """Raises `OSError` when a process of ours does not come up. `on_progress` gets the seconds since the begin."""
    async with contextlib.AsyncExitStack() as held:
        watch = _ServerWatch(server_pid, load)
        if processes == 1:
            began_at = time.monotonic()
            driver = Driver(load, target, began_at)
            work = asyncio.create_task(driver.run())
            told = lambda: progress(driver)  # noqa: E731
            end = driver.stop
        else:
            shares = [await held.enter_async_context(_share(part, target)) for part in load.split(processes)]
            began_at = time.monotonic() + 0.1
            for share in shares:
                share.say(began_at)
            work = asyncio.create_task(_together(load, began_at, shares))
            told = lambda: _sum(share.progress for share in shares)  # noqa: E731
            end = lambda why: [share.say(why) for share in shares]  # noqa: E731
        looking = asyncio.create_task(_look(began_at, told, on_progress, watch))
        stopping = asyncio.create_task(stop.requested())
        try:
            await asyncio.wait([work, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                end(stop.why)
            return await work, watch.result()
        finally:
            for task in (looking, stopping, work):
                task.cancel()


def progress(driver: Driver) -> Progress:
    """What one driver has to tell."""
    statistics = driver.statistics
    told = Progress(driver.live)
    for slice in statistics.slices:
        told.done += slice.done
        told.refused += slice.refused
        told.failed += slice.failed
        told.underrun_seconds += slice.underrun_seconds
    at = int((time.monotonic() - statistics.began_at) / statistics.slice_seconds)
    for slice in statistics.slices[max(0, at - 4) : at + 1]:
        told.ttfa.merge(slice.ttfa)
    return told


async def _look(
    began_at: float,
    told: Callable[[], Progress],
    on_progress: Callable[[float, Progress], None],
    watch: "_ServerWatch",
) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        elapsed = time.monotonic() - began_at
        watch.look(elapsed)
        on_progress(elapsed, told())


# The server.


class _ServerWatch:
    """CPU from the first look at the plateau to the last on it: looks are a second apart, and so is the error."""

    def __init__(self, pid: int | None, load: Load) -> None:
        self._pid = pid
        self._load = load
        self._first: tuple[float, Usage] | None = None
        self._last: tuple[float, Usage] | None = None
        self._peak = 0

    def look(self, elapsed: float) -> None:
        if self._pid is None or not self._load.ramp <= elapsed < self._load.until + LOOK_SECONDS:
            return
        if (now := usage(self._pid)) is not None:
            self._peak = max(self._peak, now.rss_bytes)
            self._first = self._first or (elapsed, now)
            self._last = (elapsed, now)

    def result(self) -> ServerUse | None:
        if self._first is None or self._last is None or self._first is self._last:
            return None
        (begin, first), (end, last) = self._first, self._last
        return ServerUse(last.processes, last.cpu_seconds - first.cpu_seconds, end - begin, self._peak)


# Several processes.


class _Share:
    """A process of ours, as seen from here."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.progress = Progress()
        self._process = process

    def say(self, what: Any) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(pack(what))

    async def hear(self) -> Any:
        """None when the process is gone."""
        assert self._process.stdout is not None
        return await unpack(self._process.stdout)

    async def result(self) -> Statistics | None:
        while True:
            heard = await self.hear()
            if not isinstance(heard, Progress):
                return heard
            self.progress = heard


@contextlib.asynccontextmanager
async def _share(load: Load, target: Target) -> AsyncIterator[_Share]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", f"{__package__}.share"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl+C is for us, and we pass it on
    )
    share = _Share(process)
    try:
        share.say((load, target))
        async with asyncio.timeout(START_SECONDS):
            if await share.hear() is None:
                raise OSError(f"a process of the load test ended with {await process.wait()} before it began")
        yield share
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()


async def _together(load: Load, began_at: float, shares: list[_Share]) -> Statistics:
    total = Statistics(load, began_at)
    for part in await asyncio.gather(*(share.result() for share in shares)):
        if part is None:
            total.cut_short = "a process of the load test died"
        else:
            total.merge(part)
    return total


def _sum(parts: Iterable[Progress]) -> Progress:
    total = Progress()
    for part in parts:
        total.merge(part)
    return total


# The messages between them.


def pack(what: Any) -> bytes:
    packed = pickle.dumps(what)
    return _LENGTH.pack(len(packed)) + packed


async def unpack(stream: asyncio.StreamReader) -> Any:
    try:
        (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
        return pickle.loads(await stream.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):  # the other side is gone
        return None

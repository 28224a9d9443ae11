"""Carries out a plan against a server, in one process: the asyncio side of the load test.

Owns tasks and timers. What happens is decided in plan.py, spoken in conversation.py and judged in listening.py and
statistics.py.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from ..client import ConnectionClosed, ContextError, HandshakeRefused, ProtocolError, VoiceError
from .conversation import Conversation, Target, until
from .lines import Lines
from .listening import Listening, Outcome, Result
from .plan import Load, Planned, Script, arrivals, stream_starts
from .statistics import Statistics

DRAIN_SECONDS = 20.0  # behind the end, for what has been asked for to be heard out
STUCK_SECONDS = 30.0  # without a sign of life: an utterance that failed
GONE_SECONDS = 3.0  # without an answer to any handshake, while they fail: the server is gone
RETRY_SECONDS = 1.0  # before a listener who was refused asks again, unless the server says when
LAG_SECONDS = 0.02  # between two looks at the event loop's lag
MOST_LIVE = 5000  # utterances at once in an open loop, in one process


class Driver:
    """One run. `run` once; `stop` ends it early, from the event loop."""

    def __init__(self, load: Load, target: Target, began_at: float) -> None:
        """`began_at`: the monotonic instant that the plan counts from; may lie ahead."""
        self.statistics = Statistics(load, began_at)
        self._load = load
        self._target = target
        self._began_at = began_at
        self._ends_at = began_at + load.until
        self._lines = Lines(target.url, target.key, target.contexts_per_connection, self.statistics)
        self._live: dict[Listening, asyncio.Timeout] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._fault: BaseException | None = None  # ours, not the server's

    @property
    def live(self) -> int:
        """Utterances that have been asked for and not been heard out."""
        return len(self._live)

    async def run(self) -> Statistics:
        cpu, wall = time.process_time(), time.monotonic()
        feeding = self._arrive() if self._load.rate is not None else self._begin_streams()
        background = [asyncio.create_task(work) for work in (feeding, self._watch_lag(), self._watch_stuck())]
        try:
            await self._stopped(self._ends_at)
            until_now = min(time.monotonic() - self._began_at, self._load.until)
            self.statistics.plateau_seconds = max(0.0, until_now - self._load.ramp)
            await self._drain()
        finally:
            await _cancel(*background, *self._tasks)
            client = self.statistics.client
            client.cpu_seconds, client.wall_seconds = time.process_time() - cpu, time.monotonic() - wall
            await self._lines.close()
        if self._fault is not None:
            raise self._fault
        return self.statistics

    def stop(self, why: str) -> None:
        """End now; what is under way is cut."""
        if not self._stopping.is_set():
            self.statistics.cut_short = why
            self._stopping.set()

    async def _stopped(self, at: float) -> None:
        """Waits for a stop, but no longer than up to `at`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, at - time.monotonic())):
                await self._stopping.wait()

    async def _drain(self) -> None:
        give_up = asyncio.create_task(self._stopped(time.monotonic() + DRAIN_SECONDS))
        while self._tasks and not give_up.done():
            await asyncio.wait([give_up, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        await _cancel(give_up)

    # Who asks, and when.

    async def _arrive(self) -> None:
        script = Script(self._load)
        for offset in arrivals(self._load):
            await until(due_at := self._began_at + offset)
            planned = script.next()
            if len(self._tasks) < MOST_LIVE:
                self._spawn(self._arrival(planned, due_at))
            else:
                self.statistics.client.not_begun += 1

    async def _arrival(self, planned: Planned, due_at: float) -> None:
        self._paced(due_at)
        await self._utter(planned)

    async def _begin_streams(self) -> None:
        for number, offset in stream_starts(self._load):
            await until(due_at := self._began_at + offset)
            self._spawn(self._stream(Script(self._load, number), due_at))

    async def _stream(self, script: Script, due_at: float) -> None:
        """A listener in real time, for as long as the run lasts."""
        while due_at < self._ends_at:
            await until(due_at)
            self._paced(due_at)
            planned = script.next()
            result, pause = await self._utter(planned)
            if result.outcome in (Outcome.DONE, Outcome.CANCELLED):
                due_at = result.ended_at + planned.think
            else:
                due_at = time.monotonic() + pause

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._fault = fault
            self._stopping.set()

    # One utterance.

    async def _utter(self, planned: Planned) -> tuple[Result, float]:
        """From asking to having heard it out. What came of it, and how long to wait where it came to nothing."""
        text = planned.text
        listening = Listening(len(text.text), text.pieces, time.monotonic(), slow=planned.slow)
        result: Result | None = None
        pause = RETRY_SECONDS
        try:
            async with asyncio.timeout(None) as limit:
                self._live[listening] = limit
                result, pause = await self._speak(planned, listening)
            await until(result.ended_at)
        except TimeoutError:
            result = listening.failed("stuck", time.monotonic())
        finally:
            del self._live[listening]
            result = result or listening.cut(time.monotonic())
            self.statistics.ended(result)
        return result, pause

    async def _speak(self, planned: Planned, listening: Listening) -> tuple[Result, float]:
        conversation = Conversation(
            planned, listening, self._load.tokens_per_second, self.statistics.heard, self._paced
        )
        try:
            async with self._lines.place(slow=planned.slow) as connection:
                await conversation.run(connection, self._target)
            return listening.finished(time.monotonic()), RETRY_SECONDS
        except HandshakeRefused as refused:
            pause = RETRY_SECONDS if refused.retry_after is None else refused.retry_after
            return listening.refused(f"handshake {refused.status}", time.monotonic()), pause
        except ContextError as ended:
            pause = RETRY_SECONDS if ended.retry_after is None else ended.retry_after
            return listening.ended_with(ended.code, time.monotonic()), pause
        except ConnectionClosed as closed:
            return listening.failed(f"closed {closed.code}", time.monotonic()), RETRY_SECONDS
        except ProtocolError:
            return listening.failed("protocol", time.monotonic()), RETRY_SECONDS
        except VoiceError:
            if time.monotonic() - self._lines.last_answer_at > GONE_SECONDS:
                self.stop("the server is gone")
            return listening.failed("unreachable", time.monotonic()), RETRY_SECONDS

    # The client's own state.

    def _paced(self, due_at: float) -> None:
        self.statistics.client.pacing.add(max(0.0, time.monotonic() - due_at))

    async def _watch_lag(self) -> None:
        lag = self.statistics.client.loop_lag
        while True:
            due_at = time.monotonic() + LAG_SECONDS
            await until(due_at)
            lag.add(max(0.0, time.monotonic() - due_at))

    async def _watch_stuck(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            silent_since = time.monotonic() - STUCK_SECONDS
            for listening, limit in self._live.items():
                if max(listening.active_at, listening.heard_out_at or 0.0) < silent_since and not limit.expired():
                    limit.reschedule(loop.time())


async def _cancel(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

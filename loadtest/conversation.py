"""One utterance over one connection: text out at its pace, events into the record, the slow reader, the interruption.

Owns the order of sends and reads of one context. Raises what the client raises; judges nothing.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from ..client import Audio, Connection, Context, ContextError, Error, VoiceError
from .corpus import tokens
from .listening import Listening
from .plan import Planned

SLOWNESS = 2.0  # a slow reader takes so many seconds for one of audio
ANSWER_SECONDS = 5.0  # for a cancel that came after the last audio to be confirmed


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to speak to, and how audio is to come. None: as the server likes it."""

    url: str
    key: str | None = None
    codec: str = "opus"
    lead_ms: float | None = None
    voice: str | None = None
    contexts_per_connection: int = 1
    max_wait_ms: float | None = None


class Conversation:
    def __init__(
        self,
        planned: Planned,
        listening: Listening,
        tokens_per_second: float,
        heard: Callable[[float, float], None],
        paced: Callable[[float], None],
    ) -> None:
        """`heard`: is told the instant and seconds of audio that came; `paced`: when what is sent now had been due."""
        self._planned = planned
        self._listening = listening
        self._pace = tokens_per_second
        self._heard = heard
        self._paced = paced
        self._interruption: asyncio.Task[None] | None = None

    async def run(self, connection: Connection, target: Target) -> None:
        """Until the context has ended, or a later interruption of what is still being heard was answered."""
        self._listening.begin(time.monotonic())
        context = await connection.start(
            voice=target.voice,
            codec=target.codec,
            lead_ms=target.lead_ms,
            max_wait_ms=target.max_wait_ms,
            timestamps=True if self._pace else None,
        )
        writing = asyncio.create_task(self._write_tokens(context)) if self._pace else None
        try:
            if writing is None:
                await self._write_whole(context)
            await self._read(context, connection)
            if self._interruption is not None:
                await self._late_interruption(context, self._interruption)
        finally:
            for task in (writing, self._interruption):
                if task is not None:
                    task.cancel()

    # Out.

    async def _write_whole(self, context: Context) -> None:
        text = self._planned.text.text
        self._listening.wrote(len(text), time.monotonic())
        await context.send(text)
        await context.end()

    async def _write_tokens(self, context: Context) -> None:
        """What goes wrong here goes wrong for the reader, too, who tells."""
        begun_at, length = time.monotonic(), 0
        with suppress(VoiceError):
            for number, token in enumerate(tokens(self._planned.text.text)):
                await until(due_at := begun_at + number / self._pace)
                self._paced(due_at)
                length += len(token)
                self._listening.wrote(length, time.monotonic())
                await context.send(token)
            await context.end()

    async def _interrupt(self, context: Context, at: float) -> None:
        await until(at)
        with suppress(VoiceError):
            await context.cancel(self._listening.cancel(time.monotonic()))

    # In.

    async def _read(self, context: Context, connection: Connection) -> None:
        listening = self._listening
        async for event in context:
            before = listening.samples
            listening.receive(event, time.monotonic())
            if isinstance(event, Audio):
                if listening.started is not None:
                    seconds = (listening.samples - before) / listening.started.sample_rate
                    self._heard(event.received_at, seconds)
                if event.first and self._planned.barge_in_after is not None:
                    at = event.received_at + self._planned.barge_in_after
                    self._interruption = asyncio.create_task(self._interrupt(context, at))
                if self._planned.slow:
                    await self._dawdle(connection)
            elif isinstance(event, Error):  # a message of ours was not taken: what comes is not what was asked for
                await context.cancel()
                raise ContextError(context.id, event.code, event.message, event.retry_after)

    async def _dawdle(self, connection: Connection) -> None:
        listening = self._listening
        if listening.first_at is None or listening.started is None:
            return
        connection.pause_reading()
        await until(listening.first_at + SLOWNESS * listening.samples / listening.started.sample_rate)
        listening.active_at = time.monotonic()
        connection.resume_reading()

    async def _late_interruption(self, context: Context, interruption: "asyncio.Task[None]") -> None:
        if interruption.done():
            return
        listening, after = self._listening, self._planned.barge_in_after
        assert after is not None
        if listening.first_at is None or (listening.heard_out_at or 0.0) <= listening.first_at + after:
            return
        await interruption
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                async for event in context:
                    listening.receive(event, time.monotonic())


async def until(at: float) -> None:
    """Sleeps to the monotonic instant `at`."""
    if (left := at - time.monotonic()) > 0:
        await asyncio.sleep(left)

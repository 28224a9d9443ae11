"""Connections for contexts: so many contexts on each, a new one when all are taken, kept until the run is over.

Owns who shares a connection with whom and what connecting cost. Knows nothing of what is said on them.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from ..client import Connection, HandshakeRefused, VoiceError, connect
from .statistics import Statistics

SLOW_BUFFER_BYTES = 4096  # about a second of Opus: what a slow reader leaves unread, the server notices
OPENING = 32  # handshakes at once in one process: more only wait for one another in the accept queue


@dataclass(eq=False, slots=True)
class _Line:
    opened: "asyncio.Task[Connection]"
    contexts: int = 0
    held: AsyncExitStack = field(default_factory=AsyncExitStack)


class Lines:
    def __init__(self, url: str, key: str | None, contexts_per_connection: int, statistics: Statistics) -> None:
        self._url = url
        self._key = key
        self._limit = contexts_per_connection
        self._statistics = statistics
        self._lines: set[_Line] = set()
        self._free: set[_Line] = set()  # have room for a context
        self._opening = asyncio.Semaphore(OPENING)
        self.last_answer_at = time.monotonic()  # a handshake was answered, with yes or no

    @asynccontextmanager
    async def place(self, *, slow: bool = False) -> AsyncIterator[Connection]:
        """A connection with room for one context, which is taken until the block ends. A slow reader gets its own.

        Raises what `connect` raises. A block that ends with an exception of the connection takes it out of use.
        """
        line = self._new(slow) if slow or not self._free else next(iter(self._free))
        line.contexts += 1
        if slow or line.contexts >= self._limit:
            self._free.discard(line)
        try:
            yield await asyncio.shield(line.opened)
        finally:
            line.contexts -= 1
            usable = not line.opened.done() or _is_open(line)
            if usable and not slow:
                self._free.add(line)
            else:
                self._free.discard(line)
                if not line.contexts:
                    self._lines.discard(line)
                    await _drop(line)

    async def close(self) -> None:
        lines, self._lines = self._lines, set()
        self._free.clear()
        await asyncio.gather(*(_drop(line) for line in lines), return_exceptions=True)

    def _new(self, slow: bool) -> _Line:
        held = AsyncExitStack()
        line = _Line(asyncio.create_task(self._open(held, slow)), held=held)
        self._lines.add(line)
        if not slow:
            self._free.add(line)
        return line

    async def _open(self, held: AsyncExitStack, slow: bool) -> Connection:
        async with self._opening:
            began_at = time.monotonic()
            buffer = SLOW_BUFFER_BYTES if slow else None
            try:
                connection = await held.enter_async_context(connect(self._url, self._key, receive_buffer_bytes=buffer))
            except HandshakeRefused as refused:
                self.last_answer_at = now = time.monotonic()
                self._statistics.connect_refused(f"handshake {refused.status}", now - began_at)
                raise
            except VoiceError as failed:
                self._statistics.connect_failed(type(failed).__name__, time.monotonic() - began_at)
                raise
            self.last_answer_at = now = time.monotonic()
            self._statistics.connected(now - began_at)
            return connection


def _is_open(line: _Line) -> bool:
    opened = line.opened
    return opened.done() and not opened.cancelled() and opened.exception() is None and not opened.result().closed


async def _drop(line: _Line) -> None:
    line.opened.cancel()
    await asyncio.gather(line.opened, return_exceptions=True)
    await line.held.aclose()

"""The shared level: speech in a Redis that may be slow, full, dead or filled with rubbish, and no listener notices.

A look-up has a budget after which it counts as a miss. Breakers, one for reads and one for writes (a full Redis still
answers), keep a dead one from being asked at all. Writes are sent and forgotten; what finds too many under way is not
written. Drives the `redis` package; knows nothing of what it stores but its length and checksum.
"""

import asyncio
import logging
import struct
import sys
import time
import zlib
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ..speech import Speech
from .breaker import Breaker

logger = logging.getLogger("voxgate.cache")

NAMESPACE = b"voxgate:pcm:"
HEADER = struct.Struct("!HIII")  # version, bytes of samples, bytes of times behind them, CRC-32 of both
HEADER_VERSION = 2
LITTLE = np.dtype("<i2")

MOST_LOOKUPS = 64  # under way, those given up on and not yet undone included
MOST_WRITES = 4  # each holds up to 350 kB in the socket's buffer
CONNECT_S = 0.5
WRITE_S = 0.5

Answer = Callable[[str, Speech | None], None]


class BadUrl(ValueError):
    """This is no address of a Redis."""


class RedisStore:
    """Its methods are called on the event loop and return at once. Connects by itself, as often as it takes."""

    def __init__(self, url: str, *, budget_s: float, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises `BadUrl`. `budget_s` bounds a look-up; entries live for `ttl_s`."""
        try:
            self._redis = Redis.from_url(
                url,
                protocol=2,
                retry=Retry(NoBackoff(), 0),
                socket_connect_timeout=CONNECT_S,
                socket_timeout=None,  # ours is shorter
                max_connections=MOST_LOOKUPS + MOST_WRITES,
            )
        except ValueError as problem:
            raise BadUrl(str(problem)) from None
        self._budget_s = budget_s
        self._ttl_ms = max(1, round(ttl_s * 1000))
        self._clock = clock
        self._reads = Breaker()
        self._writes = Breaker()
        self._lookups: set[asyncio.Task[None]] = set()
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def reading(self) -> bool:
        """Whether look-ups are made; False while the breaker is open."""
        return self._reads.closed

    @property
    def writing(self) -> bool:
        return self._writes.closed

    def fetch(self, key: bytes, answer: Answer) -> str:
        """ "asked": `answer(result, speech)` follows, once, within the budget; else "busy" or "open", and it does not.

        The results are "hit", "miss", "timeout", "error" and "damaged".
        """
        if len(self._lookups) >= MOST_LOOKUPS:
            return "busy"
        attempt = self._reads.attempt(self._clock())
        if attempt is None:
            return "open"
        lookup = _Lookup(self._reads, attempt, self._clock, answer)
        lookup.task = _start(self._look_up(key, lookup), self._lookups)
        lookup.timer = asyncio.get_running_loop().call_later(self._budget_s, lookup.finish, "timeout")
        return "asked"

    def put(self, key: bytes, speech: Speech) -> str:
        """ "sent", "busy" or "open"."""
        if len(self._sending) >= MOST_WRITES:
            return "busy"
        attempt = self._writes.attempt(self._clock())
        if attempt is None:
            return "open"
        _start(self._write(key, speech, attempt), self._sending)
        return "sent"

    async def settled(self) -> None:
        """Until nothing is under way."""
        while self._lookups or self._sending:
            await asyncio.wait(self._lookups | self._sending)

    async def close(self) -> None:
        """What is under way is dropped."""
        for task in self._lookups | self._sending:
            task.cancel()
        await asyncio.gather(*self._lookups, *self._sending, return_exceptions=True)
        await self._redis.aclose()

    # --- its parts ----------------------------------------------------------------------------------------------

    async def _look_up(self, key: bytes, lookup: "_Lookup") -> None:
        try:
            value = await self._redis.get(NAMESPACE + key)
        except Exception as error:  # a listener must not suffer from whatever it is
            logger.debug("a look-up failed: %s", error)
            lookup.finish("error")
            return
        if value is None:
            lookup.finish("miss")
        elif not isinstance(value, bytes) or (speech := unpack(value)) is None:
            lookup.finish("damaged")
        else:
            lookup.finish("hit", speech)

    async def _write(self, key: bytes, speech: Speech, attempt: int) -> None:
        try:
            async with asyncio.timeout(WRITE_S):
                await self._redis.set(NAMESPACE + key, pack(speech), px=self._ttl_ms)
        except Exception as error:
            logger.debug("a write failed: %s", error)
            _tell(self._writes, "writing to", attempt, False, self._clock())
        else:
            _tell(self._writes, "writing to", attempt, True, self._clock())


class _Lookup:
    """One look-up: whatever ends it first is its answer."""

    def __init__(self, breaker: Breaker, attempt: int, clock: Callable[[], float], answer: Answer) -> None:
        self._breaker = breaker
        self._attempt = attempt
        self._clock = clock
        self._answer: Answer | None = answer
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def finish(self, result: str, speech: Speech | None = None) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            return
        if self.timer is not None:
            self.timer.cancel()
        if result == "timeout" and self.task is not None:
            self.task.cancel()  # its connection is closed with it: the reply may still come
        _tell(self._breaker, "asking", self._attempt, result not in ("timeout", "error"), self._clock())
        answer(result, speech)


def pack(speech: Speech) -> bytes:
    """`speech` as it is stored."""
    samples = speech.pcm.astype(LITTLE, copy=False).tobytes()
    checksum = zlib.crc32(speech.times, zlib.crc32(samples))
    return HEADER.pack(HEADER_VERSION, len(samples), len(speech.times), checksum) + samples + speech.times


def unpack(value: bytes) -> Speech | None:
    """What was stored, read-only; None unless `value` is whole, undamaged and of this version."""
    if len(value) < HEADER.size:
        return None
    version, length, times_length, checksum = HEADER.unpack_from(value)
    content = memoryview(value)[HEADER.size :]
    if version != HEADER_VERSION or length + times_length != len(content) or length % 2:
        return None
    if zlib.crc32(content) != checksum:
        return None
    pcm = np.frombuffer(content[:length], LITTLE)
    return Speech(pcm if sys.byteorder == "little" else pcm.astype(np.int16), bytes(content[length:]))


def _start(work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    among.add(task)
    task.add_done_callback(among.discard)
    return task


def _tell(breaker: Breaker, what: str, attempt: int, succeeded: bool, now: float) -> None:
    closed = breaker.closed
    if succeeded:
        breaker.succeeded(attempt)
    else:
        breaker.failed(attempt, now)
    if breaker.closed != closed:
        logger.warning("%s redis %s", what, "is resumed" if breaker.closed else "is stopped: it fails or is too slow")

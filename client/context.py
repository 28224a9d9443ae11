"""A context as the client holds it: text goes in, events come out, until one of them ends it.

Owns the order and the bounded queue of events of one context. Knows no socket: what it sends goes through `send`,
and when it has more than it should hold it says so through `crowded`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Self

from .errors import ContextError, ProtocolError, VoiceError
from .messages import Audio, Cancel, Cancelled, ClientMessage, Done, End, Error, Event, Flush, Played, Started, Text

HIGH_EVENTS = 256  # one message per 20 ms packet: 5 s, and a server runs 2 s ahead unless asked for more
LOW_EVENTS = 64


class Context:
    """One stream of text to one stream of audio. Made by `Connection.start`.

    Iterate it once, to its end::

        async for event in context:
            match event: case Audio(): ... ; case Words(): ...

    The iteration ends after `Done` or `Cancelled`, and raises `ContextError` when the server ends the context with an
    error, `ConnectionClosed` when the socket goes, `ProtocolError` when audio is missing. An `Error` that arrives as
    an event (its `context` is None) was about this context and changed nothing.
    """

    def __init__(
        self,
        id: str,
        send: Callable[[ClientMessage], Awaitable[None]],
        reopen: Callable[["Context"], None],
        crowded: Callable[["Context", bool], None],
    ) -> None:
        self.id = id
        self.started: Started | None = None
        self.ended = False
        self.dropped = 0  # audio messages let go because nobody read them after a cancel
        self._send = send
        self._reopen = reopen
        self._crowded = crowded
        self._events: deque[Event] = deque()
        self._failure: VoiceError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._next_sequence = 0
        self._full = False
        self._cancelling = False

    async def send(self, text: str) -> None:
        """The next piece of text, joined verbatim to the one before."""
        await self._send(Text(self.id, text))

    async def flush(self) -> None:
        """Speak what is there; `Flushed` follows the last audio of it."""
        await self._send(Flush(self.id))

    async def end(self) -> None:
        """No more text: `Done` follows the last audio."""
        await self._send(End(self.id))

    async def cancel(self, played: int | None = None) -> None:
        """Stop speaking; `played` is how many samples the listener has heard. `Cancelled` follows.

        From here on the context no longer holds the socket back: audio that nobody reads is dropped, not waited for.
        After `Done` it asks what was heard of a reply that had been sent whole, and iterating again yields the answer;
        the server remembers an ended context for 60 s and is silent about an older one, so iterate under a timeout.
        """
        self._cancelling = True
        self._mark(full=False)
        if self.ended:
            self._reopen(self)
        await self._send(Cancel(self.id, played))

    async def played(self, samples: int) -> None:
        """Report how many samples of the context the listener has heard."""
        await self._send(Played(self.id, samples))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._failure is not None:
                raise self._failure
            if self.ended:
                raise StopAsyncIteration
            if self._waiter is not None:
                raise RuntimeError(f"context {self.id!r} is read by two at once")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        event = self._events.popleft()
        if self._full and len(self._events) <= LOW_EVENTS:
            self._mark(full=False)
        return event

    # From the connection.

    def receive(self, event: Event) -> None:
        match event:
            case Audio(sequence=sequence):
                if sequence != self._next_sequence:
                    raise ProtocolError(f"context {self.id!r}: audio {sequence} came instead of {self._next_sequence}")
                self._next_sequence = (sequence + 1) & 0xFFFFFFFF
                if self._cancelling and len(self._events) >= HIGH_EVENTS:
                    self.dropped += 1
                    return
            case Started():
                self.started = event
            case Done() | Cancelled():
                self.ended = True
            case Error(context=str()):
                self.fail(ContextError(self.id, event.code, event.message, event.retry_after))
                return
        self._events.append(event)
        if len(self._events) >= HIGH_EVENTS and not self._full and not self._cancelling and not self.ended:
            self._mark(full=True)
        self._wake()

    def fail(self, failure: VoiceError) -> None:
        """The end, raised once what came before it has been read."""
        self.ended, self._failure = True, failure
        self._mark(full=False)
        self._wake()

    def reopened(self) -> None:
        self.ended, self._failure = False, None

    def _mark(self, *, full: bool) -> None:
        if full != self._full:
            self._full = full
            self._crowded(self, full)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

"""One HTTP request that is answered by speech, dressed as the socket that a connection serves.

The status is decided by the first thing there is to say: audio begins the body, a fault before it is answered as one,
and a fault behind it cuts the connection, so that nobody takes half a body for a whole one. A body has no play-out
clock: it goes out as fast as it is spoken and its reader takes it.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from starlette.responses import Response

from ...admission.answer import Permit
from ...codecs.packetizer import CODECS, Format, Packet, pack_audio
from .. import errors, wire
from ..accounts import Account
from ..connection import Receive, Send
from ..context import Context
from ..desk import Desk
from ..dialect import Call, Close, Event, Item, Spoken
from ..protocol import EXTENSION, HttpProtocol
from .pieces import WAIT_MS

NAME = "1"  # of the one context
LEAD_MS = math.inf  # nobody plays it while it comes, as far as we know
HEADERS = {
    "x-accel-buffering": "no",  # a proxy that gathers the body is waited for
    "cache-control": "no-store",
}

Scope = MutableMapping[str, Any]

STATUS = {
    "bad_message": 400,
    "unknown_voice": 400,
    "unsupported_codec": 400,
    "unsupported_text": 400,
    "text_too_long": 400,
    "rate_limited": 429,
    "overloaded": 503,
    "voice_loading": 503,
}


class Shape(Protocol):
    """How one HTTP interface puts speech into its body; the parts are joined as they come."""

    def media_type(self, form: Format) -> str: ...

    def audio(self, payload: bytes) -> bytes: ...

    def spoken(self, said: Spoken) -> bytes: ...

    def done(self, done: wire.Done) -> bytes: ...


class Raw:
    """Nothing but the audio."""

    def media_type(self, form: Format) -> str:
        return form.media_type

    def audio(self, payload: bytes) -> bytes:
        return payload

    def spoken(self, said: Spoken) -> bytes:
        return b""

    def done(self, done: wire.Done) -> bytes:
        return b""


@dataclass
class Utterance:
    """The dialect of an exchange: one text, one context, one body."""

    protocol: str
    start: wire.Start
    text: str
    shape: Shape
    media_type: str = "application/octet-stream"
    failure: wire.Error | None = None
    codecs: tuple[str, ...] = CODECS
    later: list[Call] = field(default_factory=list)

    def hear(self, message: str) -> tuple[Call, ...]:
        start = msgspec.structs.replace(self.start, lead_ms=LEAD_MS, max_wait_ms=WAIT_MS)
        return start, wire.Text(NAME, self.text), wire.End(NAME)

    def say(self, event: Event, out: list[Item]) -> None:
        match event:
            case wire.Started():
                form = Format(event.codec, event.sample_rate, event.frame_samples, event.pre_skip)
                self.media_type = self.shape.media_type(form)
            case Spoken():
                out.append(self.shape.spoken(event))
            case wire.Done():
                if self.failure is None:
                    out += [self.shape.done(event), Close(errors.CLOSE_NORMAL)]
            case wire.Error():
                self.failure = self.failure or event
                out.append(Close(errors.CLOSE_INTERNAL))

    def audio(self, context: Context, packets: list[Packet], out: list[Item]) -> None:
        out.append(self.shape.audio(pack_audio(context.settings.form, packets)))


Fault = Callable[[int, str, str], bytes]  # status, code, message -> the body that one interface says it with


class Exchange:
    """The connection's `receive`, `send` and socket for one request; of use once."""

    def __init__(
        self, utterance: Utterance, fault: Fault, receive: Receive, send: Send, protocol: HttpProtocol
    ) -> None:
        self._utterance = utterance
        self._fault = fault
        self._receive = receive
        self._send = send
        self._protocol = protocol
        self._inbox: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._started = False
        self._gone = False
        self._closed_with: int | None = None

    async def answer(self, desk: Desk, permit: Permit, account: Account) -> None:
        """Speaks the utterance and answers the request, whatever comes."""
        self._inbox.put_nowait({"type": "websocket.receive", "text": ""})
        watching = asyncio.create_task(self._watch())
        try:
            await desk.serve(permit, account, self._inbox.get, self.send, self, dialect=self._utterance)
            await self._finish()
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        """A client that hangs up is told to the connection like any that does."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._inbox.put_nowait({"type": "websocket.disconnect", "code": errors.CLOSE_GOING_AWAY})

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """A piece of the body."""
        if piece := message["bytes"]:
            await self._start()
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    def unacknowledged_bytes(self) -> int:
        return self._protocol.unacknowledged_bytes()

    def force_close(self, code: int) -> None:
        """Ends the serving; what the client is told of it, `answer` says."""
        if self._closed_with is None:
            self._closed_with = code
            if code == errors.CLOSE_SLOW_READER:
                self._protocol.abort()
            self._inbox.put_nowait({"type": "websocket.disconnect", "code": code})

    async def _start(self) -> None:
        if not self._started:
            self._started = True
            headers = {**HEADERS, "content-type": self._utterance.media_type}
            await self._send({"type": "http.response.start", "status": 200, "headers": encoded(headers)})

    async def _finish(self) -> None:
        if self._gone:
            return
        failure = self._utterance.failure
        if failure is None and self._closed_with == errors.CLOSE_NORMAL:
            await self._start()
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        elif self._started:
            self._protocol.abort()
            await self._inbox.get()  # uvicorn calls it a fault of the application to return before
        else:
            failure = failure or wire.Error("overloaded", "the server is shutting down", retry_after=5.0)
            status, retry_after = STATUS.get(failure.code, 500), failure.retry_after or None
            answer = refusal(status, failure.code, failure.message, retry_after, self._fault)
            await self._send({"type": "http.response.start", "status": status, "headers": answer.raw_headers})
            await self._send({"type": "http.response.body", "body": answer.body})


class Speech:
    """The ASGI response that speaks: what a route returns."""

    def __init__(self, desk: Desk, permit: Permit, account: Account, utterance: Utterance, fault: Fault) -> None:
        self._desk, self._permit, self._account = desk, permit, account
        self._utterance, self._fault = utterance, fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(self._utterance, self._fault, receive, send, scope["extensions"][EXTENSION])
        await exchange.answer(self._desk, self._permit, self._account)


def refusal(status: int, code: str, message: str, retry_after: float | None, fault: Fault) -> Response:
    """An answer that is no speech, in the shape of its interface."""
    headers = {} if retry_after is None else {"retry-after": str(max(1, math.ceil(retry_after)))}
    return Response(fault(status, code, message), status, headers, "application/json")


def encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]

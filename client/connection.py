"""`connect`, and the connection it gives: messages out, and what comes in handed to the context it belongs to.

Back-pressure: a context whose reader falls behind (context.HIGH_EVENTS) stops the reading of the *socket*, and the
server sees a slow reader. One socket is one pipe: while it is stopped no other context on it gets anything either. So
read every context that was started, each in its own task, or cancel it; never wait for one context before reading
another that has audio under way. Whoever cannot promise that gives each context a connection of its own.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import msgspec
import websockets.exceptions
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_socket
from websockets.typing import Subprotocol

from .context import Context
from .errors import ConnectionClosed, HandshakeRefused, ProtocolError, Unreachable, VoiceError
from .messages import (
    PROTOCOL,
    Audio,
    Cancelled,
    ClientMessage,
    Done,
    Error,
    Pong,
    Ready,
    Start,
    Started,
    decode,
    decode_audio,
    encode,
)
from .socket import VoiceSocket, dial

STREAM_PATH = "/v1/stream"
_PING_SECONDS = 20.0  # keeps middleboxes awake; an answer is never waited for
_CLOSE_SECONDS = 2.0
_MESSAGE_BYTES = 1 << 20


@asynccontextmanager
async def connect(
    url: str, key: str | None = None, *, open_timeout: float = 10.0, receive_buffer_bytes: int | None = None
) -> AsyncIterator["Connection"]:
    """A connection that is ready to speak; closed on the way out.

    `url` is `ws://`, `wss://`, `http://` or `https://`; without a path it means `/v1/stream`. A query may carry
    defaults for the contexts (`?voice=…&codec=…`). Raises `Unreachable`, `HandshakeRefused`, `ConnectionClosed`
    (accepted, then closed before `ready`), `ProtocolError`, and `ValueError` for a url that is none. Proxies of the
    environment are not used. `receive_buffer_bytes` bounds what the system takes in while nobody reads; left alone it
    swallows minutes of speech before the server notices.
    """
    connection = Connection()
    try:
        async with asyncio.timeout(open_timeout):
            await connection._open(stream_url(url), key, receive_buffer_bytes)
    except TimeoutError:
        connection._abort()
        raise Unreachable(f"{url} did not answer within {open_timeout:g} s") from None
    except BaseException:
        connection._abort()
        raise
    try:
        yield connection
    finally:
        await connection.close()


def stream_url(url: str) -> str:
    """`url` with a WebSocket scheme and a path. Raises `ValueError`."""
    parts = urlsplit(url)
    scheme = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise ValueError(f"not a ws://, wss://, http:// or https:// address: {url!r}")
    return urlunsplit(
        (scheme, parts.netloc, parts.path if parts.path not in ("", "/") else STREAM_PATH, parts.query, "")
    )


class Connection:
    """One socket to the server. Made by `connect`."""

    ready: Ready

    def __init__(self) -> None:
        self.errors: list[Error] = []  # the last few that named no context of ours
        self.dropped = 0  # audio of streams that have ended or were never announced
        self.unknown = 0  # messages of a type, or about a context, this client does not know
        self._socket: VoiceSocket | None = None
        self._ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        self._contexts: dict[str, Context] = {}
        self._streams: dict[int, Context] = {}
        self._holding: set[str | None] = set()  # contexts that have more than they should, None: our caller
        self._failure: VoiceError | None = None
        self._numbers = itertools.count(1)

    async def start(
        self,
        context: str | None = None,
        *,
        voice: str | None = None,
        codec: str | None = None,
        sample_rate: int | None = None,
        speed: float | None = None,
        frame_ms: float | None = None,
        timestamps: bool | None = None,
        lead_ms: float | None = None,
        tier: str | None = None,
        seed: int | None = None,
        max_wait_ms: float | None = None,
    ) -> Context:
        """Open a context; without an id it gets one. What is not given stays the server's choice.

        Returns once `start` is written: a refusal of it ends the iteration of the context. Raises `ValueError` for an
        id in use here.
        """
        id = context if context is not None else self._unused_id()
        if id in self._contexts:
            raise ValueError(f"context {id!r} is still live on this connection")
        opened = Context(id, self._send, self._reopen, self._on_crowded)
        self._contexts[id] = opened
        message = Start(id, voice, codec, sample_rate, speed, frame_ms, timestamps, lead_ms, tier, seed, max_wait_ms)
        try:
            await self._send(message)
        except VoiceError:
            self._contexts.pop(id, None)
            raise
        return opened

    @property
    def closed(self) -> bool:
        """Whether the socket is gone, or will be: no context can be started any more."""
        return self._failure is not None

    def pause_reading(self) -> None:
        """Take nothing off the socket until `resume_reading`: a listener who is stuck, as the server sees it."""
        self._hold(None, True)

    def resume_reading(self) -> None:
        self._hold(None, False)

    async def close(self) -> None:
        """Close the socket; contexts still live end with `ConnectionClosed`. Never raises."""
        self.resume_reading()  # the answer comes after what is unread
        self._end_all(ConnectionClosed(1000, "closed by this side"))
        if self._socket is not None:
            await self._socket.close()

    async def _open(self, url: str, key: str | None, receive_buffer_bytes: int | None) -> None:
        try:
            sock = await dial(url, receive_buffer_bytes) if receive_buffer_bytes else None
            await connect_socket(
                url,
                subprotocols=[cast(Subprotocol, PROTOCOL)],
                compression=None,
                additional_headers={"Authorization": f"Bearer {key}"} if key else None,
                proxy=None,
                sock=sock,
                open_timeout=None,
                ping_interval=_PING_SECONDS,
                ping_timeout=None,
                close_timeout=_CLOSE_SECONDS,
                max_size=_MESSAGE_BYTES,
                create_connection=cast(type[ClientConnection], self._make_socket),
            )
        except websockets.exceptions.InvalidStatus as refused:
            raise _refusal(refused) from None
        except websockets.exceptions.InvalidURI as invalid:
            raise ValueError(str(invalid)) from None
        except (OSError, websockets.exceptions.WebSocketException) as failed:
            raise Unreachable(f"{url}: {failed}") from failed
        self.ready = await self._ready

    def _abort(self) -> None:
        transport = getattr(self._socket, "transport", None)  # missing while TLS has not succeeded
        if transport is not None:
            transport.abort()

    def _make_socket(self, *args: Any, **kwargs: Any) -> VoiceSocket:
        """The sink has to be there from the start, since `ready` can come in one read with the handshake's answer."""
        self._socket = VoiceSocket(self, *args, **kwargs)
        return self._socket

    async def _send(self, message: ClientMessage) -> None:
        if self._failure is not None:
            raise self._failure
        assert self._socket is not None
        try:
            await self._socket.send(encode(message), text=True)
        except websockets.exceptions.ConnectionClosed:
            raise self._failure or ConnectionClosed(1006, "") from None

    def _unused_id(self) -> str:
        return next(id for number in self._numbers if (id := f"c{number}") not in self._contexts)

    # From the socket.

    def on_message(self, data: bytes, binary: bool, received_at: float) -> None:
        if self._failure is not None:
            return
        try:
            if binary:
                self._on_audio(decode_audio(data, received_at))
            else:
                self._on_text(data)
        except ProtocolError as broken:
            self._end_all(broken)
            assert self._socket is not None
            self._socket.transport.close()

    def on_lost(self, code: int, reason: str) -> None:
        self._end_all(ConnectionClosed(code, reason))

    def _on_audio(self, audio: Audio) -> None:
        context = self._streams.get(audio.stream)
        if context is None:
            self.dropped += 1
            return
        context.receive(audio)

    def _on_text(self, data: bytes) -> None:
        match decode(data):
            case None:
                self.unknown += 1
            case Ready() as ready:
                if not self._ready.done():
                    self._ready.set_result(ready)
            case Pong():
                pass
            case Started() as started:
                if (context := self._addressed(started.context)) is not None:
                    self._streams[started.stream] = context
                    context.receive(started)
            case Done() | Cancelled() | Error(context=str()) as end:
                if (context := self._addressed(end.context)) is not None:
                    self._forget(context)
                    context.receive(end)
            case Error(about=about) as error:
                context = self._contexts.get(about) if about is not None else None
                if context is not None:
                    context.receive(error)
                else:
                    self.errors = [*self.errors[-15:], error]
            case event:
                if (context := self._addressed(event.context)) is not None:
                    context.receive(event)

    def _addressed(self, id: str | None) -> Context | None:
        context = self._contexts.get(id) if id is not None else None
        if context is None:
            self.unknown += 1
        return context

    def _forget(self, context: Context) -> None:
        del self._contexts[context.id]
        if context.started is not None:
            self._streams.pop(context.started.stream, None)
        self._on_crowded(context, False)

    def _end_all(self, failure: VoiceError) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        if not self._ready.done():
            self._ready.set_exception(failure)
            self._ready.exception()  # nobody may be waiting for it any more
        for context in list(self._contexts.values()):
            self._forget(context)
            context.fail(failure)

    # From the contexts.

    def _reopen(self, context: Context) -> None:
        if self._failure is None and context.id not in self._contexts:
            context.reopened()
            self._contexts[context.id] = context

    def _on_crowded(self, context: Context, crowded: bool) -> None:
        self._hold(context.id, crowded)

    def _hold(self, who: str | None, hold: bool) -> None:
        held = bool(self._holding)
        (self._holding.add if hold else self._holding.discard)(who)
        if held == bool(self._holding) or self._socket is None:
            return
        if hold:
            self._socket.pause_reading()
        else:
            self._socket.resume_reading()


def _refusal(refused: websockets.exceptions.InvalidStatus) -> HandshakeRefused:
    response = refused.response
    try:
        retry_after = float(response.headers.get("Retry-After", ""))
    except ValueError:
        retry_after = None
    body = (response.body or b"").decode(errors="replace").strip()
    try:
        message = str(msgspec.json.decode(body)["error"]["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        message = body[:200] or response.reason_phrase
    return HandshakeRefused(response.status_code, retry_after, message)

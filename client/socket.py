"""The WebSocket under a connection: whole messages handed on from inside the read callback, reading paused on demand.

The `websockets` asyncio client does the handshake, TLS, control frames and closing. Its receive queue is bypassed,
because a task per connection that is woken for every message costs more than the message. Knows no JSON, no contexts.
"""

import asyncio
import socket
import time
from typing import Any, Protocol

from websockets.asyncio.client import ClientConnection
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class Sink(Protocol):
    """Who is told. Called on the event loop; must not block."""

    def on_message(self, data: bytes, binary: bool, received_at: float) -> None: ...

    def on_lost(self, code: int, reason: str) -> None: ...


class VoiceSocket(ClientConnection):
    def __init__(self, sink: Sink, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sink = sink
        self._fragments: list[bytes] = []
        self._binary = False
        self._received_at = 0.0

    def pause_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._received_at = time.monotonic()
        super().data_received(data)

    def process_event(self, event: Any) -> None:
        if not (isinstance(event, Frame) and event.opcode in _DATA):
            super().process_event(event)
            return
        if event.opcode is not Opcode.CONT:
            self._binary = event.opcode is Opcode.BINARY
            if event.fin:
                self._sink.on_message(bytes(event.data), self._binary, self._received_at)
                return
        self._fragments.append(bytes(event.data))  # together no more than max_size: the protocol under us counts
        if event.fin:
            whole, self._fragments = b"".join(self._fragments), []
            self._sink.on_message(whole, self._binary, self._received_at)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._sink.on_lost(self.close_code or 1006, self.close_reason or "")


async def dial(url: str, receive_buffer_bytes: int) -> socket.socket:
    """A TCP connection whose receive buffer is bounded from its first segment on: later, the window is promised.

    Raises `OSError`.
    """
    address = parse_uri(url)
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, kind, protocol, _, target in await loop.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            await loop.sock_connect(sock, target)
        except OSError as failed:
            sock.close()
            failure = failed
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError(f"{address.host} has no address")

"""What uvicorn's protocols lack for a voice stream: sight of unacknowledged bytes, a close that cannot block.

The only file that leans on uvicorn's inner names, which tests/gateway/test_protocol.py holds it to.
"""

import fcntl
import sys
import termios
from asyncio.transports import BaseTransport, WriteTransport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

EXTENSION = "voxgate.socket"  # under scope["extensions"]
CLOSE_GRACE_S = 5.0  # for the peer to answer our close; then the socket is cut
WRITE_BUFFER_BYTES = 65_536


class SocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's sans-IO WebSocket, known to the application through the scope."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    async def run_asgi(self) -> None:
        extensions: dict[str, Any] = self.scope["extensions"]  # type: ignore[typeddict-item]
        extensions[EXTENSION] = self
        await super().run_asgi()

    def unacknowledged_bytes(self) -> int:
        """Bytes written that the peer has not acknowledged: in this process, and in the kernel (Linux: SIOCOUTQ)."""
        return unacknowledged_bytes(self.transport)

    def force_close(self, code: int) -> None:
        """Queues a close frame even where the peer reads nothing, tells the application, and cuts after a grace."""
        if self.close_sent or self.disconnected:
            return
        self.conn.send_close(code)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code})
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(CLOSE_GRACE_S, self.transport.abort)


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP, known to the application through the scope of each request."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {EXTENSION: self}  # type: ignore[typeddict-item]

    def unacknowledged_bytes(self) -> int:
        """As of a WebSocket."""
        return unacknowledged_bytes(self.transport)

    def abort(self) -> None:
        """Cuts the connection, so that a client knows of a body that it has not got all of it."""
        self.transport.abort()


def unacknowledged_bytes(transport: WriteTransport) -> int:
    """Bytes written to `transport` that the peer has not acknowledged: in this process, and in the kernel (Linux)."""
    waiting = transport.get_write_buffer_size()
    socket = transport.get_extra_info("socket")
    try:
        told = fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
        return waiting + int.from_bytes(told, sys.byteorder)
    except (OSError, ValueError, AttributeError):  # the socket is closed or was never one of the kernel's
        return waiting

"""What uvicorn's WebSocket protocol lacks for a voice stream: sight of unacknowledged bytes, a close that cannot block.

The only file that leans on uvicorn's inner names, which tests/gateway/test_protocol.py holds it to.
"""

import fcntl
import sys
import termios
from asyncio.transports import BaseTransport
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

EXTENSION = "voxgate.socket"  # under scope["extensions"]
CLOSE_GRACE_S = 5.0  # for the peer to answer our close; then the socket is cut
WRITE_BUFFER_BYTES = 65_536


class SocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's sans-IO WebSocket, known to the application through the scope."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._kernel_socket = transport.get_extra_info("socket")

    async def run_asgi(self) -> None:
        extensions: dict[str, Any] = self.scope["extensions"]  # type: ignore[typeddict-item]
        extensions[EXTENSION] = self
        await super().run_asgi()

    def unacknowledged_bytes(self) -> int:
        """Bytes written that the peer has not acknowledged: in this process, and in the kernel (Linux: SIOCOUTQ)."""
        waiting = self.transport.get_write_buffer_size()
        try:
            told = fcntl.ioctl(self._kernel_socket.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
            return waiting + int.from_bytes(told, sys.byteorder)
        except (OSError, ValueError, AttributeError):  # the socket is closed or was never one of the kernel's
            return waiting

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

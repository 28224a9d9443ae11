"""The TCP under Wyoming: its listener, and a stream of bytes dressed as the socket that a connection serves."""

import asyncio
import logging
import socket
from collections.abc import MutableMapping
from typing import Any

import msgspec

from .. import errors
from ..accounts import Account
from ..desk import Desk
from ..handshake import Rejection
from ..protocol import WRITE_BUFFER_BYTES, unacknowledged_bytes
from .names import VoiceNames
from .wyoming import Wyoming, framed

logger = logging.getLogger("voxgate.adapters")

LINE_BYTES = 65_536
ACCOUNT = Account("wyoming")  # of everyone who comes here


class TooLong(ValueError):
    """An event is longer than a message may be."""


class _Header(msgspec.Struct, frozen=True):
    type: str
    data: dict[str, Any] = {}
    data_length: int | None = 0
    payload_length: int | None = 0


class WyomingListener:
    """Everything that comes in by one port."""

    def __init__(self, desk: Desk, names: VoiceNames, message_bytes: int) -> None:
        self._desk = desk
        self._names = names
        self._message_bytes = message_bytes
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._serve, sock=listener, limit=LINE_BYTES)

    def close(self) -> None:
        """Takes nobody new; those who are there are the desk's."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = _Stream(reader, writer, self._message_bytes)
        permit = self._desk.admit(ACCOUNT)
        if isinstance(permit, Rejection):
            writer.write(framed("error", {"text": permit.message, "code": "overloaded"}))
        else:
            dialect = Wyoming(lambda name: self._names.resolve(name, self._desk.voices), lambda: self._desk.voices)
            await self._desk.serve(permit, ACCOUNT, stream.receive, stream.send, stream, dialect=dialect)
        writer.close()


class _Stream:
    """`receive`, `send` and socket of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message_bytes: int) -> None:
        self._reader = reader
        self._writer = writer
        self._message_bytes = message_bytes
        self._closed = asyncio.get_running_loop().create_future()
        writer.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    async def receive(self) -> MutableMapping[str, Any]:
        """The next event as a text message; the end of the stream, and what is no event, as a disconnect."""
        reading = asyncio.ensure_future(self._event())
        try:
            await asyncio.wait((reading, self._closed), return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and not self._closed.done():
                return {"type": "websocket.receive", "text": reading.result()}
        except (OSError, asyncio.IncompleteReadError, ValueError) as problem:
            logger.debug("a Wyoming connection ends: %s", problem)
        finally:
            reading.cancel()
        return {"type": "websocket.disconnect", "code": errors.CLOSE_NORMAL}

    async def _event(self) -> str:
        line = await self._reader.readline()
        if not line:
            raise asyncio.IncompleteReadError(line, None)
        header = msgspec.json.decode(line, type=_Header)
        data_bytes, payload_bytes = header.data_length or 0, header.payload_length or 0
        if not 0 <= data_bytes <= self._message_bytes or not 0 <= payload_bytes <= self._message_bytes:
            raise TooLong(f"an event of {data_bytes} and {payload_bytes} bytes")
        data = header.data
        if data_bytes:
            data = {**data, **msgspec.json.decode(await self._reader.readexactly(data_bytes), type=dict[str, Any])}
        await self._reader.readexactly(payload_bytes)
        return msgspec.json.encode({"type": header.type, "data": data}).decode()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self._writer.write(message["bytes"])
        await self._writer.drain()

    def unacknowledged_bytes(self) -> int:
        return unacknowledged_bytes(self._writer.transport)

    def force_close(self, code: int) -> None:
        if not self._closed.done():
            self._closed.set_result(code)
            if code == errors.CLOSE_SLOW_READER:
                self._writer.transport.abort()

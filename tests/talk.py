"""A raw client of the wire for tests: `websockets` and JSON, so that a fault of our own client hides nothing."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from voxgate.codecs.packetizer import Format, StreamDecoder

HEADER = struct.Struct("!BBHIQ")
PATIENCE_S = 20.0  # so long a test waits for what must come


@dataclass
class Heard:
    """What came of one context."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    audio: list[tuple[int, int, int, bytes]] = field(default_factory=list)  # flags, sequence, start, payload

    def only(self, type: str) -> dict[str, Any]:
        (message,) = [message for message in self.messages if message["type"] == type]
        return message

    @property
    def words(self) -> list[list[Any]]:
        """Of all `words` messages: text, start, end, offset."""
        return [word for message in self.messages if message["type"] == "words" for word in message["words"]]

    @property
    def format(self) -> Format:
        started = self.only("started")
        return Format(started["codec"], started["sample_rate"], started["frame_samples"], started["pre_skip"])

    def pcm(self) -> NDArray[np.int16]:
        """The decoded samples, after both trims, of a context that is done."""
        decoder = StreamDecoder(self.format)
        parts = [decoder.push(payload) for *_, payload in self.audio]
        return np.concatenate([*parts, decoder.finish(self.only("done")["samples"])])


class Talk:
    """One connection. Audio is sorted to its context by the stream number that `started` told."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.heard: dict[str | None, Heard] = {}
        self.stray: list[bytes] = []
        self._streams: dict[int, str] = {}

    async def say(self, type: str, context: str | None = None, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type, **({"context": context} if context else {}), **fields}))

    async def receive(self) -> dict[str, Any] | bytes:
        message = await asyncio.wait_for(self.socket.recv(), PATIENCE_S)
        if isinstance(message, bytes):
            version, flags, stream, sequence, start = HEADER.unpack(message[:16])
            assert version == 1
            name = self._streams.get(stream)
            if name is None:
                self.stray.append(message)
            else:
                self.of(name).audio.append((flags, sequence, start, message[16:]))
            return message
        parsed = json.loads(message)
        name = parsed.get("context")
        if parsed["type"] == "started":
            self._streams[parsed["stream"]] = name
            self.heard[name] = Heard()
        self.of(name).messages.append(parsed)
        return parsed

    async def until(self, type: str, context: str | None = None) -> dict[str, Any]:
        """Receives until this message comes."""
        while True:
            message = await self.receive()
            if isinstance(message, dict) and message["type"] == type and message.get("context") == context:
                return message

    async def until_audio(self, context: str) -> None:
        """Receives until the context's first audio has come."""
        while not self.of(context).audio:
            await self.receive()

    async def until_closed(self) -> int | None:
        """Receives until the server closes; the close code."""
        with suppress(ConnectionClosed):
            while True:
                await self.receive()
        return self.socket.close_code

    async def speak(self, context: str, text: str, **start: Any) -> Heard:
        """A whole context, from start to done, as fast as it is generated."""
        await self.say("start", context, **{"lead_ms": 30_000, **start})
        await self.say("text", context, text=text)
        await self.say("end", context)
        await self.until("done", context)
        return self.heard[context]

    def of(self, context: str | None) -> Heard:
        return self.heard.setdefault(context, Heard())


@asynccontextmanager
async def talking(url: str, path: str = "/v1/stream", **options: Any) -> AsyncIterator[Talk]:
    """A connection to the server at `url`, its `ready` already received."""
    options.setdefault("max_size", None)
    async with connect(url.replace("http", "ws", 1) + path, compression=None, ping_interval=None, **options) as socket:
        talk = Talk(socket)
        ready = await talk.receive()
        assert isinstance(ready, dict)
        assert ready["type"] == "ready"
        yield talk

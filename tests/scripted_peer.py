"""A server that says what a test tells it to, through real sockets: `async with peer(script) as url`.

The script is a coroutine that gets the accepted connection; `Peer` gives it the words of the wire.
"""

import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

VOICE = {"id": "heart", "language": "en-US", "engine": "hibari", "tier": "realtime", "sample_rate": 24000}
READY = {"type": "ready", "protocol": "voxgate.v1", "voices": [VOICE], "limits": {"contexts": 8}}


def started(context: str, stream: int = 1, **other: Any) -> dict[str, Any]:
    settled = {"voice": "heart", "tier": "realtime", "codec": "pcm_s16le", "sample_rate": 24000, "channels": 1}
    frames = {"frame_samples": 480, "pre_skip": 0}
    return {"type": "started", "context": context, "stream": stream, **settled, **frames, **other}


def audio(sequence: int, start: int, payload: bytes = b"\0\0", stream: int = 1) -> bytes:
    return struct.pack("!BBHIQ", 1, int(sequence == 0), stream, sequence, start) + payload


class Peer:
    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket

    async def say(self, *messages: dict[str, Any] | bytes) -> None:
        for message in messages:
            await self.socket.send(message if isinstance(message, bytes) else json.dumps(message))

    async def hear(self) -> dict[str, Any]:
        return json.loads(await self.socket.recv())

    async def hear_until(self, type: str) -> list[dict[str, Any]]:
        heard = [await self.hear()]
        while heard[-1]["type"] != type:
            heard.append(await self.hear())
        return heard


Script = Callable[[Peer], Awaitable[object]]


@asynccontextmanager
async def peer(
    script: Script, refuse: Callable[[ServerConnection, Request], Response | None] | None = None
) -> AsyncIterator[str]:
    """The address of a server that runs `script` after `ready` for every connection, then waits for it to be closed."""

    async def handle(socket: ServerConnection) -> None:
        self = Peer(socket)
        await self.say(READY)
        await script(self)
        await socket.wait_closed()

    server = await serve(handle, "127.0.0.1", 0, compression=None, process_request=refuse, ping_interval=None)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


async def silence(_: Peer) -> None:
    """Say nothing after `ready`."""

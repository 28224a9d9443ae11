"""The inner names of uvicorn that `SocketProtocol` leans on: a release that renames one fails here."""

import asyncio
import contextlib
import json
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from voxgate.gateway.protocol import EXTENSION, SocketProtocol


async def read_to_the_end(client: ClientConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await client.recv()


class Server:
    """A real uvicorn around an application that hands its socket to the test."""

    def __init__(self) -> None:
        self.socket: asyncio.Future[SocketProtocol] = asyncio.get_running_loop().create_future()
        self.gone = asyncio.Event()
        self.code: int | None = None
        config = uvicorn.Config(
            self.app, port=0, ws=SocketProtocol, interface="asgi3", lifespan="off", log_level="warning"
        )
        self.server = uvicorn.Server(config)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        self.socket.set_result(scope["extensions"][EXTENSION])
        while (message := await receive())["type"] != "websocket.disconnect":
            pass
        self.code = message["code"]
        self.gone.set()

    async def __aenter__(self) -> "Server":
        self.task = asyncio.create_task(self.server.serve())
        while not self.server.started:  # noqa: ASYNC110 - uvicorn tells it no other way
            await asyncio.sleep(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.should_exit = True
        await self.task


async def test_bytes_the_peer_has_not_read_are_seen():
    async with Server() as server, connect(server.url, max_queue=1, compression=None) as client:
        socket = await server.socket
        assert socket.unacknowledged_bytes() == 0
        for _ in range(200):
            socket.conn.send_binary(bytes(100_000))
            socket.transport.write(b"".join(socket.conn.data_to_send()))
        assert socket.unacknowledged_bytes() > 1_000_000

        for _ in range(200):
            await client.recv()

        while socket.unacknowledged_bytes():  # noqa: ASYNC110 - the kernel tells it no other way
            await asyncio.sleep(0.01)


async def test_a_forced_close_reaches_a_peer_that_reads_late_and_the_application_at_once():
    async with Server() as server, connect(server.url, max_queue=1, max_size=None, compression=None) as client:
        socket = await server.socket
        for _ in range(30):
            socket.conn.send_binary(bytes(1_000_000))
            socket.transport.write(b"".join(socket.conn.data_to_send()))

        socket.force_close(4408)

        await asyncio.wait_for(server.gone.wait(), 5)
        await read_to_the_end(client)
        assert (server.code, client.close_code) == (4408, 4408)


async def test_a_second_close_does_nothing():
    async with Server() as server, connect(server.url) as client:
        socket = await server.socket
        socket.force_close(4408)
        socket.force_close(1001)
        with pytest.raises(ConnectionClosed):
            await client.recv()

        assert client.close_code == 4408


async def test_messages_pass_as_with_plain_uvicorn():
    async with Server() as server, connect(server.url) as client:
        await server.socket
        await client.send(json.dumps({"any": "thing"}))
        await client.close()
        await asyncio.wait_for(server.gone.wait(), 5)

        assert server.code == 1000

"""Sockets that a framework gave up and did not close: LiveKit's plugins do that at every barge-in."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from running import eventually, running_server, server_pid

LONG = "This is a story that goes on for so long that nobody would hear it out without saying something. " * 150
FORM = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 48000}


@asynccontextmanager
async def unread(url: str) -> AsyncIterator[ClientConnection]:
    """A socket whose client takes nothing, with a receive buffer that is soon full."""
    taking = socket.socket()
    taking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    taking.connect(("127.0.0.1", int(url.rpartition(":")[2])))
    ws = url.replace("http", "ws", 1) + "/tts/websocket"
    async with connect(ws, sock=taking, compression=None, ping_interval=None, max_queue=1, close_timeout=0.1) as client:
        yield client


def active(url: str) -> float:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("voxgate_streams_active "))


def resident_mib(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


def asked(context: str, transcript: str, more: bool) -> str:
    voice = {"mode": "id", "id": "heart"}
    told = {"context_id": context, "transcript": transcript, "continue": more, "voice": voice, "output_format": FORM}
    return json.dumps(told)


async def test_an_abandoned_socket_is_not_spoken_to_for_long_and_holds_little_memory():
    with running_server("--workers", "1", "--stall-s", "2") as url:
        pid = server_pid(url)
        async with unread(url) as client:
            await client.send(asked("warm", "Hello there.", False))
            await eventually("it is spoken", lambda: active(url) == 1 or active(url) == 0)
        before = resident_mib(pid)
        sockets = [unread(url) for _ in range(5)]
        clients = [await each.__aenter__() for each in sockets]
        for client in clients:
            await client.send(asked("c1", LONG, False))
        await eventually("all are spoken to", lambda: active(url) == 5)
        await eventually("none is any more", lambda: active(url) == 0)

        assert resident_mib(pid) - before < 5 * 8  # 12 minutes of speech would be 66 MiB each
        for each in sockets:
            await each.__aexit__(None, None, None)


async def test_an_idle_socket_that_answers_no_ping_is_kept_and_serves_its_next_turn(server: str):
    ws = server.replace("http", "ws", 1) + "/tts/websocket"
    async with connect(ws, compression=None, ping_interval=None) as client:
        for context in ("c1", "c2"):
            await client.send(asked(context, "Hello there.", False))
            while json.loads(await client.recv())["type"] != "done":
                pass
            with_nothing_read = client.transport
            with_nothing_read.pause_reading()  # nobody is in `recv`, so no ping would be answered
            await asyncio.sleep(3.0)
            with_nothing_read.resume_reading()


async def test_fifty_fast_interruptions_leave_the_socket_open(server: str):
    ws = (
        server.replace("http", "ws", 1)
        + "/v1/text-to-speech/v/multi-stream-input?output_format=pcm_24000&auto_mode=true"
    )
    async with connect(ws, compression=None) as client:
        for number in range(50):
            id = f"c{number}"
            await client.send(json.dumps({"text": " ", "context_id": id}))
            await client.send(json.dumps({"text": "Hello there, my dear friend of old.", "context_id": id}))
            await client.send(json.dumps({"context_id": id, "close_context": True}))
        finals = 0
        while finals < 50:
            finals += json.loads(await client.recv()).get("isFinal") is True
        await client.send(json.dumps({"text": "And on.", "context_id": "on"}))
        await client.send(json.dumps({"context_id": "on", "flush": True}))
        await client.send(json.dumps({"context_id": "on", "close_context": True}))
        said = [json.loads(await client.recv())]
        while not said[-1].get("isFinal"):
            said.append(json.loads(await client.recv()))
        assert {message["contextId"] for message in said} == {"on"}
        assert len(said) > 2
        with pytest.raises(TimeoutError):  # nothing more comes, not even the end
            await asyncio.wait_for(client.recv(), 0.2)

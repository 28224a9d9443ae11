import asyncio
import json
import time

from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request

from scripted_peer import Peer, audio, peer, silence, started
from voxgate.client import Audio, Done, Started, connect


async def read(context) -> list:
    return [event async for event in context]


async def test_a_message_in_fragments_is_one_message():
    async def speak(server: Peer) -> None:
        await server.hear()
        await server.say(started("c1"))
        whole, text = audio(0, 0, b"abcd"), json.dumps({"type": "done", "context": "c1", "samples": 2})
        await server.socket.send([whole[:3], whole[3:17], whole[17:]])
        await server.socket.send([text[:5], text[5:]])

    async with peer(speak) as url, connect(url) as connection:
        events = await read(await connection.start())

    assert [events[1].payload, events[2]] == [b"abcd", Done("c1", 2)]


async def test_a_context_nobody_reads_stops_the_server_and_reading_lets_it_go_on():
    messages = 2000  # of 16 KiB: far more than the buffers of both sockets hold
    sent = 0
    stuck = asyncio.Event()

    async def speak(server: Peer) -> None:
        nonlocal sent
        await server.hear()
        await server.say(started("c1"))
        for sequence in range(messages):
            sending = asyncio.ensure_future(server.say(audio(sequence, 8192 * sequence, bytes(16384))))
            if not (await asyncio.wait([sending], timeout=0.5))[0]:
                stuck.set()
            await sending
            sent += 1
        stuck.set()
        await server.say({"type": "done", "context": "c1", "samples": 8192 * messages})

    async with peer(speak) as url, connect(url) as connection:
        context = await connection.start()
        await stuck.wait()
        assert sent < messages

        assert sum(isinstance(event, Audio) for event in await read(context)) == messages


async def test_audio_is_stamped_when_it_comes_not_when_it_is_read():
    async def speak(server: Peer) -> None:
        await server.hear()
        await server.say(started("c1"), audio(0, 0), {"type": "done", "context": "c1", "samples": 1})
        await server.say(started("c2"), {"type": "done", "context": "c2", "samples": 0})

    async with peer(speak) as url, connect(url) as connection:
        first, second = await connection.start(), await connection.start()
        await read(second)
        had_come_at = time.monotonic()
        _, sound, _ = await read(first)

    assert isinstance(sound, Audio)
    assert sound.received_at <= had_come_at


async def test_a_ping_is_answered():
    async def ask(server: Peer) -> None:
        await server.hear()
        await (await server.socket.ping())
        await server.say(started("c1"), {"type": "done", "context": "c1", "samples": 0})

    async with peer(ask) as url, connect(url) as connection:
        assert isinstance((await read(await connection.start()))[0], Started)


async def test_no_compression_is_offered():
    offered = []

    def look(_: ServerConnection, request: Request) -> None:
        offered.append("Sec-WebSocket-Extensions" in request.headers)

    async with peer(silence, look) as url, connect(url):
        assert offered == [False]

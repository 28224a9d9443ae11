import asyncio
import socket

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from scripted_peer import Peer, audio, peer, silence, started
from voxgate.client import (
    Audio,
    Cancelled,
    ConnectionClosed,
    ContextError,
    Done,
    Error,
    HandshakeRefused,
    ProtocolError,
    Started,
    Unreachable,
    VoiceInfo,
    connect,
)
from voxgate.client.connection import stream_url
from voxgate.client.context import HIGH_EVENTS


def refusal(status: int, headers: dict[str, str], body: bytes):
    def refuse(_: ServerConnection, __: Request) -> Response:
        return Response(status, "No", Headers({"Content-Length": str(len(body)), **headers}), body)

    return refuse


async def read(context) -> list:
    return [event async for event in context]


async def test_a_connection_knows_what_ready_said():
    async with peer(silence) as url, connect(url) as connection:
        assert connection.ready.voices == (VoiceInfo("heart", "en-US", "hibari", "realtime", 24000),)
        assert connection.ready.limits == {"contexts": 8}


async def test_text_out_and_audio_in():
    heard = []

    async def speak(server: Peer) -> None:
        heard.extend(await server.hear_until("end"))
        await server.say(
            started("c1"), audio(0, 0, b"ab"), audio(1, 1, b"cd"), {"type": "done", "context": "c1", "samples": 2}
        )

    async with peer(speak) as url, connect(url) as connection:
        context = await connection.start(voice="heart", codec="pcm_s16le")
        await context.send("Hello, ")
        await context.send("“you”.")
        await context.end()
        events = await read(context)

    assert heard == [
        {"type": "start", "context": "c1", "voice": "heart", "codec": "pcm_s16le"},
        {"type": "text", "context": "c1", "text": "Hello, "},
        {"type": "text", "context": "c1", "text": "“you”."},
        {"type": "end", "context": "c1"},
    ]
    assert [type(event) for event in events] == [Started, Audio, Audio, Done]
    assert [(event.start, event.payload) for event in events[1:3]] == [(0, b"ab"), (1, b"cd")]
    assert events[1].first
    assert not events[2].first


async def test_contexts_are_told_apart_by_their_stream():
    async def speak(server: Peer) -> None:
        await server.hear_until("end")
        await server.hear_until("end")
        await server.say(started("b", 7), started("a", 9), audio(0, 0, b"aa", 9), audio(0, 0, b"bb", 7))
        await server.say({"type": "done", "context": "a", "samples": 1}, {"type": "done", "context": "b", "samples": 1})

    async with peer(speak) as url, connect(url) as connection:
        contexts = [await connection.start(id) for id in "ab"]
        for context in contexts:
            await context.end()
        payloads = [[event.payload for event in await read(one) if isinstance(event, Audio)] for one in contexts]

    assert payloads == [[b"aa"], [b"bb"]]


async def test_the_end_of_one_context_leaves_the_others():
    async def speak(server: Peer) -> None:
        await server.hear()
        await server.hear()
        await server.say(
            {"type": "error", "context": "a", "code": "overloaded", "message": "no room", "retry_after": 2}
        )
        await server.say({"type": "error", "context": None, "about": "b", "code": "bad_message", "message": "?"})
        await server.say({"type": "done", "context": "b", "samples": 0})

    async with peer(speak) as url, connect(url) as connection:
        a, b = [await connection.start(id) for id in "ab"]
        with pytest.raises(ContextError, match="no room"):
            await read(a)
        assert await read(b) == [Error("bad_message", None, "b", "?"), Done("b", 0)]


async def test_messages_nobody_waits_for_are_counted_and_dropped():
    async def speak(server: Peer) -> None:
        await server.hear()
        await server.say(
            audio(5, 99, b"", 42), {"type": "weather"}, {"type": "flushed", "context": "zz"}, {"type": "pong"}
        )
        await server.say({"type": "error", "context": None, "code": "bad_message", "message": "?"})
        await server.say(started("c1"), {"type": "done", "context": "c1", "samples": 0}, audio(0, 0))
        await server.say(started("c2", 1), {"type": "done", "context": "c2", "samples": 0})

    async with peer(speak) as url, connect(url) as connection:
        contexts = [await connection.start(), await connection.start()]
        ends = [(await read(context))[-1] for context in contexts]

        assert ends == [Done("c1", 0), Done("c2", 0)]
        assert (connection.dropped, connection.unknown) == (2, 2)
        assert [error.code for error in connection.errors] == ["bad_message"]


async def test_an_id_can_be_used_again_after_its_end_only():
    async def speak(server: Peer) -> None:
        await server.hear()
        await server.say({"type": "done", "context": "a", "samples": 0})

    async with peer(speak) as url, connect(url) as connection:
        first = await connection.start("a")
        with pytest.raises(ValueError, match="still live"):
            await connection.start("a")
        await read(first)
        await connection.start("a")


async def test_a_context_that_is_done_can_still_be_asked_what_was_heard():
    async def speak(server: Peer) -> None:
        await server.hear()
        await server.say(started("c1"), {"type": "done", "context": "c1", "samples": 9})
        await server.hear_until("cancel")
        await server.say({"type": "cancelled", "context": "c1", "sent": 9, "heard": 4, "text": "He"})

    async with peer(speak) as url, connect(url) as connection:
        context = await connection.start()
        await read(context)
        await context.cancel(played=4)

        assert await read(context) == [Cancelled("c1", 9, 4, "He")]


async def test_a_gap_in_the_audio_fails_the_connection():
    async def speak(server: Peer) -> None:
        await server.hear()
        await server.say(started("c1"), audio(0, 0), audio(2, 960))

    async with peer(speak) as url, connect(url) as connection:
        context = await connection.start()
        with pytest.raises(ProtocolError, match="audio 2 came instead of 1"):
            await read(context)
        with pytest.raises(ProtocolError):
            await context.send("more")


async def test_a_close_ends_every_context_with_its_code():
    async def speak(server: Peer) -> None:
        await server.hear()
        await server.hear()
        await server.socket.close(4408, "slow reader")

    async with peer(speak) as url, connect(url) as connection:
        for context in [await connection.start(), await connection.start()]:
            with pytest.raises(ConnectionClosed) as caught:
                await read(context)
            assert (caught.value.code, caught.value.reason) == (4408, "slow reader")
        with pytest.raises(ConnectionClosed):
            await connection.start()


async def test_closing_ends_the_contexts_that_are_live():
    async with peer(silence) as url, connect(url) as connection:
        context = await connection.start()
        reading = asyncio.ensure_future(read(context))
        await asyncio.sleep(0)
        await connection.close()
        with pytest.raises(ConnectionClosed, match="this side"):
            await reading


async def test_a_connection_closes_while_a_context_nobody_reads_holds_the_socket():
    async def speak(server: Peer) -> None:
        await server.hear()
        await server.say(started("c1"), *(audio(sequence, 0, bytes(1024)) for sequence in range(HIGH_EVENTS + 1)))
        await server.say({"type": "done", "context": "other", "samples": 0})

    async with peer(speak) as url, connect(url) as connection:
        context = await connection.start()
        await anext(context)
        await connection.close()
        with pytest.raises(ConnectionClosed, match="this side"):
            await read(context)


async def test_the_key_is_sent_as_a_bearer():
    seen = []

    def look(_: ServerConnection, request: Request) -> None:
        seen.append((request.path, request.headers.get("Authorization"), request.headers["Sec-WebSocket-Protocol"]))

    async with peer(silence, look) as url:
        async with connect(url, "secret"):
            pass
        async with connect(url + "/v1/stream?voice=heart"):
            pass

    assert seen == [
        ("/v1/stream", "Bearer secret", "voxgate.v1"),
        ("/v1/stream?voice=heart", None, "voxgate.v1"),
    ]


@pytest.mark.parametrize(
    ("status", "headers", "body", "retry_after", "message"),
    [
        (503, {"Retry-After": "2.5"}, b"full house", 2.5, "full house"),
        (401, {}, b'{"error":{"code":"unauthorized","message":"wrong key"}}', None, "wrong key"),
        (429, {"Retry-After": "soon"}, b"", None, "No"),
    ],
)
async def test_a_refused_handshake_tells_status_and_when_to_come_back(status, headers, body, retry_after, message):
    async with peer(silence, refusal(status, headers, body)) as url:
        with pytest.raises(HandshakeRefused) as caught:
            async with connect(url):
                pass

    assert (caught.value.status, caught.value.retry_after, caught.value.message) == (status, retry_after, message)


async def test_a_server_that_closes_before_ready_is_a_closed_connection():
    async def handle(client: ServerConnection) -> None:
        await client.close(1013, "full")

    async with serve(handle, "127.0.0.1", 0) as server:
        with pytest.raises(ConnectionClosed, match="1013"):
            async with connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"):
                pass


async def test_no_server_is_unreachable():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable):
            async with connect(f"ws://127.0.0.1:{unused.getsockname()[1]}"):
                pass


async def test_a_server_that_never_answers_is_unreachable():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(Unreachable, match="did not answer"):
            async with connect(f"ws://127.0.0.1:{mute.getsockname()[1]}", open_timeout=0.05):
                pass


@pytest.mark.parametrize(
    ("url", "stream"),
    [
        ("ws://host:1", "ws://host:1/v1/stream"),
        ("https://host/", "wss://host/v1/stream"),
        ("http://host?voice=heart", "ws://host/v1/stream?voice=heart"),
        ("wss://host/behind/proxy", "wss://host/behind/proxy"),
    ],
)
def test_a_plain_address_means_the_stream(url, stream):
    assert stream_url(url) == stream


@pytest.mark.parametrize("url", ["", "host:8080", "ftp://host", "ws://"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ValueError, match="not a"):
        stream_url(url)


async def test_reading_stops_while_the_caller_says_so():
    async def speak(server: Peer) -> None:
        await server.say(started("c1"), audio(0, 0), {"type": "done", "context": "c1", "samples": 1})

    paused = asyncio.Event()

    async def speak_when_paused(server: Peer) -> None:
        await server.hear_until("end")
        await paused.wait()
        await speak(server)
        await server.socket.close()

    async with peer(speak_when_paused) as url, connect(url) as connection:
        context = await connection.start()
        await context.end()
        connection.pause_reading()
        paused.set()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(context), 0.2)
        assert not connection.closed
        connection.resume_reading()
        assert [type(event) for event in await read(context)] == [Started, Audio, Done]


async def test_a_bounded_receive_buffer_lets_the_server_feel_a_reader_that_is_stuck():
    sent = 0
    blocked = asyncio.Event()

    async def flood(server: Peer) -> None:
        nonlocal sent
        server.socket.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        await server.hear_until("end")
        await server.say(started("c1"))
        for sequence in range(200):
            try:
                await asyncio.wait_for(server.say(audio(sequence, sequence * 4000, bytes(8000))), 0.5)
            except TimeoutError:
                break
            sent += 1
        blocked.set()

    async with peer(flood) as url, connect(url, receive_buffer_bytes=4096) as connection:
        context = await connection.start()
        connection.pause_reading()
        await context.end()
        await blocked.wait()

    assert sent < 100  # 800 kB; left alone the system takes in megabytes

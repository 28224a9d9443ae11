"""Wyoming over real TCP."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from running import free_port, running_server
from voxgate.gateway.adapters.wyoming import framed


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    port = free_port()
    with running_server("--wyoming-port", str(port), "--workers", "1", "--max-connections", "2"):
        yield port


async def read(reader: asyncio.StreamReader) -> tuple[str, dict[str, Any], bytes]:
    header = json.loads(await asyncio.wait_for(reader.readline(), 20))
    data = await reader.readexactly(header.get("data_length", 0))
    return header["type"], json.loads(data or b"{}"), await reader.readexactly(header.get("payload_length", 0))


async def until(reader: asyncio.StreamReader, type: str) -> list[tuple[str, dict[str, Any], bytes]]:
    events = [await read(reader)]
    while events[-1][0] != type:
        events.append(await read(reader))
    return events


async def test_one_connection_speaks_one_text_after_the_other(port: int):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    # Older clients write the data into the line.
    writer.write(b'{"type":"synthesize","data":{"text":"Hello there."}}\n')
    first = await until(reader, "audio-stop")
    writer.write(framed("synthesize", {"text": "Hello there."}, b"of no use"))
    second = await until(reader, "audio-stop")
    writer.close()

    assert sum(len(payload) for _, _, payload in first) == sum(len(payload) for _, _, payload in second) > 20_000


@pytest.mark.parametrize(
    "junk",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"type":"describe","data_length":999999999}\n',
        b'{"type":"describe","payload_length":-1}\n',
        b'{"type":"describe","data_length":3}\n{}}',
        b"x" * 100_000,
    ],
)
async def test_what_is_no_event_ends_the_connection(port: int, junk: bytes):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(junk)

    assert await asyncio.wait_for(reader.read(), 20) == b""
    writer.close()


async def test_more_connections_than_there_may_be_are_told_so(port: int):
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    for reader, writer in held:
        writer.write(framed("ping", {"text": "here"}))
        assert (await read(reader))[0] == "pong"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    type, data, _ = await read(reader)

    assert (type, data["code"]) == ("error", "overloaded")
    assert await reader.read() == b""
    for _, each in [*held, (reader, writer)]:
        each.close()

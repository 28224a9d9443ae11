import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from running import eventually
from voxgate.gateway.neighbours import LENGTH, Neighbours


@asynccontextmanager
async def living(folder: Path, number: int, message: bytes = b"") -> AsyncIterator[Neighbours]:
    """One of several gateways, whose socket can be connected to."""
    neighbours = Neighbours(folder, number, lambda: message)
    task = asyncio.create_task(neighbours.run())
    await eventually("a socket", lambda: can_be_connected_to(folder / f"gateway-{number}"))
    try:
        yield neighbours
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def can_be_connected_to(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        return asking.connect_ex(str(path)) == 0


def dead(folder: Path, number: int) -> socket.socket:
    """The socket of a gateway that was killed: it is there, and nobody takes what comes."""
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(folder / f"gateway-{number}"))
    return left


async def test_whichever_is_asked_tells_of_all(tmp_path: Path):
    long = os.urandom(1 << 20)
    told = {0: b"zero", 1: b"", 12: long}
    async with AsyncExitStack() as stack:
        all_of_them = [await stack.enter_async_context(living(tmp_path, *each)) for each in told.items()]
        assert [await each.ask_all() for each in all_of_them] == [told] * 3


async def test_one_that_is_gone_is_told_of_as_unknown(tmp_path: Path):
    async with living(tmp_path, 0, b"zero") as zero:
        with dead(tmp_path, 1):
            assert await zero.ask_all() == {0: b"zero", 1: None}


async def test_one_that_hangs_keeps_nobody_waiting(tmp_path: Path):
    async with living(tmp_path, 0, b"zero") as zero:
        with dead(tmp_path, 1) as hanging:
            hanging.listen()
            assert await asyncio.wait_for(zero.ask_all(), 20) == {0: b"zero", 1: None}


async def test_one_that_ends_in_mid_message_is_unknown(tmp_path: Path):
    async def cut_off(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(LENGTH.pack(100) + b"not so many")
        writer.close()

    async with (
        await asyncio.start_unix_server(cut_off, tmp_path / "gateway-1"),
        living(tmp_path, 0, b"zero") as zero,
    ):
        assert await zero.ask_all() == {0: b"zero", 1: None}


async def test_one_that_replaces_another_takes_its_place(tmp_path: Path):
    dead(tmp_path, 1).close()
    async with living(tmp_path, 0, b"zero") as zero, living(tmp_path, 1, b"one"):
        assert await zero.ask_all() == {0: b"zero", 1: b"one"}

"""One process of a run that is spread over several: a driver, told what to do on stdin, telling on stdout."""

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from typing import Any

import uvloop

from .driver import Driver
from .run import LOOK_SECONDS, pack, progress, unpack


async def serve(commands: asyncio.StreamReader, answer: Callable[[Any], None]) -> None:
    """Gets (load, target), answers True; gets the instant of the begin, answers with progress and the statistics."""
    if (told := await unpack(commands)) is None:
        return
    load, target = told
    answer(True)
    began_at = await unpack(commands)
    if began_at is None:
        return
    driver = Driver(load, target, began_at)
    gc.freeze()
    telling = [asyncio.create_task(_tell(driver, answer)), asyncio.create_task(_obey(driver, commands))]
    try:
        answer(await driver.run())
    finally:
        for task in telling:
            task.cancel()


async def _tell(driver: Driver, answer: Callable[[Any], None]) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        answer(progress(driver))


async def _obey(driver: Driver, commands: asyncio.StreamReader) -> None:
    """Told to stop, or left alone: the run is over."""
    driver.stop(await unpack(commands) or "the load test's own process is gone")


async def _main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # what anything prints must not come between the messages
    commands = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    await serve(commands, lambda what: _write_all(out, pack(what)))


def _write_all(file: int, data: bytes) -> None:
    """Blocks while the pipe is full, which the other side is there to prevent."""
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


if __name__ == "__main__":
    uvloop.run(_main())

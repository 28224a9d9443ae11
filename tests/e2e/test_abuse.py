"""One client must not be felt by the others, and leaves nothing behind."""

import asyncio
import contextlib
import json
from pathlib import Path

from running import running_server, server_pid
from talk import talking


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


async def abort(url: str, count: int) -> None:
    """`count` utterances, each cancelled as soon as it is asked for, over a connection of their own."""
    async with talking(url) as talk:
        for number in range(count):
            await talk.say("start", f"c{number}")
            await talk.say("text", f"c{number}", text=f"Number {number} will not be heard. Never ever.")
            await talk.say("cancel", f"c{number}")
            await talk.until("cancelled", f"c{number}")


async def test_aborted_utterances_leave_no_memory_behind():
    with running_server("--workers", "1") as url:
        pid = server_pid(url)
        for _ in range(10):
            await abort(url, 100)
        before = resident_bytes(pid)
        for _ in range(20):
            await abort(url, 100)

        assert resident_bytes(pid) - before <= 4 * 2**20


async def test_contexts_that_ended_without_a_word_cost_no_encoder():
    with running_server("--workers", "1") as url:
        pid = server_pid(url)
        async with contextlib.AsyncExitStack() as stack:
            talks = [await stack.enter_async_context(talking(url)) for _ in range(10)]
            before = resident_bytes(pid)
            for talk in talks:
                for number in range(250):
                    await talk.say("start", f"c{number}")
                    await talk.say("cancel", f"c{number}")
                    await talk.until("cancelled", f"c{number}")

            # With an encoder each they would be 110 MB.
            assert resident_bytes(pid) - before <= 6 * 2**20


async def test_a_client_that_floods_is_not_felt_by_the_others():
    with running_server() as url:
        async with talking(url) as hog, talking(url) as other:
            stop = asyncio.Event()

            async def flood() -> None:
                number = 0
                while not stop.is_set():
                    number += 1
                    messages = (
                        {"type": "text", "context": f"c{number}", "text": "a, " * 700},
                        {"type": "cancel", "context": f"c{number}"},
                    )
                    for message in messages:
                        await hog.socket.send(json.dumps(message))

            async def drain() -> None:
                while not stop.is_set():
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(hog.socket.recv(), 0.2)

            flooding = [asyncio.create_task(flood()), asyncio.create_task(drain())]
            longest = 0.0
            for _ in range(50):
                began_at = asyncio.get_running_loop().time()
                await other.say("ping")
                await other.until("pong")
                longest = max(longest, asyncio.get_running_loop().time() - began_at)
            stop.set()
            await asyncio.gather(*flooding)

            # What is tested is that the others get a turn at all: before, they waited for a second and more.
            assert longest < 0.5

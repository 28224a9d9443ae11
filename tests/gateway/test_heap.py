import asyncio
import contextlib
from pathlib import Path

import numpy as np

from voxgate.gateway import heap

PAGE = 4096


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


async def test_what_lies_free_below_a_living_block_is_given_back():
    blocks = [np.ones(60_000, np.int8) for _ in range(1000)]  # 60 MB in the heap: each is too small to be mapped alone
    kept = blocks[-1]
    del blocks
    before = resident_bytes()

    task = asyncio.create_task(heap.give_back(0.0))
    async with asyncio.timeout(20.0):
        for _ in range(10_000):
            await asyncio.sleep(0)
            if before - resident_bytes() >= 30_000_000:
                break
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert before - resident_bytes() >= 30_000_000
    assert kept.all()

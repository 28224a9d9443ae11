import asyncio
import gc
import subprocess
import sys
import weakref

import pytest

from voxgate.gateway import heap

# In a process of its own: where much lies free already, 60 MB more need not lie below anything.
BURST = """
import asyncio
from pathlib import Path

import numpy as np

from voxgate.gateway import heap


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def main():
    blocks = [np.ones(60_000, np.int8) for _ in range(1000)]  # each is too small to be mapped alone
    kept = blocks[-1]
    del blocks
    before = resident_bytes()
    task = asyncio.create_task(heap.give_back(lambda: False, 0.0))
    for _ in range(200):
        await asyncio.sleep(0.01)
        if before - resident_bytes() >= 30_000_000:
            break
    task.cancel()
    print(before - resident_bytes(), kept.all())


asyncio.run(main())
"""


def test_what_lies_free_below_a_living_block_is_given_back():
    done = subprocess.run([sys.executable, "-c", BURST], capture_output=True, text=True, check=True)

    given_back, kept = done.stdout.split()
    assert int(given_back) >= 30_000_000
    assert kept == "True"


class Ring:
    """Refers to itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("quiet", [True, False])
async def test_cycles_are_collected_while_it_is_quiet(quiet: bool):
    gc.collect()
    gc.disable()
    ring = weakref.ref(Ring())
    asked, again = list[bool](), asyncio.Event()

    def is_quiet() -> bool:
        asked.append(True)
        if len(asked) == 2:
            again.set()
        return quiet

    try:
        task = asyncio.create_task(heap.give_back(is_quiet, 0.0))
        async with asyncio.timeout(20.0):
            await again.wait()
        task.cancel()
        assert (ring() is None) is quiet
    finally:
        gc.enable()

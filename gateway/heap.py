"""Gives memory that a burst has left free in the C heap back to the system.

glibc returns only what lies at the top of a heap; below a single block that lives on everything stays with the process,
and a server of a quiet hour looks as large as at its busiest. Elsewhere than on glibc nothing is done.
"""

import asyncio
import ctypes
from collections.abc import Callable
from typing import cast

EVERY_S = 10.0


async def give_back(every_s: float = EVERY_S) -> None:
    """Until cancelled."""
    if (trim := _trim()) is not None:
        while True:
            await asyncio.sleep(every_s)
            await asyncio.to_thread(trim, 0)


def _trim() -> Callable[[int], int] | None:
    return cast(Callable[[int], int] | None, getattr(ctypes.CDLL(None), "malloc_trim", None))

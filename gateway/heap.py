"""Gives memory that a burst has left free back to the system.

What lies in cycles is collected first, while nobody listens: the thresholds of the server's collector are high. Then
the C heap: glibc returns only what lies at its top; below a single block that lives on everything stays with the
process, and a server of a quiet hour looks as large as at its busiest. Elsewhere than on glibc it stays.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from typing import cast

EVERY_S = 10.0


async def give_back(is_quiet: Callable[[], bool], every_s: float = EVERY_S) -> None:
    """Until cancelled. `is_quiet`: whether a pause of some milliseconds hurts nobody just now."""
    trim = _trim()
    while True:
        await asyncio.sleep(every_s)
        if is_quiet():
            gc.collect()
        if trim is not None:
            await asyncio.to_thread(trim, 0)


def _trim() -> Callable[[int], int] | None:
    return cast(Callable[[int], int] | None, getattr(ctypes.CDLL(None), "malloc_trim", None))

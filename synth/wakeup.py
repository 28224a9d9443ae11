"""Timers of the event loop that are never early.

uvloop counts in whole milliseconds and rounds: its timers come up to 1.5 ms before their time. Whoever asks what is due
then finds nothing, sets the rest as a timer of 0 ms and spins until the time has come, several times for each timer.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

EARLY_S = 0.0015


def call_at(instant: float, callback: Callable[..., Any], *args: Any) -> asyncio.TimerHandle:
    """Calls back at `instant` (`time.monotonic` seconds) or up to 3 ms later."""
    delay = max(0.0, instant - time.monotonic())
    return asyncio.get_running_loop().call_later(delay + EARLY_S, callback, *args)

import asyncio
import time

import uvloop

from voxgate.synth.wakeup import call_at


async def _instants(delays: list[float]) -> list[tuple[float, float]]:
    """Asked-for and real instants of so many timers."""
    met: list[tuple[float, float]] = []
    done = asyncio.Event()

    def note(instant: float) -> None:
        met.append((instant, time.monotonic()))
        if len(met) == len(delays):
            done.set()

    for delay in delays:
        instant = time.monotonic() + delay
        call_at(instant, note, instant)
    await done.wait()
    return met


def test_a_timer_is_never_early():
    met = uvloop.run(_instants([n * 0.00013 for n in range(400)]))

    assert [instant for instant, real in met if real < instant] == []


def test_an_instant_that_has_passed_is_met_at_once():
    met = uvloop.run(_instants([-1.0]))

    assert len(met) == 1

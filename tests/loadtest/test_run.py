import os
import signal
from pathlib import Path

import pytest

from running import children_of
from scripted_peer import Peer, audio, peer, started
from voxgate.loadtest.conversation import Target
from voxgate.loadtest.plan import Load
from voxgate.loadtest.run import Progress, Stop, run

MIX = (("short", 1.0),)
SECOND = b"\0\0" * 24_000


async def speak(server: Peer) -> None:
    for stream in range(1, 100):
        context = (await server.hear_until("end"))[0]["context"]
        await server.say(started(context, stream), audio(0, 0, SECOND[:4800], stream))
        await server.say({"type": "done", "context": context, "samples": 2400})


@pytest.mark.parametrize("processes", [1, 2])
async def test_all_processes_make_one_run(processes):
    shown: list[tuple[float, Progress]] = []
    async with peer(speak) as url:
        statistics, server = await run(
            Load(streams=4, ramp=0.0, duration=1.5, mix=MIX),
            Target(url),
            processes=processes,
            server_pid=os.getpid(),
            on_progress=lambda elapsed, progress: shown.append((elapsed, progress)),
            stop=Stop(),
        )

    assert statistics.connects.count == 4
    assert statistics.outcomes["done"] >= 8
    assert set(statistics.outcomes) == {"done"}
    assert statistics.plateau_seconds == pytest.approx(1.5, abs=0.5)
    assert statistics.cut_short == ""
    assert shown
    assert server is None or server.processes >= 1


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_stop_ends_every_process_and_keeps_what_there_was(processes):
    stop = Stop()

    def show(_: float, progress: Progress) -> None:
        if progress.done:
            stop.request("interrupted")

    async with peer(speak) as url:
        statistics, _ = await run(
            Load(streams=4, ramp=0.0, duration=600.0, mix=MIX),
            Target(url),
            processes=processes,
            on_progress=show,
            stop=stop,
        )

    assert statistics.cut_short == "interrupted"
    assert statistics.outcomes["done"] > 0


async def test_what_the_server_uses_is_looked_at_on_the_plateau():
    async with peer(speak) as url:
        _, server = await run(
            Load(streams=1, ramp=0.0, duration=3.2, mix=MIX),
            Target(url),
            server_pid=os.getpid(),
            on_progress=lambda *_: None,
            stop=Stop(),
        )

    assert server is not None
    assert server.cpu_seconds > 0
    assert server.seconds >= 1.0
    assert server.peak_rss_bytes > 1 << 20


def is_share(pid: int) -> bool:
    return b"loadtest.share" in Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_a_process_that_dies_is_told_and_the_rest_goes_on():
    killed: list[int] = []

    def kill_one(_: float, __: Progress) -> None:
        if not killed:
            killed.append(next(pid for pid in children_of(os.getpid()) if is_share(pid)))
            os.kill(killed[0], signal.SIGKILL)

    async with peer(speak) as url:
        statistics, _ = await run(
            Load(streams=2, ramp=0.0, duration=2.0, mix=MIX),
            Target(url),
            processes=2,
            on_progress=kill_one,
            stop=Stop(),
        )

    assert statistics.cut_short == "a process of the load test died"
    assert statistics.outcomes["done"] > 0

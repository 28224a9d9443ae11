import os
import signal
from pathlib import Path

import pytest

from running import children_of, running_server, server_pid, server_pids
from talk import talking


async def test_a_second_signal_ends_the_drain():
    with running_server("--drain-s", "600") as url:
        async with talking(url) as idle, talking(url) as talk:
            await talk.say("text", "c1", text="A long story indeed. " * 60)
            await talk.until_audio("c1")
            pid = server_pid(url)
            os.kill(pid, signal.SIGTERM)
            await idle.socket.wait_closed()
            os.kill(pid, signal.SIGTERM)
            error = await talk.until("error", "c1")
            closed_with = await talk.until_closed()

    assert error["code"] == "overloaded"
    assert closed_with in (1001, 1012)


@pytest.mark.parametrize("gateways", ["1", "2"])
async def test_a_signal_to_every_process_of_the_service_lets_speech_finish(gateways: str):
    with running_server("--gateways", gateways, "--workers", "2") as url:
        async with talking(url) as talk:
            await talk.say("start", "c1", lead_ms=0)
            await talk.say(
                "text", "c1", text="This will be finished, although all were asked to stop. And so will this."
            )
            await talk.say("end", "c1")
            await talk.until_audio("c1")
            for pid in processes_of(url):
                os.kill(pid, signal.SIGTERM)
            done = await talk.until("done", "c1")
            closed_with = await talk.until_closed()

    assert closed_with == 1001
    assert len(talk.heard["c1"].pcm()) == done["samples"]


def processes_of(url: str) -> list[int]:
    """Supervisor, gateways and workers of a server."""
    gateways = server_pids(url)
    workers = [worker for gateway in gateways for worker in children_of(gateway)]
    parent = int(Path(f"/proc/{gateways[0]}/stat").read_text().rpartition(")")[2].split()[1])
    return [*([parent] if len(gateways) > 1 else []), *gateways, *workers]

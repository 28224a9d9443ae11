import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from running import children_of, eventually, running_server, server_pids
from talk import talking
from voxgate.gateway.config import Config, EngineConfig
from voxgate.gateway.supervisor import shares


@pytest.fixture(scope="module")
def two_gateways() -> Iterator[str]:
    with running_server("--gateways", "2", "--workers", "2") as url:
        yield url


@given(
    gateways=st.integers(1, 20), workers=st.integers(0, 40), connections=st.integers(1, 5000), cores=st.integers(1, 64)
)
def test_shares_add_up_to_the_whole_and_none_is_empty(gateways: int, workers: int, connections: int, cores: int):
    parts = shares(Config(gateways=gateways, workers=workers, max_connections=connections), cores)

    assert len(parts) == gateways
    assert all(part.gateways == 1 and part.workers >= 1 and part.max_connections >= 1 for part in parts)
    assert sum(part.workers for part in parts) == max(workers or cores, gateways)
    assert sum(part.max_connections for part in parts) == max(connections, gateways)
    assert sum(part.min_utterances for part in parts) == max(10, gateways)
    assert sum(part.max_waiting for part in parts) == 256
    assert max(part.workers for part in parts) - min(part.workers for part in parts) <= 1


def test_workers_of_an_engine_are_shared_out_and_every_gateway_has_one():
    engines = {"hibari": EngineConfig(workers=5), "own": EngineConfig(factory="a:b", device="GPU-1", workers=1)}
    parts = shares(Config(gateways=2, engines={**engines, "more": EngineConfig(factory="a:c")}), cores=4)

    assert [[engine.workers for engine in part.engines.values()] for part in parts] == [[3, 1, 0], [2, 1, 0]]
    assert all(part.engines["own"].device == "GPU-1" for part in parts)


async def test_two_gateways_share_one_port_and_speak(two_gateways: str):
    gateways = server_pids(two_gateways)
    assert len(gateways) == 2

    for number in range(12):
        async with talking(two_gateways) as talk:
            await talk.speak("c1", f"Number {number}.")

    assert all(children_of(pid) for pid in gateways)


async def test_metrics_tell_of_all_gateways_whichever_is_asked(two_gateways: str):
    before = served(two_gateways)
    for number in range(8):
        async with talking(two_gateways) as talk:
            await talk.speak("c1", f"Number {number}.")  # one clause: never two utterances, however late its end comes

    for _ in range(8):  # connections: about half to each
        after = served(two_gateways)
        assert sorted(after) == ["0", "1"]
        assert sum(after.values()) - sum(before.values()) == 8


async def test_a_gateway_that_dies_is_replaced_and_counts_anew(two_gateways: str):
    killed, other = server_pids(two_gateways)
    os.kill(killed, signal.SIGKILL)
    await eventually(
        "two gateways again",
        lambda: len(server_pids(two_gateways)) == 2 and killed not in server_pids(two_gateways),
    )

    assert other in server_pids(two_gateways)
    assert sorted(served(two_gateways)) == ["0", "1"]


def served(url: str) -> dict[str, int]:
    """Utterances, by the gateway that served them."""
    metrics = httpx.get(f"{url}/metrics").text
    counts = re.findall(r'^voxgate_utterances_total{gateway="(\d+)",outcome="served"} (\d+)', metrics, re.MULTILINE)
    return {gateway: int(count) for gateway, count in counts}


def test_one_signal_ends_all_of_them_and_their_workers():
    command = [sys.executable, "-m", "voxgate", "serve", "--port", "0", "--gateways", "2", "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        while len(gateways := server_pids(url)) < 2:
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0

    assert not [pid for pid in gateways if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("count", ["0", "257"])
def test_a_senseless_number_of_gateways_is_refused(count: str):
    command = [sys.executable, "-m", "voxgate", "serve", "--gateways", count]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert result.returncode == 2
    assert "gateways" in result.stderr


def test_gateways_that_never_come_up_end_the_server(tmp_path: Path):
    phrases = tmp_path / "phrases.toml"
    phrases.write_text('[[phrase]]\ntext = "漢字"\n', encoding="utf-8")
    command = [sys.executable, "-m", "voxgate", "serve", "--port", "0", "--gateways", "2", "--phrases", str(phrases)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)

    assert result.returncode == 1
    assert "the gateways do not come up" in result.stderr
    assert "listening on" not in result.stdout

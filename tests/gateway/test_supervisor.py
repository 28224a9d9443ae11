import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from running import children_of, eventually, running_server, server_pids
from talk import talking
from voxgate.gateway.config import Config
from voxgate.gateway.supervisor import shares


@given(
    gateways=st.integers(1, 20), workers=st.integers(0, 40), connections=st.integers(1, 5000), cores=st.integers(1, 64)
)
def test_shares_add_up_to_the_whole_and_none_is_empty(gateways: int, workers: int, connections: int, cores: int):
    parts = shares(Config(gateways=gateways, workers=workers, max_connections=connections), cores)

    assert len(parts) == gateways
    assert all(part.gateways == 1 and part.workers >= 1 and part.max_connections >= 1 for part in parts)
    assert sum(part.workers for part in parts) == max(workers or cores, gateways)
    assert sum(part.max_connections for part in parts) == max(connections, gateways)
    assert max(part.workers for part in parts) - min(part.workers for part in parts) <= 1


async def test_two_gateways_share_one_port_and_speak():
    with running_server("--gateways", "2", "--workers", "2") as url:
        gateways = server_pids(url)
        assert len(gateways) == 2

        for number in range(12):
            async with talking(url) as talk:
                await talk.speak("c1", f"Number {number}.")

        assert all(children_of(pid) for pid in gateways)


async def test_a_gateway_that_dies_is_replaced():
    with running_server("--gateways", "2", "--workers", "2") as url:
        killed, other = server_pids(url)
        os.kill(killed, signal.SIGKILL)
        await eventually("two gateways again", lambda: len(server_pids(url)) == 2 and killed not in server_pids(url))

        assert other in server_pids(url)


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

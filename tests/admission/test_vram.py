"""The real pynvml over a library of NVML that a file drives, each in a process of its own: a library is loaded once."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fake_nvml import GIB, FakeNvml
from voxgate.admission.vram import STALE_S, Reading, pressure

WATCHER = """
import json, logging, sys
from voxgate.admission import vram
log = []
handler = logging.Handler()
handler.emit = lambda record: log.append(record.getMessage())
logging.basicConfig(handlers=[handler], level=logging.INFO)
vram.BACK_OFF_S = 0.02, 0.1
monitor = vram.Monitor(every_s=0.01)
monitor.start()
for line in sys.stdin:
    if line.strip() == "close":
        monitor.close()
    said = {r.device: [r.name, r.total_bytes, r.free_bytes] for r in monitor.readings.values()}
    print(json.dumps([monitor.polls, said, log]), flush=True)
"""


class Watcher:
    """A process that watches, asked for what it sees."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.log: list[str] = []

    def ask(self, word: str) -> tuple[int, dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(word, file=self._process.stdin, flush=True)
        polls, said, self.log = json.loads(self._process.stdout.readline())
        return polls, said

    def look(self) -> tuple[int, dict[str, Any]]:
        return self.ask("look")

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What is seen once it is like this."""
        deadline, said = time.monotonic() + 20, dict[str, Any]()
        while time.monotonic() < deadline:
            if condition(said := self.look()[1]):
                return said
        raise AssertionError(f"never seen; last {said}, logged {self.log}")


@contextmanager
def watching(env: dict[str, str]) -> Iterator[Watcher]:
    command = [sys.executable, "-c", WATCHER]
    with subprocess.Popen(
        command, env={**os.environ, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        watcher = Watcher(process)
        yield watcher
        polls, _ = watcher.ask("close")
        assert watcher.look()[0] == polls  # the thread has ended
        process.communicate(timeout=10)
        assert process.returncode == 0


@pytest.fixture
def nvml(tmp_path: Path) -> FakeNvml:
    return FakeNvml(tmp_path)


def free(uuid: str, gib: float) -> Callable[[dict[str, Any]], bool]:
    return lambda said: uuid in said and said[uuid][2] == gib * GIB


def unknown(said: dict[str, Any]) -> bool:
    return all(total is None and left is None for _, total, left in said.values())


def test_memory_is_followed_as_it_fills_and_drains(nvml: FakeNvml):
    nvml.set("GPU-a", used=4 * GIB, reserved=GIB)
    with watching(nvml.env) as watcher:
        assert watcher.until(free("GPU-a", 5)) == {"GPU-a": ["Fake 0", 10 * GIB, 5 * GIB]}
        nvml.set("GPU-a", used=9 * GIB, reserved=GIB)
        watcher.until(free("GPU-a", 0))
        nvml.set("GPU-a", used=0)
        watcher.until(free("GPU-a", 10))
    assert watcher.log == []


def test_devices_are_told_apart_by_their_uuid(nvml: FakeNvml):
    nvml.set("GPU-b", used=2 * GIB)
    nvml.set("GPU-a", used=7 * GIB)
    with watching({**nvml.env, "CUDA_VISIBLE_DEVICES": "1,0"}) as watcher:
        said = watcher.until(bool)
    assert {uuid: left for uuid, (_, _, left) in said.items()} == {"GPU-b": 8 * GIB, "GPU-a": 3 * GIB}


def test_an_old_driver_tells_in_its_own_way(nvml: FakeNvml):
    nvml.set("GPU-a", used=4 * GIB, reserved=GIB, old=True)
    with watching(nvml.env) as watcher:
        watcher.until(free("GPU-a", 5))


def test_a_split_device_is_its_instances(nvml: FakeNvml):
    nvml.set("MIG-a", used=4 * GIB)
    with watching(nvml.env) as watcher:
        assert list(watcher.until(free("MIG-a", 6))) == ["MIG-a"]


@pytest.mark.parametrize("error", [3, 4, 15, 16, 999])  # not supported, no permission, lost, reset required, unknown
def test_a_device_that_does_not_tell_is_unknown_said_once_and_known_again(nvml: FakeNvml, error: int):
    nvml.set("GPU-a", used=4 * GIB)
    with watching(nvml.env) as watcher:
        watcher.until(free("GPU-a", 6))
        nvml.set("GPU-a", used=4 * GIB, error=error)
        watcher.until(unknown)
        for _ in range(50):
            watcher.look()
        nvml.set("GPU-a", used=3 * GIB)
        watcher.until(free("GPU-a", 7))
    assert [line[:23] for line in watcher.log] == ["GPU memory is unknown: ", "GPU memory is known aga"]


def test_one_lost_device_does_not_hide_the_other(nvml: FakeNvml):
    nvml.set("GPU-a", used=GIB, error=15)
    nvml.set("GPU-b", used=GIB)
    with watching(nvml.env) as watcher:
        said = watcher.until(free("GPU-b", 9))
    assert said["GPU-a"][1:] == [None, None]


@pytest.mark.parametrize("error", [4, 9, 12])  # no permission, driver not loaded, library not found
def test_a_driver_that_does_not_start_is_looked_for_again(nvml: FakeNvml, error: int):
    nvml.init(error)
    nvml.set("GPU-a", used=GIB)
    with watching(nvml.env) as watcher:
        assert watcher.look()[1] == {}
        nvml.init(0)
        watcher.until(free("GPU-a", 9))


def test_without_a_driver_nothing_is_known_and_said_once():
    with watching({"LD_LIBRARY_PATH": "/nonexistent"}) as watcher:
        for _ in range(200):
            assert watcher.look()[1] == {}
    assert len(watcher.log) <= 1


def test_a_reading_says_how_full_the_device_is():
    reading = Reading("GPU-a", "", 10 * GIB, 2 * GIB, at=100.0)
    assert pressure(reading, 0, 100.1) == pytest.approx(0.8)
    assert pressure(reading, 3 * GIB, 100.1) == pytest.approx(0.5)  # our own pools hold it in reserve
    assert pressure(reading, 30 * GIB, 100.1) == 0.0


@pytest.mark.parametrize(
    "reading",
    [None, Reading("GPU-a", "", None, None, 100.0), Reading("GPU-a", "", 0, 0, 100.0), Reading("a", "", GIB, GIB, 0.0)],
)
def test_what_is_not_known_or_too_old_is_unknown(reading: Reading | None):
    assert STALE_S < 100
    assert pressure(reading, 0, 100.0) is None

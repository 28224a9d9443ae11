"""The real pynvml over a library of NVML that a file drives, each in a process of its own: a library is loaded once."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fake_nvml import GIB, FakeNvml
from voxgate.admission.vram import Reading, pressure

QUICK = {"every_s": 0.01, "first_pause_s": 0.01, "longest_pause_s": 0.02, "steady_s": 0.0}

DEVICE_PROBLEMS = {  # in reading memory
    1: "Uninitialized",
    2: "Invalid Argument",
    3: "Not Supported",
    4: "Insufficient Permissions",
    6: "Not Found",
    9: "Driver Not Loaded",
    10: "Timeout",
    15: "GPU is lost",
    16: "GPU requires restart",
    17: "The operating system has blocked the request.",
    18: "RM has detected an NVML/RM version mismatch.",
    777: "fake error 777",  # one that pynvml does not know
    999: "Unknown Error",
}
DRIVER_PROBLEMS = {  # at init
    4: "Insufficient Permissions",
    9: "Driver Not Loaded",
    12: "NVML Shared Library Not Found",
    15: "GPU is lost",
    18: "RM has detected an NVML/RM version mismatch.",
    999: "Unknown Error",
}

WATCHER = """
import json, logging, os, sys, threading, time
from voxgate.admission.vram import Monitor, MonitorSettings

log = []
handler = logging.Handler()
handler.emit = lambda record: log.append(record.getMessage())
logging.basicConfig(handlers=[handler], level=logging.INFO)
settings = json.loads(sys.argv[1])
if not settings.pop("package", True):
    sys.modules["pynvml"] = None
monitor = Monitor(MonitorSettings(**settings))
early = "pynvml" in sys.modules and sys.modules["pynvml"] is not None
monitor.start()


def nvml_is_let_go():
    pynvml = sys.modules.get("pynvml")
    try:
        pynvml and pynvml.nvmlLib and pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError_Uninitialized:
        return True
    return not pynvml or pynvml.nvmlLib is None


for line in sys.stdin:
    if line == "close\\n":
        monitor.close()
    readings = monitor.first_readings if line == "first\\n" else monitor.readings
    print(json.dumps({
        "log": log[:],  # first: what it says is in the readings by then
        "polls": monitor.polls,
        "devices": {uuid: [it.name, it.total_bytes, it.free_bytes] for uuid, it in readings().items()},
        "ages": {uuid: monitor.age_s(uuid, time.monotonic()) for uuid in [*monitor.readings(), "GPU-never-seen"]},
        "alive": any(thread.name == "vram" for thread in threading.enumerate()),
        "let_go": line == "close\\n" and nvml_is_let_go(),
        "imported_early": early,
        "resident_bytes": int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        "open_files": len(os.listdir("/proc/self/fd")),
    }), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a process that watches."""

    polls: int
    devices: dict[str, tuple[str, int | None, int | None]]
    ages: dict[str, float]
    log: list[str]
    alive: bool
    let_go: bool
    imported_early: bool
    resident_bytes: int
    open_files: int

    def free(self, device: str) -> int | None:
        return self.devices[device][2] if device in self.devices else None


class Watcher:
    """A process that watches, asked for what it sees."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def look(self) -> Seen:
        return self._ask("look")

    def first(self) -> Seen:
        """What it sees as soon as it can have seen anything."""
        return self._ask("first")

    def close(self) -> Seen:
        return self._ask("close")

    def until(self, condition: Callable[[Seen], bool]) -> Seen:
        """What is seen once it is like this."""
        deadline = time.monotonic() + 20
        while not condition(seen := self.look()):
            assert time.monotonic() < deadline, f"never seen; last {seen}"
        return seen

    def known(self, **free_gib: float) -> Seen:
        """Once these devices, and no others, have so much free."""
        wanted = {f"GPU-{name}": round(gib * GIB) for name, gib in free_gib.items()}
        return self.until(lambda seen: {device: seen.free(device) for device in seen.devices} == wanted)

    def unknown(self, device: str) -> Seen:
        return self.until(lambda seen: seen.free(device) is None)

    def logged(self, count: int) -> Seen:
        return self.until(lambda seen: len(seen.log) == count)

    def polled(self, count: int) -> Seen:
        """After so many polls more."""
        start = self.look().polls
        return self.until(lambda seen: seen.polls >= start + count)

    def _ask(self, word: str) -> Seen:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(word, file=self._process.stdin, flush=True)
        return Seen(**json.loads(self._process.stdout.readline()))


@contextmanager
def watching(env: dict[str, str], **settings: Any) -> Iterator[Watcher]:
    command = [sys.executable, "-c", WATCHER, json.dumps({**QUICK, **settings})]
    with subprocess.Popen(
        command, env={**os.environ, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Watcher(process)
        process.communicate(timeout=10)
        assert process.returncode == 0


@pytest.fixture
def nvml(tmp_path: Path) -> FakeNvml:
    return FakeNvml(tmp_path)


# --- what is read ----------------------------------------------------------------------------------------------------


def test_memory_is_followed_as_it_fills_and_drains(nvml: FakeNvml):
    nvml.set("GPU-a", free=5 * GIB, reserved=GIB)
    with watching(nvml.env) as watcher:
        assert watcher.known(a=5).devices == {"GPU-a": ["Fake GPU-a", 10 * GIB, 5 * GIB]}
        nvml.set("GPU-a", free=0, reserved=GIB)
        watcher.known(a=0)
        nvml.set("GPU-a", free=10 * GIB)
        assert watcher.known(a=10).log == []


def test_the_first_answer_is_waited_for(nvml: FakeNvml):
    nvml.set("GPU-a", free=4 * GIB)
    with watching(nvml.env) as watcher:
        assert watcher.first().free("GPU-a") == 4 * GIB


def test_a_driver_that_does_not_answer_is_not_waited_for_long(nvml: FakeNvml):
    nvml.set("GPU-a", free=4 * GIB, word="hang")
    with watching(nvml.env, stale_s=0.05) as watcher:
        assert watcher.first().devices == {}
        nvml.set("GPU-a", free=4 * GIB)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_devices_are_told_apart_by_their_uuid_whatever_their_order(nvml: FakeNvml, order: str):
    for name in order:
        nvml.set(f"GPU-{name}", free={"a": 3, "b": 8}[name] * GIB)
    with watching({**nvml.env, "CUDA_VISIBLE_DEVICES": "1,0"}) as watcher:
        assert list(watcher.known(a=3, b=8).devices) == [f"GPU-{name}" for name in order]


def test_a_driver_without_the_second_version_tells_in_the_first(tmp_path: Path):
    nvml = FakeNvml(tmp_path, driver="old")
    nvml.set("GPU-a", free=5 * GIB, reserved=GIB)
    with watching(nvml.env) as watcher:
        assert watcher.known(a=5).log == []


@pytest.mark.parametrize("word", ["mismatch", "v1"])
def test_a_device_that_refuses_the_second_version_tells_in_the_first(nvml: FakeNvml, word: str):
    nvml.set("GPU-a", free=5 * GIB, reserved=GIB, word=word)
    with watching(nvml.env) as watcher:
        assert watcher.known(a=5).log == []


def test_a_split_device_is_its_instances(nvml: FakeNvml):
    nvml.set("GPU-a", free=7 * GIB)
    nvml.set("MIG-a", free=6 * GIB)
    nvml.set("MIG-b", free=2 * GIB)
    with watching(nvml.env) as watcher:
        seen = watcher.until(lambda seen: bool(seen.devices))
    assert {device: seen.free(device) for device in seen.devices} == {
        "GPU-a": 7 * GIB,
        "MIG-a": 6 * GIB,
        "MIG-b": 2 * GIB,
    }
    assert seen.log == []


def test_a_device_that_is_split_anew_shows_its_new_instances(nvml: FakeNvml):
    nvml.set("GPU-a", free=9 * GIB)
    with watching(nvml.env) as watcher:
        watcher.known(a=9)
        nvml.set("MIG-a", free=4 * GIB)
        nvml.set("MIG-b", free=3 * GIB)
        nvml.remove("GPU-a")
        watcher.until(lambda seen: list(seen.devices) == ["MIG-a", "MIG-b"])
        nvml.remove("MIG-b")
        watcher.until(lambda seen: list(seen.devices) == ["MIG-a"])


# --- what is unknown -------------------------------------------------------------------------------------------------


def test_a_device_that_does_not_tell_is_unknown_said_once_and_known_again(nvml: FakeNvml):
    expected: list[str] = []
    with watching(nvml.env) as watcher:
        for error, problem in DEVICE_PROBLEMS.items():
            nvml.set("GPU-a", free=6 * GIB)
            watcher.known(a=6)
            watcher.logged(len(expected))
            nvml.set("GPU-a", free=6 * GIB, error=error)
            watcher.unknown("GPU-a")
            watcher.polled(3)
            expected += [f"GPU memory is unknown: GPU-a: {problem}", "GPU memory is known again"]
        assert watcher.look().log == expected[:-1]


def test_a_trouble_that_changes_is_said_again(nvml: FakeNvml):
    nvml.set("GPU-a", free=GIB, error=3)
    with watching(nvml.env) as watcher:
        watcher.logged(1)
        nvml.set("GPU-a", free=GIB, error=4)
        log = watcher.logged(2).log
    assert log == [
        "GPU memory is unknown: GPU-a: Not Supported",
        "GPU memory is unknown: GPU-a: Insufficient Permissions",
    ]


def test_unified_memory_is_unknown(nvml: FakeNvml):
    nvml.set("GPU-a", free=0, total=0)
    with watching(nvml.env) as watcher:
        seen = watcher.logged(1)
    assert seen.log == ["GPU memory is unknown: GPU-a: it has no memory of its own"]
    assert seen.devices == {"GPU-a": ["Fake GPU-a", None, None]}


@pytest.mark.parametrize("word", ["", "shut"])
def test_a_lost_device_is_opened_anew_while_the_other_goes_on(nvml: FakeNvml, word: str):
    nvml.set("GPU-a", free=GIB, error=15, word=word)
    nvml.set("GPU-b", free=9 * GIB)
    with watching(nvml.env) as watcher:
        first = watcher.until(lambda seen: seen.free("GPU-b") is not None)
        while (seen := watcher.look()).polls < first.polls + 30:
            assert seen.free("GPU-a") is None
            assert seen.free("GPU-b") == 9 * GIB
        nvml.set("GPU-a", free=2 * GIB)
        watcher.known(a=2, b=9)


def test_a_device_that_comes_and_goes_is_found_each_time_and_does_not_fill_the_log(nvml: FakeNvml):
    nvml.set("GPU-a", free=GIB)
    # Pauses that went on doubling would soon be minutes.
    with watching(nvml.env, longest_pause_s=600.0, steady_s=600.0) as watcher:
        for _ in range(16):
            watcher.known(a=1)
            nvml.set("GPU-a", free=GIB, error=15)
            watcher.unknown("GPU-a")
            nvml.set("GPU-a", free=GIB)
        log = watcher.known(a=1).log
    assert log == ["GPU memory is unknown: GPU-a: GPU is lost"]


def test_trouble_that_stays_is_looked_at_ever_more_seldom(nvml: FakeNvml):
    nvml.set("GPU-a", free=GIB, error=15)
    with watching(nvml.env, first_pause_s=0.001, longest_pause_s=600.0) as watcher:
        for _ in range(500):
            watcher.look()
        assert watcher.look().polls < 20  # the twentieth comes after 500 s


def test_a_driver_that_hangs_makes_its_readings_unknown_and_does_not_keep_the_server(nvml: FakeNvml):
    nvml.set("GPU-a", free=GIB)
    with watching(nvml.env, stale_s=0.3, close_s=0.1) as watcher:
        assert watcher.known(a=1).ages["GPU-never-seen"] == math.inf
        nvml.set("GPU-a", free=GIB, word="hang")
        hung = watcher.unknown("GPU-a")
        assert hung.ages["GPU-a"] > 0.3
        nvml.set("GPU-a", free=GIB)
        watcher.until(lambda seen: seen.polls > hung.polls + 1 and seen.free("GPU-a") == GIB)
        nvml.set("GPU-a", free=GIB, word="hang")
        watcher.unknown("GPU-a")
        assert watcher.close().alive


# --- no NVML ---------------------------------------------------------------------------------------------------------


def test_a_driver_that_does_not_start_is_said_once_and_looked_for_again(nvml: FakeNvml):
    nvml.init(9)
    nvml.set("GPU-a", free=9 * GIB)
    with watching(nvml.env) as watcher:
        assert watcher.logged(1).devices == {}
        nvml.init(0)
        log = watcher.until(lambda seen: len(seen.log) > 1 and seen.free("GPU-a") == 9 * GIB).log
    assert log == ["GPU memory is unknown: Driver Not Loaded", "GPU memory is known again"]


def test_a_driver_that_goes_and_comes_back_is_unknown_and_known_again(nvml: FakeNvml):
    expected: list[str] = []
    with watching(nvml.env) as watcher:
        for error, problem in DRIVER_PROBLEMS.items():
            nvml.set("GPU-a", free=9 * GIB)
            nvml.init(0)
            watcher.known(a=9)
            watcher.logged(len(expected))
            nvml.init(error)
            nvml.remove("GPU-a")
            expected += [
                "GPU memory is unknown: GPU-a: GPU is lost",
                f"GPU memory is unknown: {problem}",
                "GPU memory is known again",
            ]
            assert watcher.logged(len(expected) - 1).devices == {}
        assert watcher.look().log == expected[:-1]


def test_without_a_gpu_nothing_is_known_until_there_is_one(nvml: FakeNvml):
    with watching(nvml.env) as watcher:
        seen = watcher.logged(1)
        assert (seen.devices, seen.log) == ({}, ["GPU memory is unknown: the driver sees no GPU"])
        nvml.set("GPU-a", free=9 * GIB)
        watcher.known(a=9)


@pytest.mark.parametrize(
    ("package", "problem"), [(True, "NVML Shared Library Not Found"), (False, "the package nvidia-ml-py is missing")]
)
def test_without_library_or_package_nothing_is_known_and_said_once(package: bool, problem: str):
    with watching({"LD_LIBRARY_PATH": ""}, package=package, first_pause_s=0.001, longest_pause_s=0.001) as watcher:
        seen = watcher.logged(1)
        for _ in range(50):
            seen = watcher.look()
        assert not watcher.close().alive
    assert (seen.devices, seen.polls, seen.log) == ({}, 0, [f"GPU memory is unknown: {problem}"])


# --- its life --------------------------------------------------------------------------------------------------------


def test_pynvml_is_imported_at_the_start_and_nvml_is_let_go_at_the_end(nvml: FakeNvml):
    nvml.set("GPU-a", free=GIB)
    with watching(nvml.env) as watcher:
        seen = watcher.known(a=1)
        assert seen.alive
        assert not seen.imported_early
        closed = watcher.close()
        assert not closed.alive
        assert closed.let_go
        assert watcher.look().polls == closed.polls


@pytest.mark.parametrize("error", [0, 15])
def test_no_pause_delays_the_end(nvml: FakeNvml, error: int):
    nvml.set("GPU-a", free=GIB, error=error)
    with watching(nvml.env, every_s=600.0, first_pause_s=600.0) as watcher:
        watcher.until(lambda seen: seen.polls == 1)
        assert not watcher.close().alive


@pytest.mark.parametrize("error", [0, 15], ids=["polled", "opened anew each time"])
def test_thousands_of_polls_leave_nothing_behind(nvml: FakeNvml, error: int):
    nvml.set("GPU-a", free=GIB, error=error)
    nvml.set("MIG-a", free=GIB, error=error)
    with watching(nvml.env, every_s=0.0, first_pause_s=0.0001, longest_pause_s=0.0001) as watcher:
        before = watcher.polled(500)
        after = watcher.polled(2000)
        assert watcher.close().let_go
    assert after.resident_bytes - before.resident_bytes < 2**20
    assert after.open_files <= before.open_files + 1  # the file that drives it may just be open


# --- pressure --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("free_gib", "idle_gib", "expected"),
    [(2, 0, 0.8), (2, 3, 0.5), (0, 0, 1.0), (10, 0, 0.0), (2, 30, 0.0)],
    ids=["plain", "pools in reserve count as free", "full", "empty", "pools counted twice"],
)
def test_pressure_is_the_share_of_the_device_that_is_in_use(free_gib: int, idle_gib: int, expected: float):
    reading = Reading("GPU-a", "", 10 * GIB, free_gib * GIB, at=0.0)
    assert pressure(reading, idle_gib * GIB) == pytest.approx(expected)


@pytest.mark.parametrize(("total", "free"), [(None, None), (10 * GIB, None), (None, GIB), (0, 0)])
def test_pressure_of_what_is_not_known_is_unknown(total: int | None, free: int | None):
    assert pressure(Reading("GPU-a", "", total, free, at=0.0), GIB) is None


def test_pressure_of_a_device_that_is_not_seen_is_unknown():
    assert pressure(None, GIB) is None

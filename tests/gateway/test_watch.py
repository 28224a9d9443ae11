import logging
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from voxgate.admission.controller import Controller, Limits
from voxgate.admission.vram import Reading
from voxgate.gateway.house import House
from voxgate.gateway.metrics import Metrics
from voxgate.gateway.watch import Watch


def test_states_and_downgrades_are_logged_once_each_with_their_cause(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "voxgate.admission")
    controller = Controller(Limits())
    house = House(None, None, controller)  # pyright: ignore[reportArgumentType]
    watch = Watch(house, Metrics(house))
    controller.line("gpu", 0.0, max_slots=8)
    for tick in range(200):
        controller.memory("gpu", 0.95 if tick < 30 else 0.1, tick / 10)
        if tick > 60 and controller.lines["gpu"].breaker.would_refuse(tick / 10) is False:
            controller.lines["gpu"].breaker.ask(tick / 10)
            controller.lines["gpu"].breaker.probe_ended(True, tick / 10)
        watch.look(tick / 10)

    states = [record.message for record in caplog.records if "given up" not in record.message]
    given_up = [record.message for record in caplog.records if "given up" in record.message]
    assert [line.split(" (")[0] for line in states] == ["gpu: open", "gpu: half open", "gpu: normal"]
    assert "memory" in states[0]
    assert given_up[0] == "gpu: given up: batch of 4"
    assert given_up[-1] == "gpu: given up: nothing"


GIB = 2**30


@dataclass
class Gpu:
    """The monitor of one device, and the engine on it, in the hands of the test."""

    free_bytes: int | None = 5 * GIB
    idle_pool_bytes: int = 0
    idle_elsewhere: int = 0
    told: dict[str, int] = field(default_factory=dict[str, int])
    widths: list[int] = field(default_factory=list[int])

    def exchange(self, idle: dict[str, int]) -> dict[str, int]:
        self.told = idle
        return {"GPU-1": self.idle_elsewhere}

    def readings(self) -> dict[str, Reading]:
        return {"GPU-1": Reading("GPU-1", "a GPU", 10 * GIB, self.free_bytes, 0.0)}

    @property
    def engines(self) -> dict[str, "Gpu"]:
        return {"gpu": self, "cpu": self}

    def narrow(self, width: int) -> None:
        if width not in self.widths[-1:]:
            self.widths.append(width)


class Scene:
    def __init__(self) -> None:
        self.gpu = Gpu()
        self.controller = Controller(Limits())
        house = House(self.gpu, None, self.controller)  # pyright: ignore[reportArgumentType]
        self.house = house
        self.watch = self.watching("GPU-1")
        self.now = 0.0

    def watching(self, device: str) -> Watch:
        monitor = cast(Any, self.gpu)
        return Watch(self.house, Metrics(self.house), monitor, {"gpu": device})

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.watch.look(self.now)

    def state(self, engine: str) -> str:
        return self.controller.lines[engine].breaker.state.name


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.controller.line("gpu", 0.0, max_slots=8)
    scene.controller.line("cpu", 0.0)
    return scene


def test_a_full_device_narrows_and_shuts_its_own_engine_only(scene: Scene):
    scene.gpu.free_bytes = round(1.5 * GIB)
    scene.pass_time(4.0)
    assert (scene.state("gpu"), scene.gpu.widths) == ("DEGRADED", [8, 4, 2, 1])

    scene.gpu.free_bytes = GIB // 2
    scene.pass_time(0.5)
    assert (scene.state("gpu"), scene.state("cpu")) == ("OPEN", "NORMAL")
    assert scene.house.devices["GPU-1"].free_bytes == GIB // 2

    scene.gpu.free_bytes = 5 * GIB
    scene.pass_time(3.0)
    assert scene.state("gpu") == "HALF_OPEN"


def test_what_a_pool_has_to_spare_is_free_memory(scene: Scene):
    scene.gpu.free_bytes, scene.gpu.idle_pool_bytes = GIB // 2, 4 * GIB
    scene.pass_time(5.0)
    assert (scene.state("gpu"), scene.gpu.widths) == ("NORMAL", [8])
    assert scene.gpu.told == {"GPU-1": 4 * GIB}


def test_what_other_pools_on_the_same_device_have_to_spare_is_free_memory_too(scene: Scene):
    scene.gpu.free_bytes, scene.gpu.idle_elsewhere = GIB // 2, 2 * GIB
    scene.gpu.idle_pool_bytes = 1 * GIB
    scene.watch = Watch(scene.house, Metrics(scene.house), cast(Any, scene.gpu), {"gpu": "GPU-1", "cpu": "GPU-1"})
    scene.pass_time(5.0)
    assert (scene.state("gpu"), scene.gpu.told) == ("NORMAL", {"GPU-1": 2 * GIB})


@pytest.mark.parametrize("free_bytes", [None, 0])
def test_a_device_that_is_unknown_or_not_there_trips_nothing(scene: Scene, free_bytes: int | None):
    scene.gpu.free_bytes = free_bytes
    scene.watch = scene.watching("GPU-1" if free_bytes is None else "GPU-2")
    scene.pass_time(5.0)
    assert scene.state("gpu") == "NORMAL"


def test_an_engine_that_has_not_warmed_is_nobodys_line_yet():
    scene = Scene()
    scene.pass_time(1.0)
    assert scene.controller.lines == {}

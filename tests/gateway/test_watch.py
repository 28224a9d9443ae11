import logging

import pytest

from voxgate.admission.controller import Controller, Limits
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

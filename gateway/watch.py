"""What happens to admission by itself: its dwells end, its downgrades step, the memory of GPUs fills and empties, and
the operator reads of it in the log.

Decides nothing: passes on what is read of them and what the breakers made of it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping

from ..admission.breaker import State, Transition
from ..admission.line import Line
from ..admission.vram import pressure
from .gauge import Devices
from .house import House, clock
from .metrics import Metrics

logger = logging.getLogger("voxgate.admission")

EVERY_S = 0.1


class Watch:
    """Looks at the house's admission as long as the house is open."""

    def __init__(
        self, house: House, metrics: Metrics, memory: Devices | None = None, devices: Mapping[str, str] | None = None
    ) -> None:
        """`memory` where an engine has a device; `devices`: those of them, by engine."""
        self._house = house
        self._metrics = metrics
        self._memory = memory
        self._devices = devices or {}
        self._told: dict[str, Transition] = {}
        self._levels: dict[str, str] = {}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            due_at = clock() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self._metrics.lagged(clock() - due_at)
            self.look(clock())

    def look(self, now: float) -> None:
        """Lets time pass, and logs what came of it."""
        if self._memory is not None:
            self._measure(self._memory, now)
        self._house.controller.advance(now)
        for engine in self._watched:
            if (width := self._house.controller.lines[engine].downgrades.width) is not None:
                self._house.synthesizer.engines[engine].narrow(width)
        for line in self._house.controller.lines.values():
            self._log_state(line)
            self._log_downgrades(line)

    @property
    def _watched(self) -> list[str]:
        """Engines with a device, as soon as they have warmed."""
        return [engine for engine in self._devices if engine in self._house.controller.lines]

    def _measure(self, memory: Devices, now: float) -> None:
        """Tells each engine's breaker how full its device is, less what our pools there have to spare."""
        self._house.devices = memory.readings()
        idle: Counter[str] = Counter()
        for engine in self._watched:
            idle[self._devices[engine]] += self._house.synthesizer.engines[engine].idle_pool_bytes
        elsewhere = memory.exchange(dict(idle))
        for engine in self._watched:
            device = self._devices[engine]
            idle_bytes = idle[device] + elsewhere.get(device, 0)
            self._house.controller.memory(engine, pressure(self._house.devices.get(device), idle_bytes), now)

    def _log_state(self, line: Line) -> None:
        told = self._told.get(line.engine)
        fresh = [each for each in line.breaker.transitions if told is None or each.at > told.at]
        for transition in fresh:
            self._told[line.engine] = transition
            causes = ", ".join(sorted(cause.value for cause in transition.causes)) or "no cause left"
            level = logging.WARNING if transition.state is not State.NORMAL else logging.INFO
            logger.log(level, "%s: %s (%s)", line.engine, transition.state.name.lower().replace("_", " "), causes)

    def _log_downgrades(self, line: Line) -> None:
        shown = ", ".join(line.given_up) or "nothing"
        if shown != self._levels.get(line.engine, "nothing"):
            logger.warning("%s: given up: %s", line.engine, shown)
        self._levels[line.engine] = shown

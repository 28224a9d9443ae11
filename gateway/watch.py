"""What happens to admission by itself: its dwells end, its downgrades step, and the operator reads of it in the log.

Decides nothing.
"""

import asyncio
import logging

from ..admission.breaker import State, Transition
from ..admission.line import Line
from .house import House, clock
from .metrics import Metrics

logger = logging.getLogger("voxgate.admission")

EVERY_S = 0.1


class Watch:
    """Looks at the house's admission as long as the house is open."""

    def __init__(self, house: House, metrics: Metrics) -> None:
        self._house = house
        self._metrics = metrics
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
        self._house.controller.advance(now)
        for line in self._house.controller.lines.values():
            self._log_state(line)
            self._log_downgrades(line)

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

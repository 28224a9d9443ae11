"""How long a newcomer must wait for a slot of a stepwise engine.

Pure: counts and measured times. A batch serves everyone in it at speech rate or better (ramp.py says so at the start),
so what is short is not engine time, as with whole-segment engines (forecast.py), but slots.
"""

FIRST_HELD_S = 1.0  # until something has been measured
WEIGHT = 0.05  # of a new measurement in the running mean
RESTART_S = 2.0  # while there is no worker at all


class Occupancy:
    """How long a segment keeps its slot: a running mean of how long they did."""

    def __init__(self) -> None:
        self.held_s = FIRST_HELD_S

    def measure(self, held_s: float) -> None:
        self.held_s += WEIGHT * (held_s - self.held_s)

    def predicted_wait(self, *, before: int, busy: int, slots: int) -> float:
        """Seconds until there is a slot for one more. `before`: segments that need one before it; `busy`: slots in
        use, and segments that wait for one already."""
        if slots <= 0:
            return RESTART_S
        free = slots - busy
        return max(0, before - free + 1) * self.held_s / slots

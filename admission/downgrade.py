"""What is given up while an engine is degraded: in steps, taken back in steps, by cause.

Memory narrows the batch, half by half down to a single slot. Time saves work per listener (cheaper Opus, the real-time
voice instead of the quality one) and never narrows a batch, which would cost throughput. Cached speech goes first
always: it costs the engine nothing.
"""

from collections.abc import Set

from .breaker import Cause

STEP_S = 1.0  # between two steps, down or up
NARROWEST = 3  # memory steps: 1/2, 1/4, a single slot
TIME_STEPS = ("cheaper Opus", "real-time tier")


class _Ladder:
    """Steps taken one by one while a cause holds, and back one by one after it: the first at once, because causes have
    dwells of their own."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._holds = False
        self._stepped_at = 0.0
        self.level = 0

    def advance(self, holds: bool, now: float) -> None:
        if holds is not self._holds:
            self._holds = holds
            self._step(now)
        elif now - self._stepped_at >= STEP_S:
            self._step(now)

    def _step(self, now: float) -> None:
        self.level = min(self.level + 1, self._steps) if self._holds else max(self.level - 1, 0)
        self._stepped_at = now


class Downgrades:
    """Of one engine. `max_slots`: of a stepwise one, None for engines whose memory does not depend on a batch."""

    def __init__(self, max_slots: int | None) -> None:
        self._max_slots = max_slots
        self._memory = _Ladder(NARROWEST if max_slots is not None else 0)
        self._time = _Ladder(len(TIME_STEPS))

    def advance(self, causes: Set[Cause], now: float) -> None:
        """Takes a step or takes one back, where one is due."""
        self._memory.advance(Cause.MEMORY in causes, now)
        self._time.advance(Cause.TIME in causes, now)

    @property
    def memory_level(self) -> int:
        """Steps taken for want of memory."""
        return self._memory.level

    @property
    def time_level(self) -> int:
        """Steps taken for want of time, of `TIME_STEPS`."""
        return self._time.level

    @property
    def width(self) -> int | None:
        """Slots that new work may occupy; None where there are none to count."""
        if self._max_slots is None:
            return None
        return 1 if self._memory.level == NARROWEST else max(1, self._max_slots >> self._memory.level)

    @property
    def cheaper_opus(self) -> bool:
        """Contexts that begin now are encoded with less care."""
        return self._time.level >= 1

    @property
    def realtime_only(self) -> bool:
        """Voices of the quality tier give way to the real-time ones."""
        return self._time.level >= 2

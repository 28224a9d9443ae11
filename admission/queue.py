"""Those that wait for one engine: how many and for how long.

Pure. CoDel's rule as it is used for request queues (M. Maurer, "Fail at Scale", ACM Queue 13/8): while newcomers have
to be refused, or the queue has not been empty for an interval, each is allowed a tenth of its wait only. The newest are
refused at once instead of late, and those who wait already are served in time. Knows neither permits nor engines.
"""

import heapq
import math
from dataclasses import dataclass

DEADLINES_KEPT = 64  # of those that left, before the heap is built anew


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Bounds. A wrong one raises `ValueError` by name."""

    waiting: int = 256  # newcomers
    interval_s: float = 0.1  # a queue that stood so long is a standing queue
    calm_s: float = 0.5  # without a refusal, until newcomers may wait again as long as they like
    usual_wait_s: float = 0.2  # of those who do not say how long they would wait
    standing_share: float = 0.1  # of its wait that a newcomer is allowed before that

    def __post_init__(self) -> None:
        if self.waiting < 0:
            raise ValueError(f"waiting must be 0 or more, not {self.waiting}")
        if not 0 < self.interval_s < math.inf or not 0 < self.calm_s < math.inf:
            raise ValueError(
                f"interval_s and calm_s must be over 0 and finite, not {self.interval_s:g} and {self.calm_s:g}"
            )
        if not 0 <= self.usual_wait_s < math.inf:
            raise ValueError(f"usual_wait_s must be 0 or more and finite, not {self.usual_wait_s:g}")
        if not 0 < self.standing_share <= 1:
            raise ValueError(f"standing_share must be over 0 and at most 1, not {self.standing_share:g}")


@dataclass(frozen=True, slots=True)
class _Waiting:
    ticket: int
    order: int
    deadline: float


class WaitingRoom:
    """Whoever joins leaves once: taken, expired or on their own."""

    def __init__(self, settings: QueueSettings) -> None:
        self.settings = settings
        self._waiting: dict[int, _Waiting] = {}  # in the order of joining
        self._deadlines: list[tuple[float, int, int]] = []  # (deadline, order, ticket); those that left are skipped
        self._joined = 0
        self._standing_since: float | None = None  # not empty since
        self._refused_at = -math.inf

    def __len__(self) -> int:
        return len(self._waiting)

    def allowed_wait(self, max_wait_s: float, now: float, *, patient: bool = False) -> float:
        """How long a newcomer may wait that would wait `max_wait_s`; a patient one all of it, whoever else comes."""
        stood = self._standing_since is not None and now - self._standing_since >= self.settings.interval_s
        calm = now - self._refused_at >= self.settings.calm_s
        return max_wait_s if patient or (calm and not stood) else max_wait_s * self.settings.standing_share

    def verdict(self, predicted_wait_s: float, max_wait_s: float, now: float, *, patient: bool = False) -> str | None:
        """Why one may not join: "queue" when it is full, "wait" when it would not start in time; else None."""
        reason = None
        if len(self._waiting) >= self.settings.waiting:
            reason = "queue"
        elif predicted_wait_s > self.allowed_wait(max_wait_s, now, patient=patient):
            reason = "wait"
        # One who would hardly wait in any case says nothing of the house.
        if reason == "queue" or (reason == "wait" and max_wait_s >= self.settings.usual_wait_s):
            self._refused_at = now
        return reason

    def join(self, ticket: int, deadline: float, now: float) -> None:
        """One more waits, until `deadline` at the latest."""
        if self._standing_since is None:
            self._standing_since = now
        self._joined += 1
        self._waiting[ticket] = _Waiting(ticket, self._joined, deadline)
        heapq.heappush(self._deadlines, (deadline, self._joined, ticket))

    def leave(self, ticket: int) -> None:
        """Does not wait any more; ignored if it never did."""
        self._waiting.pop(ticket, None)
        if not self._waiting:
            self._standing_since = None
        # Deadlines may be a minute away: who joins and leaves all the time must not leave them behind without bound.
        if len(self._deadlines) > 2 * len(self._waiting) + DEADLINES_KEPT:
            self._deadlines = [(each.deadline, each.order, each.ticket) for each in self._waiting.values()]
            heapq.heapify(self._deadlines)

    def expire(self, now: float) -> int | None:
        """One whose deadline has passed, and waits no more; None when there is none."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, order, ticket = heapq.heappop(self._deadlines)
            if self._waits(ticket, order):
                self.leave(ticket)
                self._refused_at = now
                return ticket
        return None

    def _waits(self, ticket: int, order: int) -> bool:
        """Whether it is still the one that joined then: a ticket may join again once it has left."""
        return ticket in self._waiting and self._waiting[ticket].order == order

"""What stands between newcomers and one engine: its breaker, its limit, those that wait for it, its downgrades.

Owns the counts of who uses the engine now. Decides nothing: the controller asks these in their order.
"""

from collections import Counter, deque

from .answer import Ask, Outcome, Permit
from .breaker import Breaker, BreakerSettings
from .downgrade import TIME_STEPS, Downgrades
from .limit import AdaptiveLimit, LimitSettings
from .queue import QueueSettings, WaitingRoom

RELEASES = 32  # the rate at which utterances end is taken from so many


class Line:
    """One engine's. `max_slots` is what the batch of a stepwise engine is narrowed from, None for the others."""

    def __init__(
        self,
        engine: str,
        *,
        breaker: BreakerSettings,
        limit: LimitSettings,
        queue: QueueSettings,
        max_slots: int | None,
        now: float,
    ) -> None:
        self.engine = engine
        self.breaker = Breaker(breaker, now)
        self.limit = AdaptiveLimit(limit)
        self.room = WaitingRoom(queue)
        self.downgrades = Downgrades(max_slots)
        self.asks: dict[int, Ask] = {}  # of those that wait, by ticket
        self.by_account: Counter[str] = Counter()
        self.active = 0
        self.outcomes = dict.fromkeys(Outcome, 0)
        self._released_at: deque[float] = deque(maxlen=RELEASES)

    def enter(self, ask: Ask) -> None:
        self.active += 1
        self.by_account[ask.account] += 1

    def leave(self, permit: Permit, outcome: Outcome, now: float) -> None:
        """An utterance has ended; a probe that was not heard of before is resolved by how."""
        assert permit.ask is not None
        self.active -= 1
        self.by_account[permit.ask.account] -= 1
        if not self.by_account[permit.ask.account]:
            del self.by_account[permit.ask.account]
        self.outcomes[outcome] += 1
        self._released_at.append(now)
        if permit.probe:
            succeeded = {Outcome.SERVED: True, Outcome.DROPPED: False, Outcome.CANCELLED: None}[outcome]
            self.breaker.probe_ended(succeeded, now)

    @property
    def given_up(self) -> list[str]:
        """The downgrades in force, in words."""
        steps = [*TIME_STEPS[: self.downgrades.time_level]]
        return [*steps, f"batch of {self.downgrades.width}"] if self.downgrades.memory_level else steps

    def told(self, now: float) -> dict[str, object]:
        """How it stands, for people and programs that ask."""
        return {
            "state": self.breaker.state.name.lower(),
            "causes": sorted(cause.value for cause in self.breaker.causes),
            "for_s": round(now - self.breaker.since, 1),
            "given_up": self.given_up,
            "active": self.active,
            "limit": int(self.limit.current),
            "waiting": len(self.asks),
        }

    def seconds_per_release(self, now: float) -> float:
        """How long it takes, as of late, until one of those being spoken ends."""
        if len(self._released_at) < 2:
            return 1.0
        return max(0.001, (now - self._released_at[0]) / len(self._released_at))

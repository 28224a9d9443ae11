"""What stands between newcomers and one engine: its breaker, its limit, those that wait for it, its downgrades.

Owns the counts of who uses the engine now. Decides nothing: the controller asks these in their order.
"""

import math
from collections import Counter, deque

from .answer import Ask, Outcome, Permit
from .breaker import Breaker, BreakerSettings
from .downgrade import TIME_STEPS, Downgrades
from .limit import AdaptiveLimit, LimitSettings
from .queue import QueueSettings, WaitingRoom

ENDINGS = 32  # how long an utterance takes is taken from so many


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
        self.max_slots = max_slots
        self.breaker = Breaker(breaker, now)
        self.limit = AdaptiveLimit(limit)
        self.room = WaitingRoom(queue)
        self.downgrades = Downgrades(max_slots)
        self.asks: dict[int, Ask] = {}  # of those that wait, by ticket
        self.waiting_by_account: Counter[str] = Counter()
        self.by_account: Counter[str] = Counter()
        self.active = 0
        self.outcomes = dict.fromkeys(Outcome, 0)
        self._spoken_s, self._counted_at = 0.0, now  # seconds of being spoken, of all utterances together
        self._spoken_at_endings: deque[float] = deque(maxlen=ENDINGS)

    def enter(self, ask: Ask, now: float) -> None:
        self._count(now)
        self.active += 1
        self.by_account[ask.account] += 1

    def leave(self, permit: Permit, outcome: Outcome, now: float) -> None:
        """An utterance has ended; a probe that was not heard of before is resolved by how."""
        assert permit.ask is not None
        self._count(now)
        self.active -= 1
        _less(self.by_account, permit.ask.account)
        self.outcomes[outcome] += 1
        self._spoken_at_endings.append(self._spoken_s)
        self.resolve(permit, {Outcome.SERVED: True, Outcome.DROPPED: False, Outcome.CANCELLED: None}[outcome], now)

    def resolve(self, permit: Permit, succeeded: bool | None, now: float) -> None:
        """How it went, if this one was a probe. Speech out of a cache says nothing of the engine: another may try."""
        if permit.probe:
            assert permit.ask is not None
            permit.probe = False
            heard = None if succeeded and permit.ask.cached else succeeded
            self.breaker.probe_ended(heard, now, begun_at=permit.given_at)

    def wait(self, ask: Ask, for_s: float, now: float) -> None:
        """One more waits, so long at most."""
        self.room.join(ask.ticket, now + for_s, now)
        self.asks[ask.ticket] = ask
        self.waiting_by_account[ask.account] += 1

    def withdraw(self, ticket: int) -> None:
        """Does not wait any more; ignored if it never did."""
        if (ask := self.asks.pop(ticket, None)) is not None:
            self.room.leave(ticket)
            _less(self.waiting_by_account, ask.account)

    def rank(self, ask: Ask) -> tuple[bool, int, int]:
        """The lower goes first: who is in mid-conversation, then by priority, then by how few the account has."""
        return ask.newcomer, -ask.priority, self.by_account[ask.account]

    def ranked(self) -> list[Ask]:
        """Those that wait, in the order they go; equals in the order they came."""
        return sorted(self.asks.values(), key=self.rank)

    def is_over_fair_share(self, account: str) -> bool:
        """Whether the account uses its equal share of the limit, among all that this engine speaks for."""
        sharing = len(self.by_account) + (account not in self.by_account)
        return sharing > 1 and self.by_account[account] >= math.floor(self.limit.current) / sharing

    def share_of(self, account: str) -> float:
        """What the account has of all that is spoken or waits, in equal shares: 1 is one; 1 too where nobody shares."""
        accounts = self.by_account.keys() | self.waiting_by_account.keys() | {account}
        if len(accounts) == 1:
            return 1.0
        its = self.by_account[account] + self.waiting_by_account[account]
        return its * len(accounts) / (self.active + len(self.asks)) if its else 0.0

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
        """How long it takes until one of those being spoken ends: what an utterance took as of late, divided by how
        many there are. Taken from the time between endings, an idle hour would count as an hour of waiting."""
        if len(self._spoken_at_endings) < 2:
            return 1.0
        self._count(now)
        seconds_each = (self._spoken_s - self._spoken_at_endings[0]) / len(self._spoken_at_endings)
        return max(0.001, seconds_each / max(1, self.active))

    def _count(self, now: float) -> None:
        self._spoken_s += self.active * (now - self._counted_at)
        self._counted_at = now


def _less(counts: Counter[str], account: str) -> None:
    counts[account] -= 1
    if not counts[account]:
        del counts[account]

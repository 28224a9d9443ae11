"""What is asked of admission and what it answers: the words that gateway and controller share.

Owns no rule: who gets which answer is the controller's to decide.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """Why something was refused; the label of the refusals counter."""

    CONNECTIONS = "connections"
    QUOTA = "quota"  # what the account may use
    UTTERANCES = "utterances"
    SEGMENTS = "segments"
    WAIT = "wait"  # it would not have begun within the wait it allowed
    QUEUE = "queue"  # too many wait already
    BREAKER = "breaker"
    DRAINING = "draining"


class Outcome(Enum):
    """How a permit ended: what it covered was sent, was ended by its client, or was lost to a fault of ours."""

    SERVED = "served"
    CANCELLED = "cancelled"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Ask:
    """One utterance that wants to be spoken."""

    ticket: int  # under which a waiting one is answered; unique among those that wait
    engine: str
    account: str = ""  # whose key it came with; "" where there are none
    priority: int = 0  # the higher goes first among those that wait
    newcomer: bool = True  # False: a later utterance of a context that has been admitted
    characters: int = 0  # of its first segment
    max_wait_s: float = 0.2
    cached: bool = False  # its first segment needs no engine


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not yet: the answer comes under the ticket, or the ticket is withdrawn."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """No, and when to ask again."""

    reason: Reason
    message: str
    retry_after: float  # seconds


class Permit:
    """Leave to use one unit of something bounded; given back exactly once."""

    __slots__ = ("_on_release", "ask", "crowding", "dry_at", "given_at", "probe")

    def __init__(
        self,
        on_release: Callable[["Permit", Outcome, float], None],
        ask: Ask | None = None,
        *,
        given_at: float = 0.0,
        probe: bool = False,
        crowding: bool = False,
    ) -> None:
        self._on_release: Callable[[Permit, Outcome, float], None] | None = on_release
        self.ask = ask
        self.given_at = given_at
        self.dry_at = -math.inf  # when its listener ran dry, and it counted
        self.crowding = crowding  # its account has far more than its share: others' first segments go before its own
        self.probe = probe  # the one by which a breaker that was open finds out whether it may close

    def release(self, outcome: Outcome, now: float) -> None:
        """Gives the unit back. A second release is a fault of the caller and raises `RuntimeError`."""
        on_release, self._on_release = self._on_release, None
        if on_release is None:
            raise RuntimeError("a permit was released twice")
        on_release(self, outcome, now)

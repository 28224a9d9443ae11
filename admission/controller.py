"""The answer to "may this start?": Permit or Refusal, decided at once from bounded counts.

Pure: no sockets, no engines, no clock (`now` comes in). Who asks: a connection before its upgrade, a context when it
opens, an utterance before its first segment is handed to synthesis.
"""

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """Why work was refused; the label of the refusals counter."""

    CONNECTIONS = "connections"
    UTTERANCES = "utterances"
    SEGMENTS = "segments"
    DRAINING = "draining"


class Outcome(Enum):
    """How a permit ended: what it covered was sent, was ended by its client, or was lost to a fault of ours."""

    SERVED = "served"
    CANCELLED = "cancelled"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Refusal:
    """No, and when to ask again."""

    reason: Reason
    message: str
    retry_after: float  # seconds


class Permit:
    """Leave to use one unit of a bounded resource; given back exactly once, by `release`."""

    __slots__ = ("_pool",)

    def __init__(self, pool: "_Pool") -> None:
        self._pool: _Pool | None = pool
        pool.used += 1

    def release(self, outcome: Outcome) -> None:
        """Gives the unit back. A second release is a fault of the caller and raises `RuntimeError`."""
        pool, self._pool = self._pool, None
        if pool is None:
            raise RuntimeError("a permit was released twice")
        pool.used -= 1
        pool.outcomes[outcome] += 1


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the whole process."""

    connections: int = 4096
    utterances: int = 400  # spoken at once; what two cores carry with the bundled voice, with room
    segments: int = 4000  # waiting for an engine, all utterances together


class Controller:
    """Counts what runs and compares it with the limits. `draining` refuses everything new."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.draining = False
        self._connections = _Pool()
        self._utterances = _Pool()
        self.refusals = dict.fromkeys(Reason, 0)

    @property
    def connections(self) -> int:
        """Connections open now."""
        return self._connections.used

    @property
    def utterances(self) -> int:
        """Utterances being spoken now."""
        return self._utterances.used

    def connect(self) -> Permit | Refusal:
        """A place for one more connection."""
        if self.draining:
            return self._refuse(Reason.DRAINING, "the server is shutting down", 5.0)
        if self._connections.used >= self.limits.connections:
            return self._refuse(Reason.CONNECTIONS, "the server has as many connections as it may", 2.0)
        return Permit(self._connections)

    def admit(self, *, backlog: int, newcomer: bool) -> Permit | Refusal:
        """Leave to speak one utterance. `backlog`: segments that wait for an engine now, all utterances together.

        A later utterance of a context already admitted (`newcomer` False) may use a tenth more than the limit: a
        listener in mid-conversation is served before one who has not heard anything yet.
        """
        if self.draining and newcomer:
            return self._refuse(Reason.DRAINING, "the server is shutting down", 5.0)
        room = self.limits.utterances if newcomer else self.limits.utterances + self.limits.utterances // 10 + 1
        if self._utterances.used >= room:
            return self._refuse(Reason.UTTERANCES, "as many utterances are being spoken as may be", 1.0)
        if backlog >= self.limits.segments:
            return self._refuse(Reason.SEGMENTS, "too many segments wait for an engine", 1.0)
        return Permit(self._utterances)

    def _refuse(self, reason: Reason, message: str, retry_after: float) -> Refusal:
        self.refusals[reason] += 1
        return Refusal(reason, message, retry_after)


class _Pool:
    __slots__ = ("outcomes", "used")

    def __init__(self) -> None:
        self.used = 0
        self.outcomes = dict.fromkeys(Outcome, 0)

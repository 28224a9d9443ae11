"""The circuit breaker of one engine: normal, degraded, open, half open; and why.

Pure: every call passes `now`, monotonic seconds. Owns thresholds and dwells. Knows neither what is refused nor which
downgrades follow.

    normal     everything
    degraded   memory over `degrade` for its dwell, or time: waits over target or underruns, for theirs
    open       memory over `open`, or too many engine failures: nothing new
    half open  after the open dwell: exactly one probe, which always resolves (heard, failed, hung up, or overdue)

Unknown memory (None) never trips anything, and what memory alone had tripped is taken back after the recovery dwell:
a monitor that went blind must not keep an engine shut.
"""

import math
from collections import deque
from dataclasses import dataclass
from enum import Enum

MOST_SAMPLES = 512  # first-audio waits that are looked at; more in one window say no more


class State(Enum):
    """In the order of severity; the value is what the metric shows."""

    NORMAL = 0
    DEGRADED = 1
    HALF_OPEN = 2
    OPEN = 3


class Cause(Enum):
    MEMORY = "memory"
    TIME = "time"
    FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """Thresholds; memory in shares of the device, the rest in seconds. A wrong one raises `ValueError` by name."""

    degrade: float = 0.80
    recover: float = 0.75
    open: float = 0.90
    degrade_dwell_s: float = 1.0
    recover_dwell_s: float = 2.0
    open_dwell_s: float = 0.2
    probe_after_s: float = 2.0  # doubled by each probe that fails …
    probe_after_most_s: float = 60.0  # … up to this
    probe_deadline_s: float = 10.0
    failures: int = 5  # of the engine, in …
    failures_within_s: float = 10.0
    target_s: float = 0.15  # p95 of first-audio waits
    window_s: float = 2.0  # of those waits
    time_recover: float = 0.7  # of the target

    def __post_init__(self) -> None:
        if not 0 < self.recover < self.degrade < self.open <= 1:
            raise ValueError(
                f"memory thresholds must be 0 < recover < degrade < open <= 1, not recover {self.recover:g}, "
                f"degrade {self.degrade:g}, open {self.open:g}"
            )
        for name in [
            "degrade_dwell_s",
            "recover_dwell_s",
            "open_dwell_s",
            "probe_after_s",
            "probe_deadline_s",
            "failures_within_s",
            "target_s",
            "window_s",
        ]:
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be over 0 and finite, not {getattr(self, name):g}")
        if self.failures < 1:
            raise ValueError(f"failures must be at least 1, not {self.failures}")
        if not self.probe_after_s <= self.probe_after_most_s < math.inf:
            raise ValueError(f"probe_after_most_s must be at least probe_after_s, {self.probe_after_s:g}, and finite")
        if not 0 < self.time_recover < 1:
            raise ValueError(f"time_recover must be between 0 and 1, not {self.time_recover:g}")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Go on."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Go on: this one finds out whether the engine works; `probe_ended` must be told."""


@dataclass(frozen=True, slots=True)
class Refused:
    retry_after_s: float
    cause: Cause


@dataclass(frozen=True, slots=True)
class Transition:
    """For the log and the metrics."""

    at: float
    state: State
    causes: frozenset[Cause]


class _Dwell:
    """A condition that counts once it has held for so long."""

    __slots__ = ("_since", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._since: float | None = None

    def held(self, holds: bool, now: float) -> bool:
        if not holds:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        return now - self._since >= self.seconds


class Breaker:
    """One per engine. Observations may come in any order; `advance` lets dwells end without one."""

    def __init__(self, settings: BreakerSettings, now: float) -> None:
        self.settings = settings
        self.state = State.NORMAL
        self.since = now
        self.causes: frozenset[Cause] = frozenset()
        self.transitions: deque[Transition] = deque(maxlen=64)
        self._pressure: float | None = None
        self._predicted = 0.0
        self._predicted_at = -math.inf
        self._waits: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)
        self._failed_at: deque[float] = deque(maxlen=settings.failures)
        self._open_cause = Cause.FAILURES
        self._open_for = settings.probe_after_s
        self._probe_since: float | None = None
        self._degrade, self._ease = _Dwell(settings.degrade_dwell_s), _Dwell(settings.recover_dwell_s)
        self._trip = _Dwell(settings.open_dwell_s)
        self._slow, self._quick = _Dwell(settings.degrade_dwell_s), _Dwell(settings.recover_dwell_s)

    # --- what is observed ------------------------------------------------------------------------------------------

    def memory(self, pressure: float | None, now: float) -> None:
        """The share of the engine's device that is in use, None when unknown. Never told for engines on a CPU."""
        self._pressure = pressure
        self.advance(now)

    def first_audio(self, wait_s: float, now: float) -> None:
        """Of an utterance that was served; those that were cancelled say nothing."""
        self._waits.append((now, wait_s))
        self.advance(now)

    def predicted(self, wait_s: float, now: float) -> None:
        """How long a newcomer would wait now."""
        self._predicted, self._predicted_at = wait_s, now
        self.advance(now)

    def underrun(self, now: float) -> None:
        """A listener ran dry; the caller counts one listener once."""
        self._waits.append((now, math.inf))
        self.advance(now)

    def failure(self, now: float) -> None:
        """The engine broke: a worker died, a call failed for no fault of the text."""
        self._failed_at.append(now)
        if self.state is State.HALF_OPEN:
            self.probe_ended(False, now)
        elif (
            len(self._failed_at) == self.settings.failures
            and now - self._failed_at[0] <= self.settings.failures_within_s
            and self.state is not State.OPEN
        ):
            self._open(Cause.FAILURES, now)

    # --- what is asked ---------------------------------------------------------------------------------------------

    def ask(self, now: float) -> Allowed | Probe | Refused:
        """Whether one more utterance may begin; may spend the probe."""
        self.advance(now)
        if self.state is State.HALF_OPEN and self._probe_since is None:
            self._probe_since = now
            return Probe()
        if self.state in (State.OPEN, State.HALF_OPEN):
            return Refused(self.retry_after(now), self._open_cause)
        return Allowed()

    def would_refuse(self, now: float) -> bool:
        """The same question without spending the probe."""
        self.advance(now)
        return self.state is State.OPEN or (self.state is State.HALF_OPEN and self._probe_since is not None)

    def retry_after(self, now: float) -> float:
        """Seconds after which asking again makes sense."""
        if self.state is State.OPEN:
            # Memory that is still full keeps it open beyond its dwell: the end of the dwell is then no hint.
            shortest = self.settings.probe_after_s if self._memory_full else 0.1
            return max(shortest, self.since + self._open_for - now)
        return self.settings.probe_after_s if self.state is State.HALF_OPEN else 0.1

    def probe_ended(self, succeeded: bool | None, now: float, *, begun_at: float | None = None) -> None:
        """How the probe went; None: its client hung up before anything was known, so another one may try.

        `begun_at`, when it was asked for, tells it from the one that runs now: one that was overdue may end later.
        """
        if self.state is not State.HALF_OPEN or (begun_at is not None and begun_at != self._probe_since):
            return
        self._probe_since = None
        if succeeded:
            self._open_for = self.settings.probe_after_s
            self._failed_at.clear()
            causes = self.causes - {Cause.FAILURES, self._open_cause}
            if self._pressure is not None and self._pressure >= self.settings.recover:
                causes |= self.causes & {Cause.MEMORY}  # not full any more is not yet recovered
            self._become(State.DEGRADED if causes else State.NORMAL, causes, now)
            self.advance(now)
        elif succeeded is False:
            self._open_for = min(2 * self._open_for, self.settings.probe_after_most_s)
            self._become(State.OPEN, self.causes | {self._open_cause}, now)

    def advance(self, now: float) -> None:
        """Lets time pass."""
        tripped = self._trip.held(self._memory_full, now)
        causes = self._degrading(now)
        match self.state:
            case State.OPEN:
                if now - self.since >= self._open_for and not self._memory_full:
                    self._become(State.HALF_OPEN, self.causes, now)
            case State.HALF_OPEN:
                if tripped:
                    self._open(Cause.MEMORY, now)
                elif self._probe_since is not None and now - self._probe_since >= self.settings.probe_deadline_s:
                    self.probe_ended(False, now)
            case _:
                if tripped:
                    self._open(Cause.MEMORY, now)
                else:
                    self._become(State.DEGRADED if causes else State.NORMAL, causes, now)

    # --- its parts -------------------------------------------------------------------------------------------------

    @property
    def _memory_full(self) -> bool:
        return self._pressure is not None and self._pressure > self.settings.open

    def _degrading(self, now: float) -> frozenset[Cause]:
        settings, pressure = self.settings, self._pressure
        causes = set(self.causes & {Cause.MEMORY, Cause.TIME})
        if self._degrade.held(pressure is not None and pressure > settings.degrade, now):
            causes.add(Cause.MEMORY)
        if self._ease.held(pressure is None or pressure < settings.recover, now):
            causes.discard(Cause.MEMORY)
        slowness = self._slowness(now)
        if self._slow.held(slowness > 1, now):
            causes.add(Cause.TIME)
        if self._quick.held(slowness < settings.time_recover, now):
            causes.discard(Cause.TIME)
        return frozenset(causes)

    def _slowness(self, now: float) -> float:
        """The worst of what is known of waiting, in targets. An underrun is a wait over any target. Of the waits the
        longest twentieth is left out, and always one: a single one, slow on its own, says nothing of the house."""
        begin = now - self.settings.window_s
        while self._waits and self._waits[0][0] <= begin:
            self._waits.popleft()
        waits = sorted(wait for _, wait in self._waits)
        left = len(waits) - max(1, len(waits) // 20)
        p95 = waits[left - 1] if left > 0 else 0.0
        predicted = self._predicted if self._predicted_at > begin else 0.0
        return max(p95, predicted) / self.settings.target_s

    def _open(self, cause: Cause, now: float) -> None:
        self._open_cause = cause
        self._probe_since = None
        self._become(State.OPEN, self.causes | {cause}, now)

    def _become(self, state: State, causes: frozenset[Cause], now: float) -> None:
        if (state, causes) == (self.state, self.causes):
            return
        if state is not self.state:
            self.since = now
        self.state, self.causes = state, causes
        self.transitions.append(Transition(now, state, causes))

"""What a run adds up to, in memory that does not grow with it. Pure; the statistics of several processes merge.

Figures are of the plateau: of utterances that began and audio that came after the ramp and before the end. Connections
and the client's own state are those of the whole run; the timeline has everything, in some 600 slices.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

from .histogram import Histogram
from .listening import Outcome, Result
from .plan import Load

_SLICES = 600
_REASONS = 50  # told apart; what a broken server makes up beyond that is "other"
TAIL_SECONDS = 60.0  # of the timeline, behind the end: utterances are heard out


@dataclass(slots=True)
class Slice:
    """A stretch of the timeline."""

    began: int = 0
    done: int = 0
    refused: int = 0
    failed: int = 0
    underrun_seconds: float = 0.0
    audio_seconds: float = 0.0
    turned: int = 0  # listeners that came, less those that went
    ttfa: Histogram = field(default_factory=Histogram)


@dataclass(slots=True)
class Reasons:
    """Why something was refused, how often, and how long the answer took."""

    latency: dict[str, Histogram] = field(default_factory=dict)

    def add(self, reason: str, seconds: float) -> None:
        known = reason in self.latency or len(self.latency) < _REASONS
        self.latency.setdefault(reason if known else "other", Histogram()).add(seconds)

    def merge(self, other: "Reasons") -> None:
        for reason, latency in other.latency.items():
            self.latency.setdefault(reason, Histogram()).merge(latency)

    @property
    def count(self) -> int:
        return sum(latency.count for latency in self.latency.values())


@dataclass(slots=True)
class Client:
    """The load generator's own faults, all through the run."""

    loop_lag: Histogram = field(default_factory=Histogram)
    pacing: Histogram = field(default_factory=Histogram)  # how much later than planned something was sent
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0  # of each process, added up
    not_begun: int = 0  # arrivals beyond what a process holds

    def merge(self, other: "Client") -> None:
        self.loop_lag.merge(other.loop_lag)
        self.pacing.merge(other.pacing)
        self.cpu_seconds += other.cpu_seconds
        self.wall_seconds += other.wall_seconds
        self.not_begun += other.not_begun


class Statistics:
    def __init__(self, load: Load, began_at: float) -> None:
        """`began_at`: the monotonic instant that the plan counts from, the same for all parts."""
        self.load = load
        self.began_at = began_at
        self.slice_seconds = max(1.0, math.ceil(load.until / _SLICES))
        self.slices = [Slice() for _ in range(math.ceil((load.until + TAIL_SECONDS) / self.slice_seconds))]
        self.outcomes: Counter[str] = Counter()
        self.refusals = Reasons()
        self.failures = Reasons()
        self.connects = Histogram()
        self.connect_refusals = Reasons()
        self.connect_failures = Reasons()
        self.ttfa = Histogram()
        self.silence = Histogram()
        self.confirmed = Histogram()
        self.plateau_seconds = 0.0  # that there were
        self.audio_seconds = 0.0  # of the plateau
        self.judged = 0  # utterances that had audio and were read as they should be
        self.gapless = 0
        self.underruns = 0
        self.underrun_seconds = 0.0
        self.largest_gap = 0.0
        self.waits = 0.0
        self.slow = 0
        self.client = Client()
        self.cut_short = ""  # why the run ended before its time

    # What happens.

    def connected(self, seconds: float) -> None:
        self.connects.add(seconds)

    def connect_refused(self, reason: str, seconds: float) -> None:
        self.connect_refusals.add(reason, seconds)

    def connect_failed(self, reason: str, seconds: float) -> None:
        self.connect_failures.add(reason, seconds)

    def heard(self, at: float, seconds: float) -> None:
        """Audio of `seconds` was received at `at`."""
        self._slice(at).audio_seconds += seconds
        if self._on_plateau(at):
            self.audio_seconds += seconds

    def ended(self, result: Result) -> None:
        self._draw(result)
        if not self._on_plateau(result.began_at):
            return
        self.outcomes[result.outcome.value] += 1
        took = result.ended_at - result.began_at
        if result.outcome is Outcome.REFUSED:
            self.refusals.add(result.reason, took)
        elif result.outcome is Outcome.FAILED:
            self.failures.add(result.reason, took)
        if result.ttfa is not None:
            self.ttfa.add(result.ttfa)
        if result.cancel_to_silence is not None and not result.slow:
            self.silence.add(result.cancel_to_silence)
        if result.cancel_to_confirmed is not None and not result.slow:
            self.confirmed.add(result.cancel_to_confirmed)
        self.slow += result.slow
        if result.first_at is not None and not result.slow:
            self._judge(result)

    def merge(self, other: "Statistics") -> None:
        for mine, its in zip(self.slices, other.slices, strict=True):
            mine.began += its.began
            mine.done += its.done
            mine.refused += its.refused
            mine.failed += its.failed
            mine.underrun_seconds += its.underrun_seconds
            mine.audio_seconds += its.audio_seconds
            mine.turned += its.turned
            mine.ttfa.merge(its.ttfa)
        self.outcomes.update(other.outcomes)
        for name in ("refusals", "failures", "connects", "connect_refusals", "connect_failures"):
            getattr(self, name).merge(getattr(other, name))
        for name in ("ttfa", "silence", "confirmed", "client"):
            getattr(self, name).merge(getattr(other, name))
        for name in ("audio_seconds", "judged", "gapless", "underruns", "underrun_seconds", "waits", "slow"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.largest_gap = max(self.largest_gap, other.largest_gap)
        self.plateau_seconds = max(self.plateau_seconds, other.plateau_seconds)
        self.cut_short = self.cut_short or other.cut_short

    # What it comes to.

    @property
    def utterances(self) -> int:
        return self.outcomes.total()

    def active(self) -> list[int]:
        """Listeners at the end of each slice."""
        listening, counts = 0, []
        for slice in self.slices:
            listening += slice.turned
            counts.append(listening)
        return counts

    # Within.

    def _judge(self, result: Result) -> None:
        self.judged += 1
        self.gapless += result.underruns == 0
        self.underruns += result.underruns
        self.underrun_seconds += result.underrun_seconds
        self.largest_gap = max(self.largest_gap, result.largest_gap)
        self.waits += result.waits

    def _draw(self, result: Result) -> None:
        begin, end = self._slice(result.began_at), self._slice(result.ended_at)
        begin.began += 1
        begin.turned += 1
        end.turned -= 1
        match result.outcome:
            case Outcome.DONE | Outcome.CANCELLED:
                end.done += 1
            case Outcome.REFUSED:
                end.refused += 1
            case Outcome.FAILED:
                end.failed += 1
        if result.ttfa is not None and result.first_at is not None:
            self._slice(result.first_at).ttfa.add(result.ttfa)
        end.underrun_seconds += result.underrun_seconds

    def _on_plateau(self, at: float) -> bool:
        return self.load.ramp <= at - self.began_at < self.load.until

    def _slice(self, at: float) -> Slice:
        number = int((at - self.began_at) / self.slice_seconds)
        return self.slices[min(max(number, 0), len(self.slices) - 1)]

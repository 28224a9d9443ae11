"""The record of one utterance, from the first text to the last sound. Pure: fed with events and instants.

What counts as what:

- TTFA: from the instant before the text was written to the first audio received. Where text is written token by token,
  from the instant before the token that completed the first piece (the first clause of four words or more, or the
  sentence) together with the character behind it; audio from before that (a server may speak up to any word) counts 0.
- Underrun: a stop of the play-out clock of more than a millisecond. Of it counts what lies after the sentence (the
  first clause) that the late audio belongs to had been written as a whole: before that the server had nothing to say.
  What it belongs to is told by the word times; without those, the whole text must have been written.
- What a slow reader misses is its own doing: it has no underruns.
"""

from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum

from ..client import Audio, Cancelled, Done, Event, PlayoutClock, Started, Words
from .lengths import Lengths

REFUSALS = frozenset({"overloaded", "rate_limited", "voice_loading", "too_many_contexts"})
_MAX_STOPS = 1000  # of one utterance, kept until its word times are known


class Outcome(Enum):
    DONE = "done"
    CANCELLED = "cancelled"  # by the listener
    REFUSED = "refused"
    FAILED = "failed"
    CUT = "cut"  # by the end of the run


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an utterance. Instants are monotonic seconds."""

    outcome: Outcome
    reason: str  # of a refusal or failure: a wire error code, "handshake 503", "closed 1006", …
    began_at: float
    ended_at: float  # done: when the listener has heard it out
    slow: bool
    ttfa: float | None
    first_at: float | None
    audio_seconds: float  # received
    underruns: int
    underrun_seconds: float
    largest_gap: float
    waits: float  # stops of the play-out clock that were not the server's, seconds
    cancel_to_silence: float | None
    cancel_to_confirmed: float | None


class Listening:
    """One utterance. `wrote` and `receive` as it goes, then one of the ends, once."""

    def __init__(self, length: int, pieces: tuple[int, ...], began_at: float, *, slow: bool = False) -> None:
        """`length` of the text and the ends of its pieces, in characters."""
        self.began_at = began_at
        self.active_at = began_at  # when anything happened last
        self.slow = slow
        self.started: Started | None = None
        self.clock: PlayoutClock | None = None
        self.samples = 0  # received, at the output rate
        self._length = length
        self._pieces = pieces
        self._written: list[float] = []  # when each piece had been written
        self._stops: list[tuple[int, float, float]] = []  # first sample after it, begin, end
        self._words: list[tuple[float, int]] = []  # begin in seconds, offset
        self._audio_at: float | None = None
        self._lengths: Lengths | None = None
        self._cancelled_at: float | None = None
        self._confirmed_at: float | None = None

    def begin(self, now: float) -> None:
        """A connection is there, and the text is written next."""
        self.began_at = self.active_at = now

    def wrote(self, length: int, now: float) -> None:
        """`length` characters have been written by a write that began at `now`."""
        self.active_at = now
        while len(self._written) < len(self._pieces):
            end = self._pieces[len(self._written)]
            if length <= end and length < self._length:
                return
            self._written.append(now)

    def receive(self, event: Event, now: float) -> None:
        self.active_at = now
        match event:
            case Audio():
                self._on_audio(event)
            case Started():
                self.started = event
                self.clock = PlayoutClock(event.sample_rate, self.began_at)
                self._lengths = Lengths(event)
            case Words(words=words):
                self._words.extend((word.start, word.offset) for word in words)
            case Done(samples=samples):
                self.samples = samples
            case Cancelled() if self._confirmed_at is None:
                self._confirmed_at = now

    def cancel(self, now: float) -> int:
        """The listener interrupts at `now`. Returns the samples it has heard."""
        self._cancelled_at = now
        return 0 if self.clock is None else self.clock.heard(self.samples, now)

    @property
    def first_at(self) -> float | None:
        return None if self.clock is None else self.clock.first_at

    @property
    def ttfa(self) -> float | None:
        if (first_at := self.first_at) is None:
            return None
        return max(0.0, first_at - self._written[0]) if self._written else 0.0

    @property
    def heard_out_at(self) -> float | None:
        """When what has come is heard to its end; None before the first audio."""
        if self.clock is None or self.clock.first_at is None:
            return None
        return self.clock.first_at + self.clock.underrun_seconds + self.samples / self.clock.sample_rate

    def owed(self) -> list[tuple[int, float, float]]:
        """The underruns: sample before which the listener waited, begin and end, of what was the server's to fill."""
        stops = ((sample, max(begin, self._due_at(sample)), end) for sample, begin, end in self._stops)
        return [(sample, begin, end) for sample, begin, end in stops if end > begin]

    # Ends.

    def finished(self, now: float) -> Result:
        """The context ended as it should: done, or cancelled by us."""
        if self._confirmed_at is not None:
            return self._result(Outcome.CANCELLED, "", now)
        if self.first_at is None:
            return self._result(Outcome.FAILED, "silent", now)
        return self._result(Outcome.DONE, "", max(now, self.heard_out_at or now))

    def refused(self, reason: str, now: float) -> Result:
        return self._result(Outcome.REFUSED, reason, now)

    def failed(self, reason: str, now: float) -> Result:
        return self._result(Outcome.FAILED, reason, now)

    def ended_with(self, code: str, now: float) -> Result:
        """The server ended the context with the error `code`."""
        return self.refused(code, now) if code in REFUSALS else self.failed(code, now)

    def cut(self, now: float) -> Result:
        return self._result(Outcome.CUT, "", now)

    def _on_audio(self, audio: Audio) -> None:
        self._audio_at = audio.received_at
        if self.clock is None or self._lengths is None:
            return
        gap = self.clock.feed(audio.start, audio.received_at)
        if gap and not self.slow and len(self._stops) < _MAX_STOPS:
            self._stops.append((audio.start, audio.received_at - gap, audio.received_at))
        self.samples = max(self.samples, self._lengths.end_of(audio))

    def _result(self, outcome: Outcome, reason: str, ended_at: float) -> Result:
        owed = [end - begin for _, begin, end in self.owed()]
        stopped = sum(end - begin for _, begin, end in self._stops)
        silence = confirmed = None
        if self._cancelled_at is not None and self._confirmed_at is not None:
            silence = max(0.0, (self._audio_at or 0.0) - self._cancelled_at)
            confirmed = self._confirmed_at - self._cancelled_at
        return Result(
            outcome,
            reason,
            self.began_at,
            ended_at,
            self.slow,
            ttfa=self.ttfa,
            first_at=self.first_at,
            audio_seconds=self.samples / self.started.sample_rate if self.started else 0.0,
            underruns=len(owed),
            underrun_seconds=sum(owed),
            largest_gap=max(owed, default=0.0),
            waits=max(0.0, stopped - sum(owed)),
            cancel_to_silence=silence,
            cancel_to_confirmed=confirmed,
        )

    def _due_at(self, sample: int) -> float:
        piece = len(self._pieces) - 1
        if self._words and self.started is not None:
            # The late audio brings the next word; before it there may be a pause that belongs to the join.
            at = bisect_left(self._words, (sample / self.started.sample_rate - 0.05, 0))
            if at < len(self._words):
                piece = min(piece, bisect_left(self._pieces, self._words[at][1] + 1))
        return self._written[piece] if piece < len(self._written) else float("inf")

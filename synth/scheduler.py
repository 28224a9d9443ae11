"""Decides which utterance's next segment runs: whoever is nearest to silence.

Owns the order and nothing else: instants are passed in, segments are taken by the caller and their results come back as
`done`. Knows no workers, engines, audio or sockets.

    no audio yet        in the order their first segments came, those that crowd others last
    then least lead     the earliest instant at which the listener runs dry
    lead >= target      not run at all: the core goes to whoever needs it

Nobody starves: a stream's instant stands still while it waits, so every other stream that is served moves behind it.
First segments go before all of them; admission bounds how many there are.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from .segment import Segment

BEHIND = 1 << 60  # arrivals

_Entry = tuple[float, int, int]  # (when the listener runs dry, order of arrival, utterance)


@dataclass(slots=True)
class _Utterance:
    order: int  # of adding, then of its first segment
    crowding: bool
    waiting: deque[Segment] = field(default_factory=deque)
    covered_until: float = -math.inf
    held: bool = False
    in_flight: bool = False
    entry: _Entry | None = None  # its only valid entry in the heap; all others are leftovers


class Scheduler:
    """Every method is O(log utterances), amortized. Unknown and cancelled utterances are ignored, but for `push`."""

    def __init__(self, target_lead_s: float) -> None:
        """`target_lead_s`: a stream whose listener has this many seconds in hand is left alone."""
        self._target_lead_s = target_lead_s
        self._utterances: dict[int, _Utterance] = {}
        self._urgent: list[_Entry] = []  # heaps
        self._others: list[_Entry] = []
        self._arrivals = 0
        self._backlog = 0

    @property
    def backlog(self) -> int:
        """Segments waiting, those of held utterances included."""
        return self._backlog

    def add(self, utterance: int, *, crowding: bool = False) -> None:
        """Open an utterance. `crowding`: its first segment is not urgent, and goes behind those that are.

        `ValueError` if it is open already.
        """
        if utterance in self._utterances:
            raise ValueError(f"utterance {utterance} was added already")
        self._utterances[utterance] = _Utterance(self._next_arrival(crowding), crowding)

    def push(self, utterance: int, segment: Segment) -> None:
        """Queue a segment. `KeyError` for an utterance that is not open."""
        state = self._utterances[utterance]
        if not state.waiting and state.covered_until == -math.inf:
            state.order = self._next_arrival(state.crowding)
        state.waiting.append(segment)
        self._backlog += 1
        self._enter(utterance, state)

    def cover(self, utterance: int, until: float) -> None:
        """The listener has audio, sent or generated, up to the instant `until`."""
        if state := self._utterances.get(utterance):
            state.covered_until = until
            self._enter(utterance, state)

    def hold(self, utterance: int) -> None:
        """Skip the utterance until `release`."""
        if state := self._utterances.get(utterance):
            state.held = True
            state.entry = None

    def release(self, utterance: int) -> None:
        if state := self._utterances.get(utterance):
            state.held = False
            self._enter(utterance, state)

    def cancel(self, utterance: int) -> None:
        """Forget the utterance: its waiting segments never run, and `done` for the one in flight is ignored."""
        if state := self._utterances.pop(utterance, None):
            self._backlog -= len(state.waiting)

    def done(self, utterance: int) -> None:
        """The segment in flight came back."""
        if state := self._utterances.get(utterance):
            state.in_flight = False
            self._enter(utterance, state)

    def next(self, now: float, *, urgent: bool | None = None) -> tuple[int, Segment] | None:
        """Take the segment to run at `now`, None if no utterance needs one.

        `urgent`: only of those whose listeners have no audio yet and that crowd nobody, or only of the others.
        """
        heap = self._first_heap(urgent)
        if heap is None or self._runnable_at(heap[0]) > now:
            return None
        entry = heapq.heappop(heap)
        utterance = entry[2]
        state = self._utterances[utterance]
        state.entry = None
        state.in_flight = True
        self._backlog -= 1
        return utterance, state.waiting.popleft()

    def due(self) -> Iterator[tuple[float, Segment]]:
        """Of every utterance that may run: when its listener runs dry (-inf: no audio yet) and its next segment."""
        for state in self._utterances.values():
            if state.entry is not None:
                yield state.covered_until, state.waiting[0]

    def wake_at(self, now: float, *, urgent: bool | None = None) -> float | None:
        """When `next` will have a segment if nothing else happens; None if it has one at `now` or none waits."""
        heap = self._first_heap(urgent)
        if heap is None or (wake_at := self._runnable_at(heap[0])) <= now:
            return None
        return wake_at

    def _runnable_at(self, entry: _Entry) -> float:
        # The instant *after* the lead equals the target, so that a timer set to it never finds nothing to run.
        return math.nextafter(entry[0] - self._target_lead_s, math.inf)

    def _first_heap(self, urgent: bool | None) -> list[_Entry] | None:
        """The heap that has the first entry on top, of one kind or of both."""
        if urgent is not False and self._has_entry(self._urgent):
            return self._urgent
        return self._others if not urgent and self._has_entry(self._others) else None

    def _has_entry(self, heap: list[_Entry]) -> bool:
        """Whether there is a valid one, which is on top then."""
        while heap:
            if self._is_valid(heap[0]):
                return True
            heapq.heappop(heap)
        return False

    def _is_valid(self, entry: _Entry) -> bool:
        state = self._utterances.get(entry[2])
        return state is not None and state.entry is entry

    def _enter(self, utterance: int, state: _Utterance) -> None:
        """Give the utterance its place in the heap, if it has something to run and may."""
        if not state.waiting or state.in_flight or state.held:
            state.entry = None
            return
        if state.entry is not None and state.entry[:2] == (state.covered_until, state.order):
            return
        state.entry = (state.covered_until, state.order, utterance)
        heap = self._urgent if _is_urgent(state) else self._others
        heapq.heappush(heap, state.entry)
        if len(heap) > 64 + 2 * len(self._utterances):  # leftovers of streams whose cover moved while they waited
            heap[:] = filter(self._is_valid, heap)
            heapq.heapify(heap)

    def _next_arrival(self, crowding: bool) -> int:
        self._arrivals += 1
        return self._arrivals + BEHIND * crowding


def _is_urgent(state: _Utterance) -> bool:
    return state.covered_until == -math.inf and not state.crowding

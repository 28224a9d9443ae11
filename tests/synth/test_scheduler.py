"""Who runs next: properties against a naive model, and minutes of listening in virtual time."""

import heapq
import math
import pickle
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from voxgate.synth.scheduler import Scheduler
from voxgate.synth.segment import Boundary, Segment

TARGET_S = 2.0


def segment(index: int = 0) -> Segment:
    return Segment(index, "words", 0, 5, Boundary.START, Boundary.SENTENCE)


def scheduler_with(*utterances: int, segments: int = 1) -> Scheduler:
    scheduler = Scheduler(TARGET_S)
    for utterance in utterances:
        scheduler.add(utterance)
        for index in range(segments):
            scheduler.push(utterance, segment(index))
    return scheduler


def run_order(scheduler: Scheduler, now: float) -> list[int]:
    """The utterances whose segments are handed out at `now`, none of them coming back."""
    order: list[int] = []
    while taken := scheduler.next(now):
        order.append(taken[0])
    return order


def test_utterances_without_audio_run_in_the_order_their_first_segments_came() -> None:
    scheduler = Scheduler(TARGET_S)
    for utterance in (1, 2, 3):
        scheduler.add(utterance)
    for utterance in (3, 1, 2):
        scheduler.push(utterance, segment())
    assert run_order(scheduler, 0.0) == [3, 1, 2]


def test_no_audio_yet_comes_before_least_lead() -> None:
    scheduler = scheduler_with(1, 2, 3)
    scheduler.cover(1, 11.5)
    scheduler.cover(2, 9.0)  # already silent
    assert run_order(scheduler, 10.0) == [3, 2, 1]


def test_asked_for_silent_listeners_only_it_keeps_everybody_else_for_later() -> None:
    scheduler = scheduler_with(1, 2)
    scheduler.cover(1, 9.0)
    assert scheduler.next(10.0, urgent=True) == (2, segment())
    assert scheduler.next(10.0, urgent=True) is None
    assert scheduler.next(10.0) == (1, segment())


def test_the_first_segments_of_those_who_crowd_go_behind_all_others_but_before_everyone_who_hears_something() -> None:
    scheduler = Scheduler(TARGET_S)
    for utterance, crowding in ((1, True), (2, False), (3, True), (4, False)):
        scheduler.add(utterance, crowding=crowding)
    for utterance in (5, 6):
        scheduler.add(utterance)
        scheduler.cover(utterance, 9.0)
    for utterance in (5, 1, 3, 2, 6, 4):
        scheduler.push(utterance, segment())
    assert [scheduler.next(10.0, urgent=True) for _ in range(3)] == [(2, segment()), (4, segment()), None]
    assert run_order(scheduler, 10.0) == [1, 3, 5, 6]


def test_a_stream_with_the_target_lead_is_not_run_until_it_is_used_up() -> None:
    scheduler = scheduler_with(1)
    scheduler.cover(1, 10.0 + TARGET_S)
    assert scheduler.next(10.0) is None
    wake_at = scheduler.wake_at(10.0)
    assert wake_at == pytest.approx(10.0)
    assert wake_at is not None
    assert wake_at > 10.0
    assert scheduler.next(wake_at) == (1, segment())


def test_nothing_to_wake_for_when_something_runs_now_or_nothing_waits() -> None:
    scheduler = scheduler_with(1)
    assert scheduler.wake_at(0.0) is None
    scheduler.next(0.0)
    assert scheduler.wake_at(0.0) is None


def test_segments_of_an_utterance_run_one_at_a_time_and_in_order() -> None:
    scheduler = scheduler_with(1, segments=2)
    assert scheduler.next(0.0) == (1, segment(0))
    assert scheduler.next(0.0) is None
    scheduler.done(1)
    assert scheduler.next(0.0) == (1, segment(1))


def test_a_held_utterance_is_skipped_until_it_is_released() -> None:
    scheduler = scheduler_with(1, 2)
    scheduler.hold(1)
    assert run_order(scheduler, 0.0) == [2]
    scheduler.release(1)
    assert run_order(scheduler, 0.0) == [1]


def test_a_cancelled_utterance_never_runs_and_its_result_is_ignored() -> None:
    scheduler = scheduler_with(1, 2, segments=2)
    assert scheduler.next(0.0) == (1, segment(0))
    scheduler.cancel(1)
    scheduler.done(1)
    scheduler.cover(1, 5.0)
    scheduler.release(1)
    assert scheduler.backlog == 2
    assert run_order(scheduler, 0.0) == [2]


def test_an_utterance_is_added_once_and_pushed_to_only_while_open() -> None:
    scheduler = scheduler_with(1)
    with pytest.raises(ValueError, match="1"):
        scheduler.add(1)
    scheduler.cancel(1)
    with pytest.raises(KeyError):
        scheduler.push(1, segment())


def test_covering_a_waiting_stream_again_and_again_keeps_no_history() -> None:
    scheduler = scheduler_with(1)
    for step in range(10_000):
        scheduler.cover(1, float(step))
    assert len(pickle.dumps(scheduler)) < 8_000


# Against a model that looks at every utterance each time.


@dataclass
class ModelUtterance:
    waiting: list[Segment] = field(default_factory=list)
    covered_until: float = -math.inf
    arrived: int = 0
    crowding: bool = False
    held: bool = False
    in_flight: bool = False

    @property
    def urgent(self) -> bool:
        return self.covered_until == -math.inf and not self.crowding


class SchedulerMachine(RuleBasedStateMachine):
    utterances = Bundle("utterances")

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler(TARGET_S)
        self.model: dict[int, ModelUtterance] = {}
        self.count = 0
        self.now = 100.0

    @rule(target=utterances, crowding=st.booleans())
    def add(self, crowding: bool) -> int:
        self.count += 1
        self.scheduler.add(self.count, crowding=crowding)
        self.model[self.count] = ModelUtterance(crowding=crowding)
        return self.count

    @rule(utterance=utterances)
    def push(self, utterance: int) -> None:
        self.count += 1
        state = self.model[utterance]
        if not state.waiting and state.covered_until == -math.inf:
            state.arrived = self.count
        state.waiting.append(segment(self.count))
        self.scheduler.push(utterance, segment(self.count))

    @rule(utterance=utterances, lead=st.sampled_from([-1.0, 0.0, 0.5, 1.0, TARGET_S, 5.0]))
    def cover(self, utterance: int, lead: float) -> None:
        self.model[utterance].covered_until = self.now + lead
        self.scheduler.cover(utterance, self.now + lead)

    @rule(utterance=utterances)
    def hold(self, utterance: int) -> None:
        self.model[utterance].held = True
        self.scheduler.hold(utterance)

    @rule(utterance=utterances)
    def release(self, utterance: int) -> None:
        self.model[utterance].held = False
        self.scheduler.release(utterance)

    @rule(utterance=utterances)
    def done(self, utterance: int) -> None:
        self.model[utterance].in_flight = False
        self.scheduler.done(utterance)

    @rule(utterance=consumes(utterances))
    def cancel(self, utterance: int) -> None:
        del self.model[utterance]
        self.scheduler.cancel(utterance)
        self.scheduler.done(utterance)

    @rule(seconds=st.sampled_from([0.0, 0.25, 1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(urgent=st.sampled_from([None, True, False]))
    def take(self, urgent: bool | None) -> None:
        taken = self.scheduler.next(self.now, urgent=urgent)
        runnable = [u for u in self.ready(urgent) if self.model[u].covered_until - self.now < TARGET_S]
        if not runnable:
            assert taken is None
            return
        best = min(self.model[u].covered_until for u in runnable)
        assert taken is not None
        utterance, found = taken
        state = self.model[utterance]
        assert state.covered_until == best
        if best == -math.inf:
            first = [self.model[u] for u in runnable if self.model[u].covered_until == best]
            assert (state.crowding, state.arrived) == min((each.crowding, each.arrived) for each in first)
        assert found == state.waiting.pop(0)
        state.in_flight = True

    def ready(self, urgent: bool | None) -> list[int]:
        return [
            u
            for u, state in self.model.items()
            if state.waiting and not state.held and not state.in_flight and urgent in (None, state.urgent)
        ]

    @invariant()
    def backlog_counts_what_waits(self) -> None:
        assert self.scheduler.backlog == sum(len(state.waiting) for state in self.model.values())

    @invariant()
    def wakes_when_the_next_stream_has_used_up_its_lead(self) -> None:
        for urgent in (None, True, False):
            earliest = min((self.model[u].covered_until for u in self.ready(urgent)), default=-math.inf)
            if earliest - self.now < TARGET_S:
                assert self.scheduler.wake_at(self.now, urgent=urgent) is None
            else:
                assert self.scheduler.wake_at(self.now, urgent=urgent) == pytest.approx(earliest - TARGET_S)


TestScheduler = SchedulerMachine.TestCase
TestScheduler.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)


# Minutes of listening in virtual time.


@dataclass
class Listener:
    arrives_at: float
    segments: int
    ready_at: float = math.inf  # its first segment
    first_audio_at: float = math.inf
    covered_until: float = -math.inf
    finished: bool = False
    underrun_s: float = 0.0


def simulate(listeners: list[Listener], workers: int, cost_s: float, audio_s: float) -> float:
    """Play all listeners to their end; the longest that a first segment waited while others that had audio were run."""
    scheduler = Scheduler(TARGET_S)
    events: list[tuple[float, int, str, int]] = [(x.arrives_at, i, "arrive", i) for i, x in enumerate(listeners)]
    heapq.heapify(events)
    idle, order, overtaken = workers, len(listeners), 0.0
    wake: float | None = None
    while events:
        now, _, kind, who = heapq.heappop(events)
        listener = listeners[who]
        match kind:
            case "arrive":
                listener.ready_at = now
                scheduler.add(who)
                for index in range(listener.segments):
                    scheduler.push(who, segment(index))
            case "done":
                idle += 1
                if listener.first_audio_at == math.inf:
                    listener.first_audio_at = listener.covered_until = now
                listener.underrun_s += max(0.0, now - listener.covered_until)
                listener.covered_until = max(now, listener.covered_until) + audio_s
                listener.segments -= 1
                scheduler.cover(who, listener.covered_until)
                scheduler.done(who)
                if not listener.segments:
                    scheduler.cancel(who)
        while idle and (taken := scheduler.next(now)):
            idle -= 1
            order += 1
            heapq.heappush(events, (now + cost_s, order, "done", taken[0]))
            if listeners[taken[0]].first_audio_at < math.inf:
                waiting = [x.ready_at for x in listeners if x.ready_at <= now and x.first_audio_at == math.inf]
                in_work = sum(
                    kind == "done" and listeners[who].first_audio_at == math.inf for _, _, kind, who in events
                )
                if len(waiting) > in_work:
                    overtaken = max(overtaken, now - min(waiting))
        if idle and (at := scheduler.wake_at(now)) is not None and at != wake:
            wake, order = at, order + 1
            heapq.heappush(events, (at, order, "wake", who))
    return overtaken


@pytest.mark.parametrize("load", [0.5, 0.9])
def test_no_listener_hears_a_gap_below_full_load(load: float) -> None:
    workers, audio_s, count = 2, 3.0, 100
    cost_s = load * workers * audio_s / count  # every listener at once needs this share of all workers
    chance = random.Random(5)
    listeners = [Listener(chance.uniform(0.0, 10.0), 40) for _ in range(count)]
    overtaken = simulate(listeners, workers, cost_s, audio_s)
    assert overtaken == 0.0
    assert [x.underrun_s for x in listeners if x.underrun_s > 0.0] == []
    assert all(x.segments == 0 for x in listeners)


def test_overload_is_shared_and_nobody_starves() -> None:
    workers, audio_s, count = 2, 3.0, 50
    cost_s = 1.5 * workers * audio_s / count
    listeners = [Listener(0.01 * i, 40) for i in range(count)]
    assert simulate(listeners, workers, cost_s, audio_s) == 0.0
    gaps = [x.underrun_s for x in listeners]
    assert min(gaps) > 0.8 * max(gaps)


def test_first_segments_wait_only_for_one_another_in_a_full_house() -> None:
    workers, audio_s, cost_s = 2, 3.0, 0.05
    settled = [Listener(0.0, 20) for _ in range(60)]
    newcomers = [Listener(20.0, 5) for _ in range(10)]
    simulate(settled + newcomers, workers, cost_s, audio_s)
    waits = [x.first_audio_at - x.arrives_at for x in newcomers]
    # One segment may be in work on each worker; then newcomers go two by two.
    assert max(waits) <= cost_s * (1 + len(newcomers) / workers) + 1e-9


def work_of_a_pick(count: int) -> float:
    """Comparisons of heap entries per pick, as seen by a float that counts them."""
    comparisons = 0

    class Instant(float):
        def __lt__(self, other: float) -> bool:
            nonlocal comparisons
            comparisons += 1
            return float(self) < float(other)

        def __eq__(self, other: object) -> bool:
            return float(self) == other

        __hash__ = float.__hash__

    chance = random.Random(1)
    scheduler = scheduler_with(*range(count), segments=50)
    for utterance in range(count):
        scheduler.cover(utterance, Instant(chance.random()))
    picks = 5 * count
    for _ in range(picks):
        taken = scheduler.next(10.0)
        assert taken is not None
        scheduler.cover(taken[0], Instant(chance.random()))
        scheduler.done(taken[0])
    return comparisons / picks


def test_a_pick_among_a_thousand_costs_little_more_than_among_a_hundred() -> None:
    assert work_of_a_pick(1000) < 3 * work_of_a_pick(100)

"""Every line of the table of states, and the traps of breakers."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from voxgate.admission.breaker import Allowed, Breaker, BreakerSettings, Cause, Probe, Refused, State


def breaker(**changes: float) -> Breaker:
    return Breaker(BreakerSettings(**changes), 0.0)  # pyright: ignore[reportArgumentType]


def hold_memory(it: Breaker, pressure: float | None, begin: float, end: float) -> None:
    """As the monitor reports: five times a second."""
    for tick in range(round(begin * 5), round(end * 5) + 1):
        it.memory(pressure, tick / 5)


def opened_by_failures() -> Breaker:
    it = breaker()
    for _ in range(5):
        it.failure(0.0)
    assert it.state is State.OPEN
    return it


def test_memory_over_the_degrade_line_counts_after_its_dwell():
    it = breaker()
    hold_memory(it, 0.81, 0, 0.8)
    assert it.state is State.NORMAL
    hold_memory(it, 0.81, 0.8, 1.0)

    assert (it.state, it.causes, it.since) == (State.DEGRADED, {Cause.MEMORY}, 1.0)
    assert isinstance(it.ask(1.0), Allowed)


def test_a_spike_shorter_than_the_dwell_changes_nothing():
    it = breaker()
    hold_memory(it, 0.89, 0, 0.8)
    hold_memory(it, 0.5, 1, 1)
    hold_memory(it, 0.89, 1.2, 2.0)
    assert it.state is State.NORMAL


@pytest.mark.parametrize(("pressure", "state"), [(0.80, State.NORMAL), (0.81, State.DEGRADED)])
def test_the_degrade_line_itself_is_not_over_it(pressure: float, state: State):
    it = breaker()
    hold_memory(it, pressure, 0, 60)
    assert it.state is state


@pytest.mark.parametrize(("pressure", "state"), [(0.75, State.DEGRADED), (0.74, State.NORMAL)])
def test_the_recover_line_itself_is_not_under_it(pressure: float, state: State):
    it = breaker()
    hold_memory(it, 0.85, 0, 2)
    hold_memory(it, pressure, 2, 60)
    assert it.state is state


def test_memory_opens_it_only_over_the_open_line_and_after_its_dwell():
    it = breaker()
    hold_memory(it, 0.90, 0, 60)
    assert it.state is State.DEGRADED
    it.memory(0.91, 60.2)
    it.advance(60.39)
    assert it.state is State.DEGRADED
    it.advance(60.41)
    assert (it.state, it.causes) == (State.OPEN, {Cause.MEMORY})


def test_a_recovery_that_is_interrupted_begins_anew():
    it = breaker()
    hold_memory(it, 0.85, 0, 2)
    hold_memory(it, 0.74, 2.2, 4.0)
    hold_memory(it, 0.76, 4.2, 4.2)
    hold_memory(it, 0.74, 4.4, 6.2)
    assert it.state is State.DEGRADED
    it.advance(6.4)
    assert it.state is State.NORMAL


def test_between_recover_and_degrade_nothing_changes():
    it = breaker()
    hold_memory(it, 0.85, 0, 2)
    hold_memory(it, 0.78, 2, 60)
    assert it.state is State.DEGRADED
    hold_memory(it, 0.74, 60, 61.8)
    assert it.state is State.DEGRADED
    hold_memory(it, 0.74, 61.8, 62)
    assert it.state is State.NORMAL


def test_memory_walks_through_all_states_and_back():
    it = breaker()
    hold_memory(it, 0.85, 0, 2)
    hold_memory(it, 0.95, 2, 6)
    assert it.state is State.OPEN  # and stays so while the memory is full, whatever its dwell
    assert isinstance(it.ask(6.0), Refused)
    hold_memory(it, 0.5, 6.2, 6.4)
    assert it.state is State.HALF_OPEN
    assert isinstance(it.ask(6.4), Probe)
    assert isinstance(it.ask(6.4), Refused)
    it.probe_ended(True, 6.5)
    hold_memory(it, 0.5, 6.6, 9)

    assert it.state is State.NORMAL
    assert [transition.state for transition in it.transitions] == [
        State.DEGRADED, State.OPEN, State.HALF_OPEN, State.NORMAL,
    ]  # fmt: skip


def test_memory_that_is_not_full_any_more_but_has_not_recovered_leaves_it_degraded():
    it = breaker()
    hold_memory(it, 0.95, 0, 4)
    hold_memory(it, 0.78, 4, 8)
    assert isinstance(it.ask(8.0), Probe)
    it.probe_ended(True, 8.0)
    assert (it.state, it.causes) == (State.DEGRADED, {Cause.MEMORY})
    hold_memory(it, 0.74, 8.2, 10.2)
    assert it.state is State.NORMAL


def test_memory_that_stays_full_asks_to_come_back_no_sooner_than_a_probe_could():
    it = breaker()
    hold_memory(it, 0.95, 0, 20)
    assert it.ask(20.0) == Refused(2.0, Cause.MEMORY)


def test_unknown_memory_trips_nothing_and_keeps_nothing_shut():
    it = breaker()
    hold_memory(it, None, 0, 60)
    assert it.state is State.NORMAL
    hold_memory(it, 0.95, 60, 62)
    hold_memory(it, None, 62, 70)
    assert it.state is State.HALF_OPEN
    assert isinstance(it.ask(70), Probe)
    it.probe_ended(True, 70)
    hold_memory(it, None, 70, 73)
    assert it.state is State.NORMAL


def test_failures_open_it_when_they_come_together():
    slow = breaker()
    for second in range(0, 60, 3):
        slow.failure(float(second))
    assert slow.state is State.NORMAL

    quick = opened_by_failures()
    refused = quick.ask(0.5)
    assert refused == Refused(1.5, Cause.FAILURES)


def test_one_failure_less_than_the_limit_changes_nothing():
    it = breaker()
    for _ in range(4):
        it.failure(0.0)
    it.failure(10.1)
    assert it.state is State.NORMAL
    it.failure(10.2)
    assert it.state is State.NORMAL


@pytest.mark.parametrize(("outcome", "state"), [(True, State.NORMAL), (False, State.OPEN), (None, State.HALF_OPEN)])
def test_a_probe_always_resolves(outcome: bool | None, state: State):
    it = opened_by_failures()
    assert isinstance(it.ask(2.0), Probe)
    it.probe_ended(outcome, 3.0)
    assert it.state is state
    if outcome is None:  # its client hung up: another one may try
        assert isinstance(it.ask(3.0), Probe)


def test_a_failure_of_the_engine_while_the_probe_runs_is_the_probes():
    it = opened_by_failures()
    assert isinstance(it.ask(2.0), Probe)
    it.failure(2.5)
    assert (it.state, it.retry_after(2.5)) == (State.OPEN, 4.0)


def test_memory_that_fills_while_the_probe_runs_opens_it_again():
    it = opened_by_failures()
    assert isinstance(it.ask(2.0), Probe)
    hold_memory(it, 0.95, 2.2, 2.6)
    assert (it.state, it.causes) == (State.OPEN, {Cause.FAILURES, Cause.MEMORY})
    it.probe_ended(True, 2.7, begun_at=2.0)
    assert it.state is State.OPEN


def test_a_probe_that_succeeds_leaves_it_degraded_while_another_cause_holds():
    it = breaker()
    hold_memory(it, 0.85, 0, 2)
    for _ in range(5):
        it.failure(2.0)
    hold_memory(it, 0.85, 2.2, 4)
    assert isinstance(it.ask(4.0), Probe)
    it.probe_ended(True, 4.0)
    assert (it.state, it.causes) == (State.DEGRADED, {Cause.MEMORY})


def test_a_success_makes_the_next_opening_short_again():
    it, now = opened_by_failures(), 0.0
    for succeeded in (False, False, True):
        now += it.retry_after(now)
        assert isinstance(it.ask(now), Probe)
        it.probe_ended(succeeded, now)
    for _ in range(5):
        it.failure(now)
    assert it.retry_after(now) == 2.0


def test_a_probe_nobody_hears_of_has_failed():
    it = opened_by_failures()
    assert isinstance(it.ask(2.0), Probe)
    it.advance(11.9)
    assert it.state is State.HALF_OPEN
    it.advance(12.0)
    assert it.state is State.OPEN


@pytest.mark.parametrize("outcome", [True, False, None])
def test_a_probe_that_ends_after_it_was_counted_as_failed_says_nothing_of_the_next(outcome: bool | None):
    it = opened_by_failures()
    assert isinstance(it.ask(2.0), Probe)
    it.advance(12.0)
    assert isinstance(it.ask(16.0), Probe)

    it.probe_ended(outcome, 16.1, begun_at=2.0)

    assert isinstance(it.ask(16.2), Refused)
    it.probe_ended(True, 16.3, begun_at=16.0)
    assert it.state is State.NORMAL


def test_each_failed_probe_doubles_the_wait_up_to_a_bound():
    it, now, waits = opened_by_failures(), 0.0, []
    for _ in range(7):
        waits.append(it.retry_after(now))
        now += waits[-1]
        assert isinstance(it.ask(now), Probe)
        it.probe_ended(False, now)
    assert waits == [2, 4, 8, 16, 32, 60, 60]


def test_looking_does_not_spend_the_probe():
    it = opened_by_failures()
    assert it.would_refuse(1.9)
    assert not it.would_refuse(2.0)
    assert isinstance(it.ask(2.0), Probe)
    assert it.would_refuse(2.0)


@pytest.mark.parametrize("what", ["waits", "predicted", "underruns"])
def test_want_of_time_degrades_and_never_refuses(what: str):
    it = breaker()
    for tick in range(60):
        now = tick / 10
        match what:
            case "waits":
                it.first_audio(0.2, now)
            case "predicted":
                it.predicted(0.2, now)
            case _:
                it.underrun(now)
                it.underrun(now)
        assert isinstance(it.ask(now), Allowed)
    assert (it.state, it.causes) == (State.DEGRADED, {Cause.TIME})
    it.advance(8.0)  # the last one has left the window; the recovery dwell begins
    it.advance(9.9)
    assert it.state is State.DEGRADED
    it.advance(10.0)
    assert it.state is State.NORMAL


@pytest.mark.parametrize("what", ["wait", "underrun"])
def test_one_alone_says_nothing_of_the_house(what: str):
    it = breaker()
    for tick in range(60):
        now = tick / 10
        if tick % 20 == 0:
            it.underrun(now) if what == "underrun" else it.first_audio(9.0, now)
        it.advance(now)
        assert it.state is State.NORMAL


def test_two_of_which_both_are_slow_say_it():
    it = breaker()
    for tick in range(30):
        it.first_audio(0.5, tick * 0.9)
    assert it.causes == {Cause.TIME}


def test_want_of_time_is_taken_back_only_under_its_share_of_the_target():
    it = breaker()
    for tick in range(300):
        it.first_audio(0.2 if tick < 30 else 0.12, tick / 10)  # 0.12 s: under the target, over 0.7 of it
    assert it.state is State.DEGRADED
    for tick in range(300, 345):
        it.first_audio(0.10, tick / 10)
    assert it.state is State.NORMAL


def test_one_slow_wait_among_many_is_nothing():
    it = breaker()
    for tick in range(100):
        it.first_audio(1.0 if tick % 50 == 0 else 0.05, tick / 25)
    assert it.state is State.NORMAL


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"degrade": 0.95}, "recover < degrade < open"),
        ({"recover": -0.1}, "recover < degrade < open"),
        ({"open": 1.1}, "open <= 1"),
        ({"target_s": 0.0}, "target_s must be over 0"),
        ({"window_s": 0.0}, "window_s must be over 0"),
        ({"probe_after_most_s": float("nan")}, "probe_after_most_s must be at least"),
        ({"degrade_dwell_s": -1.0}, "degrade_dwell_s must be over 0"),
        ({"failures": 0}, "failures must be at least 1"),
        ({"time_recover": 1.0}, "time_recover must be between 0 and 1"),
        ({"probe_after_most_s": 1.0}, "probe_after_most_s must be at least probe_after_s"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(changes: dict[str, float], said: str):
    with pytest.raises(ValueError, match=said):
        breaker(**changes)


class AnyHistory(RuleBasedStateMachine):
    """Whatever happens: one probe at a time, and a way back."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.it = breaker()
        self.was_full = False
        self.probes: list[float] = []  # when those began that nobody has told the end of, overdue ones too

    @rule(seconds=st.sampled_from([0.05, 0.3, 1.0, 3.0, 20.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.it.advance(self.now)

    @rule(pressure=st.sampled_from([None, 0.1, 0.76, 0.85, 0.95]))
    def memory(self, pressure: float | None) -> None:
        self.was_full |= pressure is not None and pressure > 0.9
        self.it.memory(pressure, self.now)

    @rule(wait=st.sampled_from([0.01, 0.5]))
    def first_audio(self, wait: float) -> None:
        self.it.first_audio(wait, self.now)

    @rule(count=st.sampled_from([1, 5]))
    def failures(self, count: int) -> None:
        for _ in range(count):
            self.it.failure(self.now)

    @precondition(lambda self: self.it.state is State.OPEN)
    @rule()
    def wait_for_the_probe(self) -> None:
        self.wait(self.it.retry_after(self.now))
        self.ask()

    @precondition(lambda self: self.it.state is State.HALF_OPEN and self.probes)
    @rule()
    def let_the_probe_be_overdue(self) -> None:
        self.wait(self.it.settings.probe_deadline_s)

    @rule()
    def ask(self) -> None:
        expected_refusal = self.it.would_refuse(self.now)
        answer = self.it.ask(self.now)
        assert isinstance(answer, Refused) == expected_refusal
        if isinstance(answer, Refused):
            assert answer.retry_after_s > 0
        if isinstance(answer, Probe):
            deadline = self.now - self.it.settings.probe_deadline_s
            assert not [begun for begun in self.probes if begun > deadline and begun > self.opened_at]
            self.probes.append(self.now)
            assert isinstance(self.it.ask(self.now), Refused)

    @property
    def opened_at(self) -> float:
        """When it last opened: by that every probe of before is resolved."""
        return max((each.at for each in self.it.transitions if each.state is State.OPEN), default=-1.0)

    @precondition(lambda self: self.probes)
    @rule(outcome=st.sampled_from([True, False, None]), which=st.integers(0, 9))
    def probe_ends(self, outcome: bool | None, which: int) -> None:
        begun_at = self.probes.pop(which % len(self.probes))
        self.it.advance(self.now)
        resolved, before = begun_at <= self.opened_at, (self.it.state, self.it.would_refuse(self.now))
        self.it.probe_ended(outcome, self.now, begun_at=begun_at)
        if resolved:
            assert (self.it.state, self.it.would_refuse(self.now)) == before

    @invariant()
    def memory_opens_it_only_when_it_was_full(self) -> None:
        opened = [
            each for each in self.it.transitions if each.state is State.OPEN and Cause.FAILURES not in each.causes
        ]
        assert self.was_full or not opened

    @invariant()
    def says_why(self) -> None:
        assert (self.it.state is State.NORMAL) == (not self.it.causes) or self.it.state is State.HALF_OPEN

    def teardown(self) -> None:
        self.it.memory(0.1, self.now)
        for _ in range(100):
            self.now += 1.0
            self.it.memory(0.1, self.now)
            if isinstance(self.it.ask(self.now), Probe):
                self.it.probe_ended(True, self.now)
        assert self.it.state is State.NORMAL


AnyHistory.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestAnyHistory = AnyHistory.TestCase

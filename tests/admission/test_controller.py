"""The decision: in which order it asks, and that nobody is lost on the way."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from voxgate.admission.answer import Ask, Outcome, Permit, Reason, Refusal, Waiting
from voxgate.admission.breaker import BreakerSettings, Cause, State
from voxgate.admission.controller import Controller, Limits
from voxgate.admission.limit import LimitSettings
from voxgate.admission.queue import QueueSettings
from voxgate.admission.quotas import Quota

ASK = Ask(1, "hibari")


def house(utterances: int = 10, **changes: object) -> Controller:
    limits = Limits(utterances=utterances, limit=LimitSettings(initial=utterances, floor=1, ceiling=utterances))
    return Controller(replace(limits, **changes))  # pyright: ignore[reportArgumentType]


def filled(utterances: int = 10) -> tuple[Controller, list[Permit]]:
    it, permits = house(utterances), []
    for ticket in range(utterances):
        permit = it.admit(replace(ASK, ticket=ticket), 0.0)
        assert isinstance(permit, Permit)
        permits.append(permit)
    return it, permits


def reason(answer: object) -> Reason:
    assert isinstance(answer, Refusal)
    assert answer.retry_after > 0
    return answer.reason


def test_a_permit_given_back_makes_room():
    it, permits = filled()
    assert reason(it.admit(ASK, 0.0)) is Reason.UTTERANCES
    permits[0].release(Outcome.SERVED, 1.0)
    assert isinstance(it.admit(ASK, 1.0), Permit)


def test_a_listener_in_mid_conversation_is_served_before_a_newcomer_and_bounded_too():
    it, _ = filled()
    later = replace(ASK, newcomer=False)
    assert [type(it.admit(later, 0.0)) for _ in range(3)] == [Permit, Refusal, Refusal]


@pytest.mark.parametrize(("utterances", "beyond"), [(1, 1), (5, 1), (10, 1), (30, 3), (70, 7), (100, 10)])
def test_those_in_mid_conversation_may_use_a_tenth_beyond_and_at_least_one(utterances: int, beyond: int):
    it, _ = filled(utterances)
    answers = [it.admit(replace(ASK, newcomer=False), 0.0) for _ in range(utterances)]
    assert sum(isinstance(answer, Permit) for answer in answers) == beyond


def test_a_limit_between_two_numbers_is_the_lower():
    it = house(10)
    it.line("hibari", 0.0).limit.current = 9.5
    answers = [it.admit(replace(ASK, ticket=ticket), 0.0) for ticket in range(10)]
    assert [type(answer) for answer in answers] == [Permit] * 9 + [Refusal]


def test_a_full_backlog_refuses():
    assert reason(house(segments=5).admit(ASK, 0.0, backlog=5)) is Reason.SEGMENTS


def test_draining_refuses_newcomers_and_serves_those_being_served():
    it = house()
    it.draining = True
    assert reason(it.connect("", 0.0)) is Reason.DRAINING
    assert reason(it.admit(ASK, 0.0)) is Reason.DRAINING
    assert isinstance(it.admit(replace(ASK, newcomer=False), 0.0), Permit)


def test_connections_are_bounded_and_an_accounts_own_come_first_back_to_it():
    it = house(connections=2)
    it.quotas.declare("bot", Quota(connections=1), 0.0)
    first = it.connect("bot", 0.0)
    assert reason(it.connect("bot", 0.0)) is Reason.QUOTA
    assert isinstance(it.connect("other", 0.0), Permit)
    assert reason(it.connect("third", 0.0)) is Reason.CONNECTIONS
    assert isinstance(first, Permit)
    first.release(Outcome.SERVED, 1.0)
    assert isinstance(it.connect("bot", 1.0), Permit)


def test_a_house_in_which_nobody_could_speak_takes_no_connection():
    it, permits = filled()
    assert reason(it.connect("", 0.0)) is Reason.UTTERANCES
    permits[0].release(Outcome.SERVED, 1.0)
    assert isinstance(it.connect("", 1.0), Permit)


def test_an_account_over_its_quota_does_not_spend_the_probe():
    it = house()
    it.quotas.declare("bot", Quota(utterances=1), 0.0)
    assert isinstance(it.admit(replace(ASK, account="bot"), 0.0), Permit)
    for _ in range(5):
        it.engine_failed("hibari", 0.0)
    assert reason(it.admit(replace(ASK, account="bot"), 3.0)) is Reason.QUOTA
    probe = it.admit(ASK, 3.0)
    assert isinstance(probe, Permit)
    assert probe.probe


def test_a_full_house_does_not_spend_the_probe():
    it, permits = filled()
    for _ in range(5):
        it.engine_failed("hibari", 0.0)
    assert reason(it.admit(ASK, 3.0)) is Reason.UTTERANCES
    permits[0].release(Outcome.SERVED, 3.0)
    probe = it.admit(ASK, 3.0)
    assert isinstance(probe, Permit)
    assert probe.probe


def probing(**fields: object) -> tuple[Controller, Permit]:
    it = house()
    for _ in range(5):
        it.engine_failed("hibari", 0.0)
    probe = it.admit(replace(ASK, **fields), 3.0)  # pyright: ignore[reportArgumentType]
    assert isinstance(probe, Permit)
    assert probe.probe
    return it, probe


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(Outcome.SERVED, State.NORMAL), (Outcome.DROPPED, State.OPEN), (Outcome.CANCELLED, State.HALF_OPEN)],
)
def test_a_probe_that_was_never_heard_of_is_resolved_when_it_is_given_back(outcome: Outcome, state: State):
    it, probe = probing()
    probe.release(outcome, 4.0)
    assert it.lines["hibari"].breaker.state is state


@pytest.mark.parametrize("outcome", Outcome)
def test_a_probe_that_ends_when_it_was_overdue_does_not_make_room_for_a_second(outcome: Outcome):
    it, overdue = probing()
    it.advance(13.0)
    probe = it.admit(ASK, 17.0)
    assert isinstance(probe, Permit)
    overdue.release(outcome, 17.1)
    assert reason(it.admit(ASK, 17.2)) is Reason.BREAKER
    it.first_audio(probe, 0.1, 17.3)
    assert isinstance(it.admit(ASK, 17.3), Permit)


def test_a_cached_probe_is_served_and_leaves_the_question_to_the_next():
    it, cached = probing(cached=True)
    it.first_audio(cached, 0.001, 3.001)
    assert it.lines["hibari"].breaker.state is State.HALF_OPEN
    probe = it.admit(ASK, 3.1)
    assert isinstance(probe, Permit)
    assert probe.probe


def test_a_connection_is_refused_by_the_breaker_if_no_engine_takes_anything():
    it = house()
    for _ in range(5):
        it.engine_failed("hibari", 0.0)
    refusal = it.connect("", 0.5)
    assert reason(refusal) is Reason.BREAKER
    assert isinstance(refusal, Refusal)
    assert refusal.retry_after == 1.5
    assert isinstance(it.connect("", 2.0), Permit)
    it.line("other", 0.0)
    assert not it.is_full(0.5)


def test_a_house_is_full_by_what_all_engines_speak_together():
    it, _ = filled()
    it.line("other", 0.0)
    assert it.is_full(0.0)
    assert reason(it.connect("", 0.0)) is Reason.UTTERANCES
    assert reason(it.admit(replace(ASK, engine="other"), 0.0)) is Reason.UTTERANCES


def test_the_first_audio_of_the_probe_closes_the_breaker():
    it = house()
    for _ in range(5):
        it.engine_failed("hibari", 0.0)
    assert reason(it.admit(ASK, 1.0)) is Reason.BREAKER
    probe = it.admit(ASK, 3.0)
    assert reason(it.admit(ASK, 3.0)) is Reason.BREAKER
    assert isinstance(probe, Permit)
    it.first_audio(probe, 0.05, 3.1)
    assert isinstance(it.admit(ASK, 3.1), Permit)
    probe.release(Outcome.DROPPED, 4.0)  # what happens to it later is another matter
    assert it.lines["hibari"].breaker.state is State.NORMAL


def test_a_newcomer_waits_until_the_engine_can_begin_without_harm():
    forecast = [0.05]
    it = Controller(Limits(), forecast=lambda _ask, _now: forecast[0])
    assert it.admit(ASK, 0.0) == Waiting(1)
    assert it.next(0.01) is None
    forecast[0] = 0.0
    ticket, answer = it.next(0.05) or (0, None)
    assert (ticket, type(answer)) == (1, Permit)
    assert it.next(0.05) is None


@pytest.mark.parametrize(
    ("forecast_s", "answer"), [(0.02, Permit), (0.021, Waiting), (0.133, Waiting), (0.134, Refusal)]
)
def test_the_forecast_decides_between_now_later_and_no(forecast_s: float, answer: type):
    it = Controller(Limits(), forecast=lambda _ask, _now: forecast_s)
    assert type(it.admit(replace(ASK, max_wait_s=0.2), 0.0)) is answer


def test_the_forecast_of_one_who_comes_later_counts_those_who_wait():
    asked = list[int]()
    it = Controller(Limits(), forecast=lambda ask, _now: asked.append(ask.characters) or 0.05)
    for ticket, characters in [(1, 30), (2, 5)]:
        it.admit(replace(ASK, ticket=ticket, characters=characters), 0.0)
    it.next(0.01)
    assert asked == [30, 35, 30]


def test_a_newcomer_does_not_overtake_those_who_wait():
    forecast = [0.05]
    it = Controller(Limits(), forecast=lambda _ask, _now: forecast[0])
    it.admit(replace(ASK, ticket=1), 0.0)
    forecast[0] = 0.0
    assert it.admit(replace(ASK, ticket=2), 0.01) == Waiting(2)
    assert [ticket for ticket, _ in (it.next(0.02) or (0, 0), it.next(0.02) or (0, 0))] == [1, 2]


def test_who_waits_for_a_place_has_it_when_one_is_given_back():
    it, permits = filled()
    assert it.admit(replace(ASK, ticket=50, max_wait_s=60.0), 0.0) == Waiting(50)
    assert it.next(1.0) is None
    permits[0].release(Outcome.SERVED, 1.0)
    ticket, answer = it.next(1.0) or (0, None)
    assert (ticket, type(answer), it.next(1.0)) == (50, Permit, None)


def test_a_newcomer_that_could_not_begin_in_time_is_refused_at_once_and_told_when():
    it = Controller(Limits(), forecast=lambda _ask, _now: 3.0)
    refusal = it.admit(ASK, 0.0)
    assert reason(refusal) is Reason.WAIT
    assert isinstance(refusal, Refusal)
    assert refusal.retry_after == 3.0
    assert it.admit(replace(ASK, max_wait_s=10.0), 2.0) == Waiting(1)  # who would rather wait may


def test_whose_time_has_passed_is_refused_once():
    it = Controller(Limits(), forecast=lambda _ask, _now: 0.05)
    it.admit(ASK, 0.0)
    assert it.next(0.19) is None
    ticket, answer = it.next(0.2) or (0, None)
    assert (ticket, reason(answer)) == (1, Reason.WAIT)
    assert (it.next(9.0), it.waiting) == (None, 0)


def test_what_is_withdrawn_is_never_answered():
    forecast = [0.05]
    it = Controller(Limits(), forecast=lambda _ask, _now: forecast[0])
    it.admit(ASK, 0.0)
    it.withdraw(1)
    forecast[0] = 0.0
    assert (it.next(1.0), it.waiting) == (None, 0)


def test_a_breaker_that_opens_meanwhile_refuses_those_that_wait():
    it = Controller(Limits(), forecast=lambda _ask, _now: 0.05)
    it.admit(ASK, 0.0)
    for _ in range(5):
        it.engine_failed("hibari", 0.01)
    ticket, answer = it.next(0.02) or (0, None)
    assert (ticket, reason(answer)) == (1, Reason.BREAKER)


def test_whose_quota_is_used_up_meanwhile_does_not_begin():
    forecast = [0.05]
    it = Controller(Limits(), forecast=lambda _ask, _now: forecast[0])
    it.quotas.declare("bot", Quota(utterances=1), 0.0)
    assert it.admit(replace(ASK, account="bot"), 0.0) == Waiting(1)
    assert isinstance(it.admit(replace(ASK, account="bot", newcomer=False), 0.0), Permit)
    forecast[0] = 0.0
    ticket, answer = it.next(0.01) or (0, None)
    assert (ticket, reason(answer)) == (1, Reason.QUOTA)


def test_no_more_of_an_account_wait_than_it_may_have_spoken():
    it = Controller(Limits(), forecast=lambda _ask, _now: 0.05)
    it.quotas.declare("bot", Quota(utterances=2), 0.0)
    answers = [it.admit(replace(ASK, ticket=ticket, account="bot"), 0.0) for ticket in range(3)]
    assert answers[:2] == [Waiting(0), Waiting(1)]
    assert reason(answers[2]) is Reason.QUOTA


def test_draining_turns_those_away_that_wait():
    it = Controller(Limits(), forecast=lambda _ask, _now: 0.05)
    it.admit(replace(ASK, max_wait_s=60.0), 0.0)
    it.draining = True
    ticket, answer = it.next(0.01) or (0, None)
    assert (ticket, reason(answer), it.waiting) == (1, Reason.DRAINING, 0)


def test_cached_speech_waits_for_no_engine():
    it = Controller(Limits(), forecast=lambda _ask, _now: 9.0)
    assert isinstance(it.admit(replace(ASK, cached=True), 0.0), Permit)


def test_cached_speech_does_not_queue_behind_those_who_wait_for_the_engine():
    it = Controller(Limits(), forecast=lambda _ask, _now: 0.05)
    assert it.admit(ASK, 0.0) == Waiting(1)
    assert isinstance(it.admit(replace(ASK, ticket=2, cached=True), 0.0), Permit)


def test_cached_speech_that_waits_for_a_place_is_not_held_up_by_one_who_needs_the_engine():
    it, permits = filled()
    it._forecast = lambda _ask, _now: 5.0
    it.admit(replace(ASK, ticket=50, priority=1, max_wait_s=60.0), 0.0)
    it.admit(replace(ASK, ticket=51, cached=True, max_wait_s=600.0), 0.0)
    permits[0].release(Outcome.SERVED, 1.0)
    ticket, answer = it.next(1.0) or (0, None)
    assert (ticket, type(answer), it.next(1.0)) == (51, Permit, None)


def test_cached_speech_does_not_hide_that_the_engine_is_late():
    it = Controller(Limits(), forecast=lambda _ask, _now: 0.3)
    for tick in range(20):
        it.admit(replace(ASK, ticket=tick, cached=tick % 2 == 1, max_wait_s=0.01), tick / 10)
    assert it.lines["hibari"].breaker.causes == {Cause.TIME}


def test_the_trouble_of_one_engine_is_not_anothers():
    it = house()
    for tick in range(20):
        it.memory("gpu", 0.95, tick / 5)
    assert reason(it.admit(replace(ASK, engine="gpu"), 4.0)) is Reason.BREAKER
    assert isinstance(it.admit(ASK, 4.0), Permit)
    assert it.lines["hibari"].breaker.causes == frozenset()
    assert it.lines["gpu"].breaker.causes == {Cause.MEMORY}


def test_running_utterances_of_a_shut_engine_go_on():
    it = house()
    permit = it.admit(ASK, 0.0)
    for tick in range(20):
        it.memory("hibari", 0.95, tick / 5)
    assert isinstance(it.admit(replace(ASK, newcomer=False), 4.0), Permit)
    assert isinstance(permit, Permit)
    permit.release(Outcome.SERVED, 5.0)


def test_the_last_tenth_is_for_accounts_under_their_fair_share():
    it = house(utterances=20)
    assert isinstance(it.admit(replace(ASK, account="modest"), 0.0), Permit)
    greedy = [it.admit(replace(ASK, account="greedy"), 0.0) for _ in range(19)]
    assert [type(answer) for answer in greedy] == [Permit] * 17 + [Refusal] * 2
    assert isinstance(it.admit(replace(ASK, account="modest"), 0.0), Permit)


def test_the_fair_share_of_one_engine_is_not_that_of_another():
    limits = Limits(utterances=400, limit=LimitSettings(initial=100, floor=1, ceiling=100))
    it = Controller(limits)
    for account, engine, count in [("a", "one", 50), ("b", "two", 91)]:
        for _ in range(count):
            it.admit(replace(ASK, account=account, engine=engine), 0.0)
    assert isinstance(it.admit(replace(ASK, account="a", engine="two"), 0.0), Permit)


def test_an_account_that_must_leave_room_does_not_hold_up_those_it_is_left_for():
    it = house(utterances=20)
    it.admit(replace(ASK, account="modest"), 0.0)
    for _ in range(17):
        it.admit(replace(ASK, account="greedy"), 0.0)
    it.admit(replace(ASK, ticket=50, account="greedy", priority=5, max_wait_s=60.0), 0.0)
    it.admit(replace(ASK, ticket=51, account="new", max_wait_s=60.0), 0.0)
    ticket, answer = it.next(0.01) or (0, None)
    assert (ticket, type(answer), it.next(0.01)) == (51, Permit, None)


@given(st.integers(1, 900), st.integers(1, 900), st.floats(0, 60))
def test_who_comes_back_after_the_time_told_is_let_in(rate: int, count: int, pause: float):
    it = house()
    it.quotas.declare("bot", Quota(characters_per_minute=rate), 0.0)
    it.take_characters("bot", rate, 0.0)
    refusal = it.take_characters("bot", count, pause)
    if refusal is not None:
        assert it.take_characters("bot", count, pause + refusal.retry_after) is None


def test_after_quiet_hours_a_full_house_tells_newcomers_to_come_back_soon():
    it = house()
    for hour in range(40):
        permit = it.admit(ASK, hour * 3600.0)
        assert isinstance(permit, Permit)
        permit.release(Outcome.SERVED, hour * 3600.0 + 5.0)
    for _ in range(10):
        it.admit(ASK, 150_000.0)
    refusal = it.admit(ASK, 150_000.0)
    assert isinstance(refusal, Refusal)
    assert refusal.retry_after <= 5.0


def test_contexts_are_counted_for_their_account():
    it = house()
    it.quotas.declare("bot", Quota(contexts=1), 0.0)
    assert it.open_context("bot", 0.0) is None
    assert reason(it.open_context("bot", 0.0)) is Reason.QUOTA
    it.close_context("bot", 0.0)
    assert it.open_context("bot", 0.0) is None


def test_it_is_to_be_looked_at_again_only_while_somebody_waits():
    it = Controller(Limits(), forecast=lambda _ask, _now: 0.05)
    assert it.wake_at(7.0) == float("inf")
    it.admit(ASK, 7.0)
    assert 7.0 < it.wake_at(7.0) <= 7.02


def test_every_refusal_is_counted_by_its_reason():
    it, _ = filled()
    for _ in range(3):
        it.admit(ASK, 0.0)
    assert {reason: count for reason, count in it.refusals.items() if count} == {Reason.UTTERANCES: 3}


class AnyTraffic(RuleBasedStateMachine):
    """Two engines, three accounts: never too many, nobody answered twice, nothing left over."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.forecast_s, self.tickets = 0.0, 0.0, 0
        limits = Limits(
            utterances=8,
            limit=LimitSettings(initial=6, floor=2, ceiling=8),
            queue=QueueSettings(waiting=3),
            breaker=BreakerSettings(failures=3),
        )
        self.it = Controller(limits, forecast=lambda _ask, _now: self.forecast_s)
        self.it.quotas.declare("a", Quota(utterances=3), 0.0)
        self.permits: list[Permit] = []
        self.waiting: set[int] = set()
        self.refused = 0

    @rule(
        engine=st.sampled_from(["cpu", "gpu"]),
        account=st.sampled_from("abc"),
        newcomer=st.booleans(),
        cached=st.booleans(),
    )
    def admit(self, engine: str, account: str, newcomer: bool, cached: bool) -> None:
        self.tickets += 1
        ask = Ask(self.tickets, engine, account, newcomer=newcomer, max_wait_s=1.0, cached=cached)
        line = self.it.line(engine, self.now)
        before, limit = line.active, line.limit.current
        match self.it.admit(ask, self.now):
            case Permit() as permit:
                assert not newcomer or (before + 1 <= limit and self.it.utterances <= 8)
                self.permits.append(permit)
            case Waiting(ticket):
                assert newcomer
                self.waiting.add(ticket)
            case Refusal():
                self.refused += 1

    @rule()
    def answer(self) -> None:
        while answered := self.it.next(self.now):
            self.waiting.remove(answered[0])
            if isinstance(answered[1], Permit):
                self.permits.append(answered[1])
            else:
                self.refused += 1

    @rule(pick=st.integers(0, 100), outcome=st.sampled_from(list(Outcome)))
    def release(self, pick: int, outcome: Outcome) -> None:
        if self.permits:
            self.permits.pop(pick % len(self.permits)).release(outcome, self.now)

    @rule(pick=st.integers(0, 100))
    def withdraw(self, pick: int) -> None:
        if self.waiting:
            ticket = sorted(self.waiting)[pick % len(self.waiting)]
            self.waiting.remove(ticket)
            self.it.withdraw(ticket)

    @rule(pick=st.integers(0, 100), wait=st.sampled_from([0.01, 0.4]))
    def first_audio(self, pick: int, wait: float) -> None:
        if self.permits:
            self.it.first_audio(self.permits[pick % len(self.permits)], wait, self.now)

    @rule(engine=st.sampled_from(["cpu", "gpu"]))
    def trouble(self, engine: str) -> None:
        self.it.engine_failed(engine, self.now)

    @rule(pressure=st.sampled_from([None, 0.1, 0.95]))
    def memory(self, pressure: float | None) -> None:
        self.it.memory("gpu", pressure, self.now)

    @rule(seconds=st.sampled_from([0.01, 0.5, 3.0]), forecast_s=st.sampled_from([0.0, 0.1, 5.0]))
    def wait(self, seconds: float, forecast_s: float) -> None:
        self.now += seconds
        self.forecast_s = forecast_s
        self.it.advance(self.now)

    @invariant()
    def bounded(self) -> None:
        assert self.it.utterances == len(self.permits) <= 8 + 1
        assert sum(self.it.refusals.values()) == self.refused
        assert self.it.waiting == len(self.waiting) <= 2 * 3
        assert self.it.quotas.usage("a").utterances <= 3

    def teardown(self) -> None:
        for permit in self.permits:
            permit.release(Outcome.SERVED, self.now)
        self.permits.clear()
        self.now += 100
        self.answer()
        for permit in self.permits:
            permit.release(Outcome.SERVED, self.now)
        assert (self.waiting, self.it.utterances) == (set(), 0)
        assert all(line.active == 0 and not line.by_account for line in self.it.lines.values())


AnyTraffic.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestAnyTraffic = AnyTraffic.TestCase


@pytest.mark.parametrize("cause", ["time", "memory"])
def test_downgrades_follow_the_causes_and_are_taken_back(cause: str):
    it = house()
    line = it.line("gpu", 0.0, max_slots=8)
    for tick in range(100):
        now = tick / 10
        if cause == "time":
            it.underrun("gpu", now)
        else:
            it.memory("gpu", 0.85, now)
        it.advance(now)
    assert (line.downgrades.width, it.realtime_only("gpu")) == ((8, True) if cause == "time" else (1, False))
    for tick in range(100, 250):
        it.memory("gpu", 0.1, tick / 10)
        it.advance(tick / 10)
    assert (line.downgrades.width, it.realtime_only("gpu"), it.cheaper_opus("gpu")) == (8, False, False)

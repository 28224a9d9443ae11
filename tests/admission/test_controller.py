"""The decision: in which order it asks, and that nobody is lost on the way."""

from dataclasses import replace

import pytest
from hypothesis import settings
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
    assert [type(it.admit(later, 0.0)) for _ in range(3)] == [Permit, Permit, Refusal]


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


def test_cached_speech_waits_for_no_engine():
    it = Controller(Limits(), forecast=lambda _ask, _now: 9.0)
    assert isinstance(it.admit(replace(ASK, cached=True), 0.0), Permit)


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

    @rule(engine=st.sampled_from(["cpu", "gpu"]), account=st.sampled_from("abc"), newcomer=st.booleans())
    def admit(self, engine: str, account: str, newcomer: bool) -> None:
        self.tickets += 1
        match self.it.admit(Ask(self.tickets, engine, account, newcomer=newcomer, max_wait_s=1.0), self.now):
            case Permit() as permit:
                self.permits.append(permit)
            case Waiting(ticket):
                assert newcomer
                self.waiting.add(ticket)

    @rule()
    def answer(self) -> None:
        while answered := self.it.next(self.now):
            self.waiting.remove(answered[0])
            if isinstance(answered[1], Permit):
                self.permits.append(answered[1])

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
        assert self.it.utterances == len(self.permits) <= 8 * 1.1 + 1
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

"""Who waits for the engine or for a place: for how long, in which order, and that everyone is answered once."""

from dataclasses import replace

import pytest

from voxgate.admission.answer import Ask, Outcome, Permit, Reason, Refusal, Waiting
from voxgate.admission.breaker import Cause
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


def test_a_listener_in_mid_conversation_is_served_before_a_newcomer_and_bounded_too():
    it, _ = filled()
    later = replace(ASK, newcomer=False)
    assert [type(it.admit(later, 0.0)) for _ in range(3)] == [Permit, Refusal, Refusal]


@pytest.mark.parametrize(("utterances", "beyond"), [(1, 1), (5, 1), (10, 1), (30, 3), (70, 7), (100, 10)])
def test_those_in_mid_conversation_may_use_a_tenth_beyond_and_at_least_one(utterances: int, beyond: int):
    it, _ = filled(utterances)
    answers = [it.admit(replace(ASK, newcomer=False), 0.0) for _ in range(utterances)]
    assert sum(isinstance(answer, Permit) for answer in answers) == beyond


def test_those_in_mid_conversation_may_use_a_tenth_beyond_the_adaptive_limit_too_and_then_wait():
    it = Controller(Limits())
    it.line("hibari", 0.0).limit.current = 20.0
    answers = [it.admit(replace(ASK, ticket=ticket, newcomer=False), 0.0) for ticket in range(23)]
    assert [type(answer) for answer in answers] == [Permit] * 22 + [Waiting]
    assert isinstance(answers[0], Permit)
    answers[0].release(Outcome.SERVED, 1.0)
    ticket, answer = it.next(1.0) or (0, None)
    assert (ticket, type(answer), it.next(1.0)) == (22, Permit, None)


def test_those_in_mid_conversation_wait_before_newcomers_rather_than_let_others_run_dry():
    forecast = [0.05]
    it = Controller(Limits(), forecast=lambda _ask, _now: forecast[0])
    assert it.admit(replace(ASK, ticket=1, priority=9), 0.0) == Waiting(1)
    assert it.admit(replace(ASK, ticket=2, newcomer=False), 0.0) == Waiting(2)
    forecast[0] = 0.0
    assert [ticket for ticket, _ in (it.next(0.1) or (0, 0), it.next(0.1) or (0, 0))] == [2, 1]


def test_one_in_mid_conversation_is_not_refused_before_two_seconds():
    it = Controller(Limits(), forecast=lambda _ask, _now: 9.0)
    assert it.admit(replace(ASK, newcomer=False), 0.0) == Waiting(1)
    assert it.next(1.99) is None
    ticket, answer = it.next(2.0) or (0, None)
    assert (ticket, reason(answer)) == (1, Reason.WAIT)


def test_one_in_mid_conversation_that_waits_is_served_though_the_engine_is_shut_or_the_server_draining():
    forecast = [0.05]
    it = Controller(Limits(), forecast=lambda _ask, _now: forecast[0])
    for ticket in (1, 2):
        it.admit(replace(ASK, ticket=ticket, newcomer=False), 0.0)
    for _ in range(5):
        it.engine_failed("hibari", 0.0)
    forecast[0] = 0.0
    first = it.next(0.1)
    it.draining = True
    second = it.next(0.2)
    assert [type(answered[1]) for answered in (first, second) if answered] == [Permit, Permit]


def test_as_many_may_wait_in_mid_conversation_as_may_wait_at_all():
    it = Controller(Limits(queue=QueueSettings(waiting=2)), forecast=lambda _ask, _now: 9.0)
    answers = [it.admit(replace(ASK, ticket=ticket, newcomer=False), 0.0) for ticket in range(3)]
    assert answers[:2] == [Waiting(0), Waiting(1)]
    assert reason(answers[2]) is Reason.QUEUE


def test_a_limit_between_two_numbers_is_the_lower():
    it = house(10)
    it.line("hibari", 0.0).limit.current = 9.5
    answers = [it.admit(replace(ASK, ticket=ticket), 0.0) for ticket in range(10)]
    assert [type(answer) for answer in answers] == [Permit] * 9 + [Refusal]


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
    assert isinstance(it.admit(replace(ASK, ticket=2, account="bot", newcomer=False, cached=True), 0.0), Permit)
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


def test_it_is_to_be_looked_at_again_only_while_somebody_waits():
    it = Controller(Limits(), forecast=lambda _ask, _now: 0.05)
    assert it.wake_at(7.0) == float("inf")
    it.admit(ASK, 7.0)
    assert 7.0 < it.wake_at(7.0) <= 7.02

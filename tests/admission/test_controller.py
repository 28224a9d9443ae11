"""The decision: in which order it asks, and that nobody is lost on the way."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.admission.answer import Ask, Outcome, Permit, Reason, Refusal
from voxgate.admission.breaker import Cause, State
from voxgate.admission.controller import Controller, Limits
from voxgate.admission.limit import LimitSettings
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


def test_who_has_far_more_than_its_share_crowds_and_nobody_else_does():
    it = house(utterances=40)
    permits = [it.admit(replace(ASK, ticket=ticket, account="greedy"), 0.0) for ticket in range(8)]
    assert [permit.crowding for permit in permits if isinstance(permit, Permit)] == [False] * 8  # nobody shares yet

    modest = it.admit(replace(ASK, ticket=20, account="modest"), 0.0)
    greedy = it.admit(replace(ASK, ticket=21, account="greedy"), 0.0)
    assert [each.crowding for each in (modest, greedy) if isinstance(each, Permit)] == [False, True]


@pytest.mark.parametrize(("account", "begins"), [("greedy", False), ("modest", True)])
def test_a_modest_account_begins_at_once_in_what_time_is_kept_for_all(account: str, begins: bool):
    it = Controller(Limits(), forecast=lambda ask, now: 0.0 if ask.ticket < 10 else 0.07)
    for ticket in range(8):
        assert isinstance(it.admit(replace(ASK, ticket=ticket, account="greedy"), 0.0), Permit)
    assert isinstance(it.admit(replace(ASK, ticket=9, account="modest"), 0.0), Permit)

    assert isinstance(it.admit(replace(ASK, ticket=20, account=account), 0.0), Permit) is begins


def test_what_a_lone_listener_is_slow_to_take_is_no_trouble_of_the_house():
    it = Controller(Limits())
    permit = it.admit(ASK, 0.0)
    assert isinstance(permit, Permit)
    for tick in range(300):
        it.underrun(permit, tick / 10)
        it.first_audio(permit, 9.0, tick / 10, held_up_s=tick / 10)
        it.advance(tick / 10)
    line = it.lines["hibari"]
    assert (line.limit.current, line.breaker.state) == (200, State.NORMAL)


def test_two_who_run_dry_are_trouble():
    it = Controller(Limits())
    for ticket in range(2):
        permit = it.admit(replace(ASK, ticket=ticket), 0.0)
        assert isinstance(permit, Permit)
        it.underrun(permit, 1.0)
    it.advance(1.0)
    it.advance(2.0)
    line = it.lines["hibari"]
    assert (line.limit.current, line.breaker.causes) == (180, {Cause.TIME})


def test_contexts_are_counted_for_their_account():
    it = house()
    it.quotas.declare("bot", Quota(contexts=1), 0.0)
    assert it.open_context("bot", 0.0) is None
    assert reason(it.open_context("bot", 0.0)) is Reason.QUOTA
    it.close_context("bot", 0.0)
    assert it.open_context("bot", 0.0) is None


def test_every_refusal_is_counted_by_its_reason():
    it, _ = filled()
    for _ in range(3):
        it.admit(ASK, 0.0)
    assert {reason: count for reason, count in it.refusals.items() if count} == {Reason.UTTERANCES: 3}


@pytest.mark.parametrize("cause", ["time", "memory"])
def test_downgrades_follow_the_causes_and_are_taken_back(cause: str):
    it = Controller(Limits(), forecast=lambda _ask, now: 0.5 if cause == "time" and now < 10 else 0.0)
    line = it.line("gpu", 0.0, max_slots=8)
    for tick in range(100):
        now = tick / 10
        if cause == "time":
            it.admit(replace(ASK, engine="gpu", ticket=tick), now)
        else:
            it.memory("gpu", 0.85, now)
        it.advance(now)
    assert (line.downgrades.width, it.realtime_only("gpu")) == ((8, True) if cause == "time" else (1, False))
    for tick in range(100, 250):
        it.memory("gpu", 0.1, tick / 10)
        it.advance(tick / 10)
    assert (line.downgrades.width, it.realtime_only("gpu"), it.cheaper_opus("gpu")) == (8, False, False)

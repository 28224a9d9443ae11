"""What stands before one engine; and how its shares are kept, through the controller."""

from dataclasses import replace

import pytest

from voxgate.admission.answer import Ask, Outcome, Permit, Refusal, Waiting
from voxgate.admission.breaker import BreakerSettings, Cause, Probe, State
from voxgate.admission.controller import HEADROOM_CHARACTERS, Controller, Limits
from voxgate.admission.limit import LimitSettings
from voxgate.admission.line import Line
from voxgate.admission.queue import QueueSettings


def line() -> Line:
    return Line(
        "hibari", breaker=BreakerSettings(), limit=LimitSettings(), queue=QueueSettings(), max_slots=None, now=0.0
    )


def test_who_uses_the_engine_is_counted_and_forgotten():
    it, ask = line(), Ask(1, "hibari", "bot")
    it.enter(ask, 0.0)
    assert (it.active, it.by_account) == (1, {"bot": 1})
    it.leave(Permit(lambda *_: None, ask), Outcome.SERVED, 1.0)
    assert (it.active, it.by_account, it.outcomes[Outcome.SERVED]) == (0, {}, 1)


def test_a_probe_that_ends_unheard_is_resolved_by_how_it_ended():
    for outcome, state in [
        (Outcome.SERVED, State.NORMAL), (Outcome.DROPPED, State.OPEN), (Outcome.CANCELLED, State.HALF_OPEN)
    ]:  # fmt: skip
        it, ask = line(), Ask(1, "hibari")
        for _ in range(5):
            it.breaker.failure(0.0)
        it.breaker.ask(2.0)
        it.enter(ask, 2.0)
        it.leave(Permit(lambda *_: None, ask, given_at=2.0, probe=True), outcome, 2.5)
        assert it.breaker.state is state


def test_a_cached_probe_says_nothing_of_the_engine():
    it, ask = line(), Ask(1, "hibari", cached=True)
    for _ in range(5):
        it.breaker.failure(0.0)
    it.breaker.ask(2.0)
    permit = Permit(lambda *_: None, ask, given_at=2.0, probe=True)
    it.resolve(permit, True, 2.5)
    assert (it.breaker.state, permit.probe) == (State.HALF_OPEN, False)
    assert isinstance(it.breaker.ask(2.5), Probe)  # another one may try


def speak(it: Line, listeners: int, seconds_each: float, begin: float, end: float) -> float:
    """So many at once, each followed by the next; leaves them speaking. When the last one began."""
    permit = Permit(lambda *_: None, Ask(1, "hibari"))
    for number in range(listeners):
        it.enter(Ask(1, "hibari"), begin + number * seconds_each / listeners)
    now = begin + seconds_each
    while now < end:
        it.leave(permit, Outcome.SERVED, now)
        it.enter(Ask(1, "hibari"), now)
        now += seconds_each / listeners
    return now


def test_the_pace_of_endings_is_that_of_late():
    it = line()
    assert it.seconds_per_release(0.0) == 1.0  # nothing known yet
    now = speak(it, 10, 0.5, 0.0, 20.0)
    assert it.seconds_per_release(now) == pytest.approx(0.05, rel=0.1)
    assert it.seconds_per_release(now + 60.0) > 1.0  # nobody has ended for a while


def test_the_pace_of_a_full_house_is_not_that_of_the_quiet_hours_before():
    it, permit = line(), Permit(lambda *_: None, Ask(1, "hibari"))
    for hour in range(40):
        it.enter(Ask(1, "hibari"), hour * 3600.0)
        it.leave(permit, Outcome.SERVED, hour * 3600.0 + 5.0)
    for _ in range(100):
        it.enter(Ask(1, "hibari"), 200_000.0)
    assert it.seconds_per_release(200_000.0) == pytest.approx(0.05, rel=0.1)


def test_fair_shares_are_equal_among_those_this_engine_speaks_for():
    it = Line(
        "hibari",
        breaker=BreakerSettings(),
        limit=LimitSettings(initial=100, ceiling=100),
        queue=QueueSettings(),
        max_slots=None,
        now=0.0,
    )
    for _ in range(60):
        it.enter(Ask(1, "hibari", "greedy"), 0.0)
    assert not it.is_over_fair_share("greedy")  # alone
    it.enter(Ask(1, "hibari", "modest"), 0.0)
    assert [it.is_over_fair_share(account) for account in ("greedy", "modest", "new")] == [True, False, False]
    assert set(it.by_account) == {"greedy", "modest"}  # asking leaves no trace


def test_what_is_given_up_is_told_in_words():
    it = Line("gpu", breaker=BreakerSettings(), limit=LimitSettings(), queue=QueueSettings(), max_slots=8, now=0.0)
    it.downgrades.advance({Cause.TIME, Cause.MEMORY}, 0.0)
    assert it.given_up == ["cheaper Opus", "batch of 4"]
    assert it.told(3.0) == {
        "state": "normal", "causes": [], "for_s": 3.0, "given_up": ["cheaper Opus", "batch of 4"], "active": 0,
        "limit": 200, "waiting": 0,
    }  # fmt: skip


def test_next_is_who_was_heard_before_then_the_highest_priority_then_the_account_with_the_least_then_the_oldest():
    it = line()
    for _ in range(5):
        it.enter(Ask(0, "hibari", "greedy"), 0.0)
    asks = [
        Ask(1, "hibari", "greedy"),
        Ask(2, "hibari", "modest"),
        Ask(3, "hibari", "modest"),
        Ask(4, "hibari", "greedy", priority=1),
        Ask(5, "hibari", "greedy", newcomer=False),
    ]
    for ask in asks:
        it.wait(ask, 9.0, 0.0)
    assert [ask.ticket for ask in it.ranked()] == [5, 4, 2, 3, 1]


def test_who_waits_counts_and_is_forgotten():
    it = line()
    it.wait(Ask(1, "hibari", "bot"), 9.0, 0.0)
    assert (it.waiting_by_account, len(it.room)) == ({"bot": 1}, 1)
    it.withdraw(1)
    it.withdraw(1)
    assert (it.waiting_by_account, len(it.room), it.asks) == ({}, 0, {})


def test_shares_are_of_all_that_is_spoken_or_waits():
    it = line()
    assert it.share_of("a") == 1.0
    for _ in range(3):
        it.enter(Ask(0, "hibari", "a"), 0.0)
    assert it.share_of("a") == 1.0
    it.wait(Ask(1, "hibari", "b"), 9.0, 0.0)
    assert (it.share_of("a"), it.share_of("b"), it.share_of("c")) == (1.5, 0.5, 0.0)


# --- shares, through the controller -----------------------------------------------------------------------------------

ASK = Ask(1, "hibari")


def twenty() -> Controller:
    return Controller(Limits(utterances=20, limit=LimitSettings(initial=20, floor=1, ceiling=20)))


def crowded(forecast_s: float) -> tuple[Controller, list[int]]:
    """Five of "greedy" and one of "other" are spoken, then the engine is so busy; and the characters it is asked of."""
    asked, begun = list[int](), list[bool]()
    it = Controller(Limits(), forecast=lambda ask, _now: asked.append(ask.characters) or (forecast_s if begun else 0.0))
    for ticket, account in enumerate(["greedy"] * 5 + ["other"]):
        it.admit(replace(ASK, ticket=ticket, account=account), 0.0)
    begun.append(True)
    asked.clear()
    return it, asked


def test_an_account_over_its_share_leaves_time_for_others():
    it, asked = crowded(0.0)
    for account in ("greedy", "modest"):
        it.admit(replace(ASK, ticket=10, account=account, characters=30), 0.0)
    assert asked == [30 + HEADROOM_CHARACTERS, 30]


def test_a_modest_account_may_wait_though_others_are_refused():
    it, _ = crowded(0.1)
    assert isinstance(it.admit(replace(ASK, ticket=10, account="greedy", max_wait_s=0.05), 0.0), Refusal)
    assert isinstance(it.admit(replace(ASK, ticket=11, account="greedy", max_wait_s=0.2), 0.0), Waiting)
    it.withdraw(11)
    it.lines["hibari"].room.verdict(9.0, 0.2, 0.0)  # somebody is refused
    assert isinstance(it.admit(replace(ASK, ticket=12, account="greedy"), 0.1), Refusal)
    assert it.admit(replace(ASK, ticket=13, account="modest"), 0.1) == Waiting(13)


def test_a_modest_account_does_not_wait_for_those_it_goes_before():
    it, asked = crowded(0.1)
    for ticket in (10, 11):
        it.admit(replace(ASK, ticket=ticket, account="greedy", characters=50, max_wait_s=9.0), 0.0)
    asked.clear()
    it.admit(replace(ASK, ticket=12, account="modest", characters=30), 0.0)
    assert asked == [30]


def test_the_last_tenth_is_for_accounts_under_their_fair_share():
    it = twenty()
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
    waits = [0.0]
    limits = Limits(utterances=20, limit=LimitSettings(initial=20, floor=1, ceiling=20))
    it = Controller(limits, forecast=lambda ask, now: waits[0])
    it.admit(replace(ASK, account="modest"), 0.0)
    for _ in range(17):
        it.admit(replace(ASK, account="greedy"), 0.0)
    waits[0] = 1.0
    it.admit(replace(ASK, ticket=50, account="greedy", priority=5, max_wait_s=60.0), 0.0)
    it.admit(replace(ASK, ticket=51, account="new", max_wait_s=60.0), 0.0)
    waits[0] = 0.0
    ticket, answer = it.next(0.01) or (0, None)
    assert (ticket, type(answer), it.next(0.01)) == (51, Permit, None)

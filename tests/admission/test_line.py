import pytest

from voxgate.admission.answer import Ask, Outcome, Permit
from voxgate.admission.breaker import BreakerSettings, Cause, Probe, State
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

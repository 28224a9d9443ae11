from voxgate.admission.answer import Ask, Outcome, Permit
from voxgate.admission.breaker import BreakerSettings, State
from voxgate.admission.limit import LimitSettings
from voxgate.admission.line import Line
from voxgate.admission.queue import QueueSettings


def line() -> Line:
    return Line(
        "hibari", breaker=BreakerSettings(), limit=LimitSettings(), queue=QueueSettings(), max_slots=None, now=0.0
    )


def test_who_uses_the_engine_is_counted_and_forgotten():
    it, ask = line(), Ask(1, "hibari", "bot")
    it.enter(ask)
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
        it.enter(ask)
        it.leave(Permit(lambda *_: None, ask, probe=True), outcome, 2.5)
        assert it.breaker.state is state


def test_the_pace_of_endings_is_that_of_late():
    it, ask = line(), Ask(1, "hibari")
    assert it.seconds_per_release(0.0) == 1.0  # nothing known yet
    for number in range(100):
        it.enter(ask)
        it.leave(Permit(lambda *_: None, ask), Outcome.SERVED, number / 20)
    assert abs(it.seconds_per_release(5.0) - 0.05) < 0.005
    assert it.seconds_per_release(37.0) > 1.0  # nobody has ended for a while

import copy

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from voxgate.synth.cache.breaker import DWELL_S, FAILURES, Breaker

FIRST, LONGEST = DWELL_S


def attempt(breaker: Breaker, now: float) -> int:
    made = breaker.attempt(now)
    assert made is not None
    return made


def opened(now: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(FAILURES):
        breaker.failed(attempt(breaker, now), now)
    return breaker


def test_failures_in_a_row_open_it():
    assert not opened().closed
    assert opened().attempt(FIRST - 0.01) is None


def test_a_success_between_failures_keeps_it_closed():
    breaker = Breaker()
    for _ in range(FAILURES):
        breaker.failed(attempt(breaker, 0.0), 0.0)
        breaker.succeeded(attempt(breaker, 0.0))

    assert breaker.closed


def test_one_probe_goes_out_and_its_success_closes_it():
    breaker = opened()
    probe = attempt(breaker, FIRST)

    assert breaker.attempt(FIRST) is None
    breaker.succeeded(probe)
    assert breaker.closed
    assert attempt(breaker, FIRST) == attempt(breaker, FIRST)


def test_a_failed_probe_doubles_the_dwell_up_to_a_bound():
    breaker, at = opened(), FIRST
    for n in range(1, 10):
        breaker.failed(attempt(breaker, at), at)
        dwell = min(FIRST * 2**n, LONGEST)

        assert breaker.attempt(at + 0.99 * dwell) is None
        at += dwell


def test_a_probe_of_which_nothing_is_heard_is_followed_by_another():
    breaker = opened()
    lost = attempt(breaker, FIRST)
    second = attempt(breaker, 2 * FIRST)

    breaker.succeeded(lost)
    assert not breaker.closed
    breaker.succeeded(second)
    assert breaker.closed


def test_what_was_asked_before_it_opened_changes_nothing():
    breaker = Breaker()
    early = attempt(breaker, 0.0)
    for _ in range(FAILURES):
        breaker.failed(attempt(breaker, 0.0), 0.0)

    breaker.succeeded(early)

    assert not breaker.closed


class Store(RuleBasedStateMachine):
    """Attempts that succeed, fail, or are never heard of again, in any order and at any time."""

    attempts = Bundle("attempts")

    def __init__(self):
        super().__init__()
        self.breaker = Breaker()
        self.now = 0.0

    @rule(seconds=st.floats(0, 2 * LONGEST))
    def wait(self, seconds: float):
        self.now += seconds

    @rule(target=attempts)
    def ask(self):
        made = self.breaker.attempt(self.now)
        if made is None:
            assert not self.breaker.closed
            return multiple()
        if not self.breaker.closed:
            assert self.breaker.attempt(self.now) is None
        return made

    @rule(made=attempts)
    def succeed(self, made: int):
        self.breaker.succeeded(made)

    @rule(made=attempts)
    def fail(self, made: int):
        self.breaker.failed(made, self.now)

    @invariant()
    def it_is_asked_again_within_the_longest_dwell(self):
        assert copy.deepcopy(self.breaker).attempt(self.now + LONGEST) is not None


TestStore = Store.TestCase
TestStore.settings = settings(max_examples=50, deadline=None)

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from voxgate.admission.queue import QueueSettings, WaitingRoom


def room(**changes: float) -> WaitingRoom:
    return WaitingRoom(QueueSettings(**changes))  # pyright: ignore[reportArgumentType]


def test_what_would_not_begin_in_time_is_refused_now():
    it = room()
    assert it.verdict(0.19, 0.2, 0.0) is None
    assert it.verdict(0.21, 0.2, 0.0) == "wait"


def test_a_full_room_refuses_whatever_is_predicted():
    it = room(waiting=1)
    it.join(1, 9.0, 0.0)
    assert it.verdict(0.0, 9.0, 0.0) == "queue"


def test_while_newcomers_are_refused_the_newest_may_hardly_wait():
    it = room()
    assert it.verdict(0.5, 0.2, 0.0) == "wait"
    assert it.verdict(0.1, 0.2, 0.4) == "wait"  # would have been let in a second ago
    assert it.verdict(0.01, 0.2, 0.4) is None
    assert it.verdict(0.1, 0.2, 0.9) is None  # calm again


def test_one_who_would_hardly_wait_in_any_case_says_nothing_of_the_house():
    it = room()
    assert it.verdict(0.05, 0.0, 0.0) == "wait"
    assert it.verdict(0.05, 0.199, 0.0) is None
    assert it.allowed_wait(0.2, 0.0) == 0.2
    assert it.verdict(0.25, 0.2, 0.0) == "wait"
    assert it.allowed_wait(0.2, 0.0) == pytest.approx(0.02)


def test_a_queue_that_stands_lets_newcomers_wait_only_shortly():
    it = room()
    it.join(1, 9.0, 0.0)
    assert it.verdict(0.1, 0.2, 0.09) is None
    assert it.allowed_wait(0.2, 0.1) == pytest.approx(0.02)
    it.leave(1)
    assert it.allowed_wait(0.2, 0.2) == 0.2


def test_a_patient_one_waits_as_long_as_it_likes_whoever_else_was_refused():
    it = room()
    assert it.verdict(0.5, 0.2, 0.0) == "wait"
    assert it.verdict(0.19, 0.2, 0.1, patient=True) is None
    assert it.allowed_wait(0.2, 0.1, patient=True) == 0.2
    assert it.verdict(0.21, 0.2, 0.1, patient=True) == "wait"


def test_one_who_waited_in_vain_shows_that_newcomers_would_too():
    it = room()
    it.join(1, 1.0, 0.9)
    assert it.allowed_wait(0.2, 0.95) == 0.2
    assert it.expire(1.0) == 1
    assert it.allowed_wait(0.2, 1.0) == pytest.approx(0.02)


def test_whose_deadline_has_passed_is_told_once():
    it = room()
    it.join(1, 2.0, 0.0)
    it.join(2, 1.0, 0.0)
    it.join(3, 1.5, 0.0)
    it.leave(3)
    assert [it.expire(now) for now in (0.99, 1.0, 1.6, 1.99, 2.0, 9.0)] == [None, 2, None, None, 1, None]


def test_who_joins_again_has_the_new_deadline_only():
    it = room()
    it.join(9, 99.0, 0.0)
    it.join(1, 1.0, 0.0)
    it.leave(1)
    it.join(1, 5.0, 0.5)
    assert [it.expire(2.0), it.expire(4.99), it.expire(5.0)] == [None, None, 1]


def test_those_that_join_and_leave_leave_nothing_behind():
    it = room()
    it.join(0, 1e9, 0.0)
    for ticket in range(1, 5_000):
        it.join(ticket, 60.0, 0.0)
        it.leave(ticket)
    assert len(it._deadlines) < 100
    assert [it.expire(1e9 - 1), it.expire(1e9)] == [None, 0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"waiting": -1}, "waiting"),
        ({"interval_s": 0}, "interval_s"),
        ({"standing_share": 0}, "share"),
        ({"calm_s": float("nan")}, "calm_s must be over 0"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(changes: dict[str, float], said: str):
    with pytest.raises(ValueError, match=said):
        room(**changes)


class AnyOrder(RuleBasedStateMachine):
    """Everybody who joins leaves exactly once."""

    def __init__(self) -> None:
        super().__init__()
        self.it, self.now, self.tickets = room(), 0.0, 0
        self.inside: dict[int, float] = {}

    @rule(wait=st.floats(0, 5))
    def join(self, wait: float) -> None:
        self.tickets += 1
        self.inside[self.tickets] = self.now + wait
        self.it.join(self.tickets, self.now + wait, self.now)

    @precondition(lambda self: self.inside)
    @rule(data=st.data(), wait=st.floats(0, 5))
    def leave_and_join_again(self, data: st.DataObject, wait: float) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.inside)))
        self.leave(ticket)
        self.inside[ticket] = self.now + wait
        self.it.join(ticket, self.now + wait, self.now)

    @rule(ticket=st.integers(0, 50))
    def leave(self, ticket: int) -> None:
        self.it.leave(ticket)
        self.inside.pop(ticket, None)

    @rule(seconds=st.floats(0, 3))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        while (ticket := self.it.expire(self.now)) is not None:
            assert self.inside.pop(ticket) <= self.now
        assert all(deadline > self.now for deadline in self.inside.values())

    @invariant()
    def counts(self) -> None:
        assert len(self.it) == len(self.inside)


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAnyOrder = AnyOrder.TestCase

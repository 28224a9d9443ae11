import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from voxgate.admission.controller import Controller, Limits, Outcome, Permit, Reason, Refusal


def test_a_permit_given_back_makes_room():
    controller = Controller(Limits(utterances=1))
    permit = controller.admit(backlog=0, newcomer=True)
    assert isinstance(permit, Permit)

    refusal = controller.admit(backlog=0, newcomer=True)
    permit.release(Outcome.SERVED)

    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.UTTERANCES
    assert refusal.retry_after > 0
    assert isinstance(controller.admit(backlog=0, newcomer=True), Permit)


def test_a_listener_in_mid_conversation_is_served_before_a_newcomer():
    controller = Controller(Limits(utterances=10))
    for _ in range(10):
        controller.admit(backlog=0, newcomer=True)

    assert isinstance(controller.admit(backlog=0, newcomer=True), Refusal)
    assert isinstance(controller.admit(backlog=0, newcomer=False), Permit)


def test_even_those_in_conversation_are_bounded():
    controller = Controller(Limits(utterances=10))
    answers = [controller.admit(backlog=0, newcomer=False) for _ in range(13)]

    assert [type(answer) for answer in answers] == [Permit] * 12 + [Refusal]


def test_a_full_backlog_refuses():
    answer = Controller(Limits(segments=5)).admit(backlog=5, newcomer=False)

    assert isinstance(answer, Refusal)
    assert answer.reason is Reason.SEGMENTS


def test_draining_refuses_newcomers_and_serves_those_being_served():
    controller = Controller(Limits())
    controller.draining = True

    assert isinstance(controller.connect(), Refusal)
    assert isinstance(controller.admit(backlog=0, newcomer=True), Refusal)
    assert isinstance(controller.admit(backlog=0, newcomer=False), Permit)


def test_a_second_release_is_a_fault():
    permit = Controller(Limits()).connect()
    assert isinstance(permit, Permit)
    permit.release(Outcome.SERVED)

    with pytest.raises(RuntimeError):
        permit.release(Outcome.SERVED)


class Counting(RuleBasedStateMachine):
    """However permits come and go, what is counted is what is out, and never more than the limit."""

    permits = Bundle("permits")

    def __init__(self) -> None:
        super().__init__()
        self.controller = Controller(Limits(connections=3))
        self.out = 0

    @rule(target=permits)
    def connect(self):
        answer = self.controller.connect()
        assert isinstance(answer, Permit) is (self.out < 3)
        self.out += isinstance(answer, Permit)
        return answer

    @rule(answer=consumes(permits), outcome=st.sampled_from(Outcome))
    def release(self, answer: Permit | Refusal, outcome: Outcome):
        if isinstance(answer, Permit):
            answer.release(outcome)
            self.out -= 1

    @invariant()
    def counted(self):
        assert self.controller.connections == self.out <= 3


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=50, stateful_step_count=30)

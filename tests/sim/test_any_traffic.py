"""Whatever comes and whatever breaks, in any order: nobody is lost, and nothing is left over."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from voxgate.admission.answer import Ask, Outcome, Permit, Refusal, Waiting
from voxgate.admission.breaker import BreakerSettings
from voxgate.admission.controller import Controller, Limits
from voxgate.admission.limit import LimitSettings
from voxgate.admission.queue import QueueSettings
from voxgate.admission.quotas import Quota


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

    @rule(pick=st.integers(0, 100))
    def underrun(self, pick: int) -> None:
        if self.permits:
            self.it.underrun(self.permits[pick % len(self.permits)], self.now)

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
        for line in self.it.lines.values():
            assert (line.active, line.by_account, line.waiting_by_account) == (0, {}, {})


AnyTraffic.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestAnyTraffic = AnyTraffic.TestCase

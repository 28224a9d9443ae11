import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from voxgate.admission.quotas import REMEMBERED, Quota, Quotas, Usage


def quotas(**quota: int) -> Quotas:
    it = Quotas()
    it.declare("bot", Quota(**quota), 0.0)
    return it


@pytest.mark.parametrize(
    ("quota", "take", "give"),
    [
        ("connections", "connect", "disconnect"),
        ("contexts", "open_context", "close_context"),
        ("utterances", "begin_utterance", "end_utterance"),
    ],
)
def test_what_is_counted_is_bounded_and_comes_back(quota: str, take: str, give: str):
    it = quotas(**{quota: 2})
    ask = it.may_speak if quota == "utterances" else getattr(it, take)
    getattr(it, take)("bot", 0.0)
    getattr(it, take)("bot", 0.0)

    exceeded = ask("bot", 0.0)
    getattr(it, give)("bot", 0.0)

    assert exceeded is not None
    assert "2" in exceeded.message
    assert exceeded.retry_after_s > 0
    assert ask("bot", 0.0) is None


def test_an_account_without_quota_is_never_refused():
    it = Quotas()
    assert [it.connect("", 0.0) for _ in range(1000)] == [None] * 1000
    assert it.characters("", 10**9, 0.0) is None


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 900)), max_size=40))
def test_the_hint_for_characters_is_honest_and_the_rate_is_kept(asks: list[tuple[float, int]]):
    it, now, taken = quotas(characters_per_minute=600), 0.0, 0
    for pause, count in asks:
        now += pause
        exceeded = it.characters("bot", count, now)
        if exceeded is not None:
            now += exceeded.retry_after_s
            assert it.characters("bot", count, now) is None
        taken += count
        # Everything taken so far fits the full minute of the start, the rate, and one text that was paid off later.
        assert taken <= 600 + now * 10 + 900 + 1e-3


def test_a_text_longer_than_a_minutes_worth_is_paid_off_afterwards():
    it = quotas(characters_per_minute=600)
    assert it.characters("bot", 1200, 0.0) is None
    exceeded = it.characters("bot", 10, 0.0)
    assert exceeded is not None
    assert exceeded.retry_after_s == pytest.approx(61)


def test_usage_elsewhere_counts_here():
    one, other = quotas(connections=2, characters_per_minute=600), quotas(connections=2, characters_per_minute=600)
    one.connect("bot", 0.0)
    one.characters("bot", 500, 0.0)
    for name, usage in one.take_changes().items():
        other.others(name, usage, 0.0)

    assert one.take_changes() == {}
    assert other.usage("bot") == Usage(connections=1, characters=500)
    assert other.connect("bot", 0.0) is None
    assert other.connect("bot", 0.0) is not None
    assert other.characters("bot", 200, 0.0) is not None
    assert other.characters("bot", 100, 0.0) is None
    other.others("bot", Usage(connections=1, characters=500), 0.0)  # told again: taken out once
    assert other.characters("bot", 1, 0.2) is None


def test_a_change_is_announced_once_until_it_is_taken():
    it, calls = Quotas(), []
    it.on_change = lambda: calls.append(1)
    it.connect("a", 0.0)
    it.connect("b", 0.0)
    assert (len(calls), set(it.take_changes())) == (1, {"a", "b"})
    it.disconnect("a", 0.0)
    it.tell_all_again()
    assert set(it.take_changes()) == {"a", "b"}


def test_those_that_wait_use_the_quota_up_too():
    it = quotas(utterances=3)
    it.begin_utterance("bot", 0.0)
    assert it.may_speak("bot", 0.0, waiting=1) is None
    assert it.may_speak("bot", 0.0, waiting=2) is not None


def test_accounts_without_number_do_not_fill_the_memory_and_used_ones_are_kept():
    it = Quotas()
    it.declare("bot", Quota(connections=1), 0.0)
    it.connect("bot", 0.0)
    for number in range(3 * REMEMBERED):
        it.declare(f"address {number}", Quota(connections=1), 0.0)
    assert len(it._accounts) <= REMEMBERED
    assert it.connect("bot", 0.0) is not None


def test_being_forgotten_buys_no_fresh_minute():
    it = quotas(characters_per_minute=600)
    assert it.characters("bot", 600, 0.0) is None
    for number in range(REMEMBERED):
        it.declare(f"address {number}", Quota(characters_per_minute=600), 0.0)
        it.characters(f"address {number}", 600, 0.0)
    assert "bot" not in it._accounts
    it.declare("bot", Quota(characters_per_minute=600), 0.0)
    assert it.characters("bot", 10, 0.5) is not None
    assert it.characters("bot", 10, 1.0) is None


def test_those_whose_minutes_are_full_are_forgotten_first():
    it = quotas(characters_per_minute=600)
    it.characters("bot", 600, 0.0)
    for number in range(2 * REMEMBERED):
        it.declare(f"address {number}", Quota(characters_per_minute=600), 0.0)
    assert "bot" in it._accounts
    assert it.characters(f"address {2 * REMEMBERED - 1}", 600, 0.0) is None


def test_debts_of_one_that_was_forgotten_are_nobody_elses():
    it = quotas(characters_per_minute=600)
    for number in range(REMEMBERED):
        it.declare(f"address {number}", Quota(characters_per_minute=600), 0.0)
        it.characters(f"address {number}", 60_000, 0.0)
    it.declare("new", Quota(characters_per_minute=600), 60.0)
    assert it.characters("new", 600, 60.0) is None


def test_a_rate_that_is_changed_keeps_what_was_spent():
    it = quotas(characters_per_minute=600)
    it.characters("bot", 600, 0.0)
    it.declare("bot", Quota(characters_per_minute=1200), 30.0)
    assert it.characters("bot", 301, 30.0) is not None
    assert it.characters("bot", 300, 30.0) is None


def test_an_account_that_gets_a_rate_begins_with_a_full_minute():
    it = quotas(connections=1)
    it.characters("bot", 5_000, 0.0)
    it.declare("bot", Quota(characters_per_minute=600), 0.0)
    assert it.characters("bot", 600, 0.0) is None
    assert it.characters("bot", 1, 0.0) is not None


def test_a_ledger_that_tells_us_of_ourselves_makes_no_debt():
    it = quotas(characters_per_minute=600)
    for hour in range(100):
        assert it.characters("bot", 600, hour * 3600.0) is None
    it.others("bot", Usage(), 360_000.0)
    it.tell_all_again()  # the connection to the ledger was lost: it takes us for a new gateway beside the old one
    it.others("bot", Usage(characters=60_000), 360_000.0)
    assert it.characters("bot", 10, 360_000.5) is not None
    assert it.characters("bot", 600, 360_060.0) is None


def test_what_was_sent_elsewhere_since_ever_empties_one_minute_and_no_more():
    it = quotas(characters_per_minute=600)  # a gateway that has just been started again
    it.others("bot", Usage(characters=100_000), 0.0)
    assert it.characters("bot", 10, 0.5) is not None
    assert it.characters("bot", 10, 1.0) is None
    it.others("bot", Usage(characters=100_500), 61.0)  # from now on each one counts
    assert it.characters("bot", 100, 61.0) is None
    assert it.characters("bot", 1, 61.0) is not None


def test_an_account_told_of_before_it_came_has_its_minute_less_what_it_sent_elsewhere():
    it = Quotas()
    it.others("bot", Usage(connections=1, characters=500), 0.0)
    it.declare("bot", Quota(characters_per_minute=600), 0.0)
    assert it.characters("bot", 101, 0.0) is not None
    assert it.characters("bot", 100, 0.0) is None


def test_an_account_told_of_long_before_it_came_has_its_whole_minute():
    it = Quotas()
    it.others("bot", Usage(characters=100_000), 0.0)
    it.declare("bot", Quota(characters_per_minute=600), 60.0)
    assert it.characters("bot", 600, 60.0) is None


@pytest.mark.parametrize("quota", ["connections", "contexts", "utterances", "characters_per_minute"])
def test_a_quota_of_nothing_is_refused_by_name(quota: str):
    with pytest.raises(ValueError, match=f"{quota} must be at least 1"):
        Quota(**{quota: 0})


class AnyUse(RuleBasedStateMachine):
    """Two gateways that are told of each other at once: never more than the quota in sum, and nothing is lost."""

    NAMES = ("a", "b")
    QUOTA = Quota(connections=3, contexts=2, utterances=2, characters_per_minute=600)

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.gateways = (Quotas(), Quotas())
        self.sent: dict[str, int] = dict.fromkeys(self.NAMES, 0)
        for it in self.gateways:
            for name in self.NAMES:
                it.declare(name, self.QUOTA, 0.0)
        self.used = {(it, name): [0, 0, 0] for it in range(2) for name in self.NAMES}

    def tell(self) -> None:
        for one, other in (self.gateways, self.gateways[::-1]):
            for name, usage in one.take_changes().items():
                other.others(name, usage, self.now)

    @rule(seconds=st.sampled_from([0.0, 0.5, 7.0, 90.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(gateway=st.integers(0, 1), name=st.sampled_from(NAMES), kind=st.integers(0, 2))
    def take(self, gateway: int, name: str, kind: int) -> None:
        it = self.gateways[gateway]
        bound = (self.QUOTA.connections, self.QUOTA.contexts, self.QUOTA.utterances)[kind]
        everywhere = self.used[0, name][kind] + self.used[1, name][kind]
        exceeded = (it.connect, it.open_context, it.may_speak)[kind](name, self.now)
        assert (exceeded is not None) == (everywhere == bound)
        if exceeded is None:
            if kind == 2:
                it.begin_utterance(name, self.now)
            self.used[gateway, name][kind] += 1
        self.tell()

    @precondition(lambda self: any(any(counts) for counts in self.used.values()))
    @rule(data=st.data())
    def give(self, data: st.DataObject) -> None:
        held = [(key, kind) for key, counts in self.used.items() for kind in range(3) if counts[kind]]
        (gateway, name), kind = data.draw(st.sampled_from(held))
        it = self.gateways[gateway]
        (it.disconnect, it.close_context, it.end_utterance)[kind](name, self.now)
        self.used[gateway, name][kind] -= 1
        self.tell()

    @rule(gateway=st.integers(0, 1), name=st.sampled_from(NAMES), count=st.integers(1, 600))
    def send(self, gateway: int, name: str, count: int) -> None:
        exceeded = self.gateways[gateway].characters(name, count, self.now)
        if exceeded is not None:
            assert exceeded.retry_after_s > 0
            self.now += exceeded.retry_after_s
            assert self.gateways[gateway].characters(name, count, self.now) is None
        self.sent[name] += count
        self.tell()

    @invariant()
    def sums_are_kept(self) -> None:
        for name in self.NAMES:
            assert self.sent[name] <= 600 + self.now * 10 + 1e-3
            for number, it in enumerate(self.gateways):
                assert it._accounts[name].mine.utterances == self.used[number, name][2]
                usage = it.usage(name)
                counts = [self.used[0, name][kind] + self.used[1, name][kind] for kind in range(3)]
                assert [usage.connections, usage.contexts, usage.utterances, usage.characters] == [
                    *counts,
                    self.sent[name],
                ]


AnyUse.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAnyUse = AnyUse.TestCase

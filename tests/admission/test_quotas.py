import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_fair_shares_are_equal_among_those_that_speak():
    it = Quotas()
    for _ in range(60):
        it.begin_utterance("greedy", 0.0)
    assert not it.over_fair_share("greedy", 100, 0.0)  # alone
    it.begin_utterance("modest", 0.0)
    assert it.over_fair_share("greedy", 100, 0.0)
    assert not it.over_fair_share("modest", 100, 0.0)
    assert not it.over_fair_share("new", 100, 0.0)
    it.end_utterance("modest", 0.0)
    assert not it.over_fair_share("greedy", 100, 0.0)


def test_accounts_without_number_do_not_fill_the_memory_and_used_ones_are_kept():
    it = Quotas()
    it.declare("bot", Quota(connections=1), 0.0)
    it.connect("bot", 0.0)
    for number in range(3 * REMEMBERED):
        it.declare(f"address {number}", Quota(connections=1), 0.0)
    assert len(it._accounts) <= REMEMBERED
    assert it.connect("bot", 0.0) is not None

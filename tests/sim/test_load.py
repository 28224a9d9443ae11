"""What admission promises of a busy machine without a GPU, in a modelled house."""

import pytest

from sim import scenarios
from sim.house import House, admitted, between, gapless_share, goodput, refused_share, wait_s
from sim.scenarios import CROWD_AT, GREEDY, GREEDY_FROM, LIMIT_STREAMS, PLATEAU, STEP

SEEDS = range(3)
MAX_WAIT_S = 0.2  # what a newcomer waits that does not say


def normal_and_empty(house: House, begin: float) -> bool:
    return all(sample.state == "normal" and not sample.waiting for sample in house.samples if sample.at >= begin)


@pytest.mark.parametrize("seed", SEEDS)
def test_three_quarters_of_the_limit_listen_without_a_gap_and_hardly_anyone_is_refused(seed: int):
    heard = scenarios.plateau(PLATEAU, seed=seed).utterances

    assert PLATEAU >= 0.75 * LIMIT_STREAMS
    assert refused_share(heard) <= 0.003
    assert gapless_share(heard) == 1.0
    assert wait_s(heard, 0.95) <= 0.1


def test_more_than_the_machine_carries_are_refused_and_would_have_had_gaps():
    carried = scenarios.plateau(220).utterances
    let_in = scenarios.plateau(220, forecast=False).utterances

    assert gapless_share(carried) >= 0.995
    assert refused_share(carried) > 0.1
    assert gapless_share(let_in) < 0.9


@pytest.mark.parametrize("seed", SEEDS)
def test_under_three_times_the_load_as_much_is_heard_as_before_and_without_a_gap(seed: int):
    house, (begin, end) = scenarios.step(seed), STEP
    crowded = between(house.utterances, begin, end)
    plateau = scenarios.plateau(PLATEAU, seed=seed).utterances

    assert goodput(house.utterances, begin + 5.0, end) >= 0.9 * goodput(plateau, 20.0, 60.0)
    assert wait_s(crowded, 0.99) <= MAX_WAIT_S + 0.05
    assert gapless_share(crowded) == 1.0
    assert refused_share(crowded) > 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_five_seconds_after_a_crowd_has_gone_all_is_as_before(seed: int):
    house, (_, end) = scenarios.step(seed), STEP

    assert normal_and_empty(house, end + 5.0)
    assert refused_share(between(house.utterances, end + 5.0, end + 15.0)) == 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_crowd_at_the_door_those_let_in_have_no_gap_and_make_none(seed: int):
    heard = scenarios.crowd(seed).utterances

    assert gapless_share(heard) == 1.0
    assert len(admitted(between(heard, CROWD_AT, CROWD_AT + 1.0))) >= 40


def test_without_the_forecast_the_same_crowd_waits_for_seconds():
    let_in = between(scenarios.crowd(forecast=False).utterances, CROWD_AT, CROWD_AT + 1.0)
    carried = between(scenarios.crowd().utterances, CROWD_AT, CROWD_AT + 1.0)

    assert wait_s(let_in, 0.9) > 1.0
    assert wait_s(carried, 0.9) < 0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_answers_of_many_who_listen_are_given_in_turn_and_make_no_gap(seed: int):
    house = scenarios.mid_conversation(seed)
    answers = between(house.utterances, CROWD_AT, CROWD_AT + 1.0)

    assert gapless_share(house.utterances) == 1.0
    assert refused_share(answers) <= 0.1
    assert wait_s(answers, 1.0) <= 2.1  # two seconds for a permit, and its first segment


@pytest.mark.parametrize("seed", SEEDS)
def test_a_greedy_account_does_not_make_others_wait(seed: int):
    """Not beyond what a machine that is full makes anyone wait, whoever fills it."""
    house, settled_at = scenarios.greedy(seed), GREEDY_FROM + 2.0
    modest = [each for each in between(house.utterances, settled_at, 60.0) if each.account != GREEDY]
    full = between(scenarios.many_accounts(seed).utterances, settled_at, 60.0)

    assert wait_s(modest, 0.95) <= 1.2 * wait_s(full, 0.95)
    assert refused_share(modest) <= 0.01
    assert gapless_share(house.utterances) == 1.0

"""What admission promises of an engine on a GPU, in a modelled house."""

from itertools import pairwise

import pytest

from sim import scenarios
from sim.house import House, admitted, gapless_share, wait_s
from sim.scenarios import FAILS, FLAPS, LEAK_TO, SLOTS
from voxgate.admission.breaker import Cause, State, Transition

SEEDS = range(3)
PROBE_AFTER_S, PROBE_DEADLINE_S = 2.0, 10.0


def walk(house: House) -> list[Transition]:
    return list(house.line.breaker.transitions)


def states(house: House) -> list[State]:
    """Each once in a row, degraded left out: a house may be that for want of time, too."""
    entered = [State.NORMAL, *(each.state for each in walk(house) if each.state is not State.DEGRADED)]
    return [State.NORMAL, *(after for before, after in pairwise(entered) if before is not after)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_leak_walks_the_breaker_through_its_states_and_back(seed: int):
    house = scenarios.leak(seed)
    by_memory = [each.state for each in walk(house) if Cause.MEMORY in each.causes]

    assert by_memory[0] is State.DEGRADED
    assert states(house) == [State.NORMAL, State.OPEN, State.HALF_OPEN, State.NORMAL]
    assert [each.state for each in walk(house) if each.at < LEAK_TO].count(State.OPEN) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leak_narrows_the_batch_to_a_single_slot_and_drops_nobody(seed: int):
    house = scenarios.leak(seed)
    widths = [sample.width for sample in house.samples]
    heard = [each for each in admitted(house.utterances) if each.first_at is not None]

    assert (min(width for width in widths if width is not None), widths[0], widths[-1]) == (1, SLOTS, SLOTS)
    assert not any(each.dropped for each in house.utterances)
    assert gapless_share(heard) == 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_an_engine_that_stays_broken_is_tried_ever_more_seldom(seed: int):
    broken = [each for each in walk(scenarios.flapping(seed)) if each.at < FAILS[1] + 40.0]
    shut = [after.at - each.at for each, after in pairwise(broken) if each.state is State.OPEN]

    assert len(shut) >= 4
    assert all(later >= 1.9 * earlier for earlier, later in pairwise(shut))


@pytest.mark.parametrize("seed", SEEDS)
def test_readings_that_jump_do_not_make_the_breaker_flutter(seed: int):
    flapping = [each for each in walk(scenarios.flapping(seed)) if FLAPS[0] <= each.at < FLAPS[1]]
    opened = [each.at for each in flapping if each.state is State.OPEN]

    assert all(later - earlier >= PROBE_AFTER_S for earlier, later in pairwise(opened))
    assert len(opened) <= (FLAPS[1] - FLAPS[0]) / PROBE_AFTER_S / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_every_probe_comes_to_an_end_whoever_hangs_up(seed: int):
    house = scenarios.flapping(seed)
    half_open = [after.at - each.at for each, after in pairwise(walk(house)) if each.state is State.HALF_OPEN]

    assert half_open
    assert max(half_open) <= PROBE_DEADLINE_S + 5.0  # and until somebody comes
    assert states(house)[-1] is State.NORMAL


@pytest.mark.parametrize("seed", SEEDS)
def test_once_the_trouble_is_over_newcomers_are_served_again(seed: int):
    house = scenarios.flapping(seed)
    late = [each for each in house.utterances if each.asked_at > FLAPS[1] + 10.0 and each.refused is None]

    assert len([each for each in late if each.first_at is not None]) >= 10
    assert wait_s(late, 0.5) < 0.2

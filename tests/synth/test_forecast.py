"""The forecast, alone and with the real scheduler in virtual time: a crowd at the door leaves no listener dry."""

import heapq
import math
import random

import pytest

from voxgate.synth.forecast import LATE_SHARE, MARGIN_S, WEIGHT, Cost, predicted_wait
from voxgate.synth.scheduler import Scheduler
from voxgate.synth.segment import Boundary, Segment


def wait(due: list[tuple[float, float]], own_s: float = 0.02, running_s: float = 0.0, workers: int = 2) -> float:
    return predicted_wait(due, own_s=own_s, running_s=running_s, workers=workers, now=100.0)


def test_an_idle_engine_begins_at_once():
    assert wait([]) == 0.0


def test_those_who_have_heard_nothing_yet_go_first():
    assert wait([(-math.inf, 0.03), (-math.inf, 0.03)]) == pytest.approx(0.03)


def test_listeners_with_enough_in_hand_are_no_hindrance():
    assert wait([(103.0, 0.04)] * 50) == 0.0


def test_nobody_may_run_dry_for_a_newcomer():
    # Ten who run dry in a second need 0.5 s of two workers each: 2.5 s of work, for which 0.7 s are left.
    assert wait([(101.0, 0.5)] * 10, own_s=0.0) == pytest.approx(2.5 - (1.0 - MARGIN_S))


def test_one_who_is_dry_already_is_served_next_and_shuts_out_nobody():
    assert wait([(99.0, 0.03)], own_s=0.01) == pytest.approx(0.02)
    assert wait([(100.1, 0.03)], own_s=0.0) == 0.0


def test_who_has_little_in_hand_may_be_made_to_wait_for_a_part_of_it():
    # 0.1 s of audio in hand, 0.06 s of work on two workers: a fifth of 0.1 s is not enough for it.
    assert wait([(100.1, 0.06)], own_s=0.0) == pytest.approx(0.03 - 0.1 * LATE_SHARE)


def test_the_cost_follows_what_is_measured():
    cost = Cost(cores=2)
    for job in range(600):
        cost.begin(job, job)
        cost.end(job, job + 0.2, characters=100, compute_s=0.2)
    cost.begin(600, 600.0)
    cost.end(600, 609.0, compute_s=9.0)  # a segment without text says nothing of it, nor does one that failed
    assert cost.of(50) == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize(("at_once", "share"), [(1, 1.0), (2, 1.0), (3, 2 / 3), (6, 1 / 3)])
def test_jobs_that_share_the_cores_cost_what_they_had_of_them(at_once: int, share: float):
    cost = Cost(cores=2)
    for second in range(600):
        for job in range(at_once):
            cost.begin(job, second)
        for job in range(at_once):
            cost.end(job, second + 1, characters=1000, compute_s=1.0)
    assert cost.per_character_s == pytest.approx(share / 1000, rel=0.01)


def test_a_job_beside_urgent_ones_had_what_they_left():
    cost = Cost(cores=2)
    for second in range(600):
        cost.begin(1, second, urgent=True)
        for job in (2, 3):
            cost.begin(job, second)
        for job in (1, 2, 3):  # one core for the urgent one, the other for both others
            cost.end(job, second + 1, characters=1000 if job == 1 else 500, compute_s=1.0)
    assert cost.per_character_s == pytest.approx(0.001, rel=0.01)


def test_a_job_that_was_joined_halfway_had_the_core_for_itself_until_then():
    cost = Cost(cores=1)
    before = cost.per_character_s
    cost.begin(1, 10.0)
    cost.begin(2, 11.0)
    cost.end(1, 12.0, characters=1, compute_s=2.0)
    assert cost.per_character_s == pytest.approx(before + WEIGHT * (1.5 - before))


def crowd(newcomers: int, within_s: float, *, most_wait_s: float | None, seed: int) -> tuple[int, int, float]:
    """20 listen, others come; (admitted, ran dry, the longest dry spell in seconds) on two workers, 12 s long."""
    chance = random.Random(seed)
    scheduler, now, workers = Scheduler(4.0), 0.0, 2
    dry_at: dict[int, float] = {}
    lengths: dict[int, int] = {}
    running: list[tuple[float, int, float]] = []  # (ends, utterance, audio seconds)
    arrivals = sorted((chance.uniform(0.5, 0.5 + within_s), number) for number in range(20, 20 + newcomers))
    costs = {True: (0.016, 0.025), False: (0.03, 0.04)}
    admitted, dry, worst = 0, set[int](), 0.0

    def enter(utterance: int, heard_until: float | None) -> None:
        scheduler.add(utterance)
        for index in range(60):
            scheduler.push(
                utterance, Segment(index, "x" * (40 if index == 0 else 70), 0, 0, Boundary.START, Boundary.END)
            )
        lengths[utterance] = 0
        if heard_until is not None:
            lengths[utterance] = 1
            dry_at[utterance] = heard_until
            scheduler.cover(utterance, heard_until)

    for utterance in range(20):
        enter(utterance, chance.uniform(1.0, 4.0))
    cost = Cost(workers)
    cost.per_character_s = 0.0005
    while now < 12.0:
        while len(running) < workers and (taken := scheduler.next(now)):
            utterance, _ = taken
            first = lengths[utterance] == 0
            lengths[utterance] += 1
            audio = chance.uniform(1.5, 2.0) if first else chance.uniform(4.0, 6.0)
            heapq.heappush(running, (now + chance.uniform(*costs[first]), utterance, audio))
        instants = [running[0][0] if running else math.inf, arrivals[0][0] if arrivals else math.inf]
        instants.append(scheduler.wake_at(now) or math.inf if len(running) < workers else math.inf)
        now = max(now, min(instants))
        if running and running[0][0] <= now:
            _, utterance, audio = heapq.heappop(running)
            if utterance in dry_at and dry_at[utterance] < now:
                dry.add(utterance)
                worst = max(worst, now - dry_at[utterance])
            dry_at[utterance] = max(dry_at.get(utterance, now), now) + audio
            scheduler.cover(utterance, dry_at[utterance])
            scheduler.done(utterance)
        elif arrivals and arrivals[0][0] <= now:
            _, utterance = heapq.heappop(arrivals)
            due = [(at, cost.of(len(segment.text))) for at, segment in scheduler.due()]
            predicted = predicted_wait(due, own_s=cost.of(40), running_s=len(running) * 0.015, workers=workers, now=now)
            if most_wait_s is None or predicted <= most_wait_s:
                admitted += 1
                enter(utterance, None)
    return admitted, len(dry), worst


@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_at_the_door_is_let_in_as_fast_as_it_can_be_served(seed: int):
    admitted, dry, _ = crowd(180, 1.0, most_wait_s=0.02, seed=seed)
    assert dry == 0
    assert admitted >= 30


def test_without_the_forecast_the_same_crowd_makes_gaps():
    _, dry, worst = crowd(180, 1.0, most_wait_s=None, seed=0)
    assert dry > 20
    assert worst > 0.3

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.loadtest.plan import Load, Planned, Script, arrivals, stream_starts


def take(script: Script, count: int) -> list[Planned]:
    return [script.next() for _ in range(count)]


def test_arrivals_come_at_the_rate_asked_for():
    load = Load(rate=50.0, ramp=0.0, duration=400.0, seed=1)
    instants = list(arrivals(load))
    gaps = [after - before for before, after in itertools.pairwise(instants)]
    mean = sum(gaps) / len(gaps)
    spread = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)

    assert len(instants) == pytest.approx(20_000, rel=0.03)
    assert spread == pytest.approx(mean**2, rel=0.1)  # of an exponential distribution: Poisson, not a metronome


def test_while_ramping_half_the_load_arrives_and_later_more_of_it():
    instants = list(arrivals(Load(rate=50.0, ramp=200.0, duration=1.0, seed=1)))
    first, second = (sum(low <= at < low + 100 for at in instants) for low in (0, 100))

    assert first == pytest.approx(1250, rel=0.1)
    assert second == pytest.approx(3750, rel=0.1)


@given(st.integers(0, 1 << 31), st.floats(0.1, 20), st.floats(0, 5), st.floats(0.1, 10))
def test_arrivals_are_in_order_and_inside_the_run(seed, rate, ramp, duration):
    load = Load(rate=rate, ramp=ramp, duration=duration, seed=seed)
    instants = list(arrivals(load))

    assert instants == sorted(instants)
    assert all(0 <= at < ramp + duration for at in instants)
    assert instants == list(arrivals(load))


def test_parts_of_an_open_loop_add_up_to_its_rate():
    parts = Load(rate=30.0, ramp=0.0, duration=300.0, seed=4).split(3)
    instants = [list(arrivals(part)) for part in parts]

    assert [len(part) for part in instants] == pytest.approx([3000] * 3, rel=0.08)
    assert len({at for part in instants for at in part}) == sum(map(len, instants))


@given(st.integers(1, 60), st.integers(1, 7))
def test_parts_of_a_closed_load_share_its_streams(streams, parts):
    load = Load(streams=streams, ramp=6.0)
    starts = sorted(start for part in load.split(parts) for start in stream_starts(part))

    assert starts == stream_starts(load)
    assert [number for number, _ in starts] == list(range(streams))
    assert starts[0][1] == 0.0
    assert all(0 <= at < 6.0 for _, at in starts)


def test_a_seed_repeats_the_run():
    load = Load(streams=4, barge_ins=0.5, slow_readers=0.5, think=1.0, seed=9)

    assert take(Script(load, 2), 50) == take(Script(load, 2), 50)
    assert take(Script(load, 2), 50) != take(Script(load, 3), 50)


def test_streams_do_what_they_do_in_whatever_process():
    load = Load(streams=4, barge_ins=0.5, seed=9)

    assert take(Script(load.split(2)[1], 3), 20) == take(Script(load, 3), 20)


def test_shares_are_kept():
    planned = take(Script(Load(streams=1, slow_readers=0.2, barge_ins=0.4, think=2.0, seed=2)), 3000)

    assert sum(one.slow for one in planned) == pytest.approx(600, rel=0.15)
    assert sum(one.barge_in_after is not None for one in planned) == pytest.approx(1200, rel=0.15)
    assert sum(one.think for one in planned) / 3000 == pytest.approx(2.0, rel=0.1)


def test_the_mix_is_kept():
    planned = take(Script(Load(streams=1, mix=(("short", 3), ("long", 1)), seed=2)), 2000)
    short = sum(one.text.kind == "short" for one in planned)

    assert {one.text.kind for one in planned} == {"short", "long"}
    assert short == pytest.approx(1500, rel=0.1)


def test_without_shares_nobody_is_slow_interrupts_or_pauses():
    assert {(one.slow, one.barge_in_after, one.think) for one in take(Script(Load(rate=1.0)), 200)} == {
        (False, None, 0.0)
    }

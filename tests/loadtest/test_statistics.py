from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from voxgate.loadtest.listening import Outcome, Result
from voxgate.loadtest.plan import Load
from voxgate.loadtest.statistics import Reasons, Statistics

LOAD = Load(streams=2, ramp=2.0, duration=10.0)
DONE = Result(Outcome.DONE, "", 103.0, 106.0, False, 0.05, 103.05, 2.9, 0, 0.0, 0.0, 0.0, None, None)
STUTTERED = replace(DONE, underruns=2, underrun_seconds=0.5, largest_gap=0.4, waits=1.0)
CANCELLED = replace(DONE, outcome=Outcome.CANCELLED, cancel_to_silence=0.01, cancel_to_confirmed=0.02)
REFUSED = replace(DONE, outcome=Outcome.REFUSED, reason="overloaded", ended_at=103.01, ttfa=None, first_at=None)
FAILED = replace(REFUSED, outcome=Outcome.FAILED, reason="internal")
IN_RAMP = replace(DONE, began_at=101.0, ended_at=104.0, first_at=101.1)
results = st.lists(st.sampled_from([DONE, STUTTERED, CANCELLED, REFUSED, FAILED, IN_RAMP]), max_size=30)


def of(*ended: Result) -> Statistics:
    statistics = Statistics(LOAD, 100.0)
    for result in ended:
        statistics.ended(result)
    return statistics


def facts(statistics: Statistics) -> tuple:
    return (
        statistics.outcomes,
        statistics.judged,
        statistics.gapless,
        round(statistics.underrun_seconds, 6),
        statistics.largest_gap,
        statistics.ttfa.counts,
        statistics.silence.counts,
        {reason: latency.counts for reason, latency in statistics.refusals.latency.items()},
        {reason: latency.counts for reason, latency in statistics.failures.latency.items()},
        statistics.active(),
        [(slice.began, slice.done, slice.refused, slice.failed) for slice in statistics.slices],
    )


def test_outcomes_are_counted_by_kind_and_reason():
    statistics = of(DONE, DONE, CANCELLED, REFUSED, FAILED)

    assert statistics.outcomes == {"done": 2, "cancelled": 1, "refused": 1, "failed": 1}
    assert {reason: latency.count for reason, latency in statistics.refusals.latency.items()} == {"overloaded": 1}
    assert {reason: latency.count for reason, latency in statistics.failures.latency.items()} == {"internal": 1}
    assert statistics.ttfa.count == 3


def test_what_began_while_the_load_was_rising_is_only_in_the_timeline():
    statistics = of(IN_RAMP)

    assert statistics.utterances == 0
    assert statistics.slices[1].began == statistics.slices[4].done == 1


def test_gapless_is_who_was_never_owed_anything():
    statistics = of(DONE, STUTTERED, DONE)

    assert (statistics.judged, statistics.gapless, statistics.underruns) == (3, 2, 2)
    assert (statistics.underrun_seconds, statistics.largest_gap, statistics.waits) == (0.5, 0.4, 1.0)


def test_slow_readers_are_not_judged():
    statistics = of(replace(CANCELLED, slow=True))

    assert (statistics.slow, statistics.judged, statistics.silence.count, statistics.ttfa.count) == (1, 0, 0, 1)


def test_listeners_are_active_until_they_have_heard_it_out():
    assert of(DONE, replace(DONE, ended_at=105.0)).active()[:8] == [0, 0, 0, 2, 2, 1, 0, 0]


def test_audio_counts_when_it_comes():
    statistics = Statistics(LOAD, 100.0)
    for at in (101.0, 105.0, 111.9, 112.5):
        statistics.heard(at, 2.0)

    assert statistics.audio_seconds == 4.0
    assert sum(slice.audio_seconds for slice in statistics.slices) == 8.0


@given(results, results)
def test_merged_is_as_if_it_had_all_been_one_process(one, other):
    merged = of(*one)
    merged.merge(of(*other))

    assert facts(merged) == facts(of(*one, *other))


def test_a_long_run_has_no_more_slices_than_a_short_one():
    assert len(Statistics(Load(rate=1.0, duration=360_000.0), 0.0).slices) <= 602
    assert Statistics(LOAD, 0.0).slice_seconds == 1.0


def test_what_happens_outside_of_the_timeline_goes_to_its_ends():
    statistics = of(replace(DONE, began_at=99.0, ended_at=100_000.0))

    assert (statistics.slices[0].began, statistics.slices[-1].done) == (1, 1)


def test_made_up_reasons_are_told_apart_up_to_a_bound():
    reasons = Reasons()
    for number in range(200):
        reasons.add(f"code {number}", 0.1)

    assert reasons.count == 200
    assert len(reasons.latency) == 51
    assert reasons.latency["other"].count == 150

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.loadtest.histogram import GROWTH, Histogram

durations = st.lists(st.floats(1e-6, 900.0), min_size=1, max_size=200)


def filled(values) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


@given(durations, st.floats(0, 1))
def test_a_quantile_is_the_nearest_rank_to_a_bucket(values, share):
    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]

    assert filled(values).quantile(share) == pytest.approx(exact, rel=GROWTH - 1)


@given(durations)
def test_the_extremes_and_the_sum_are_exact(values):
    histogram = filled(values)

    assert (histogram.least, histogram.quantile(1.0)) == (min(values), max(values))
    assert histogram.total == pytest.approx(sum(values))


@given(durations, durations)
def test_merged_is_as_if_counted_together(one, other):
    merged, together = filled(one), filled(one + other)
    merged.merge(filled(other))

    assert (merged.counts, merged.count, merged.least, merged.most) == (
        together.counts,
        together.count,
        together.least,
        together.most,
    )


def test_memory_is_bounded():
    assert len(filled(1e-9 * 1.001**number for number in range(40_000)).counts) <= 2101


def test_nothing_has_no_quantile():
    assert Histogram().quantile(0.5) is None


def test_zero_is_a_duration():
    assert filled([0.0, 0.0, 1.0]).quantile(0.5) == 0.0


@given(durations)
def test_bars_hold_every_value_once(values):
    assert sum(filled(values).bars([0.0, 0.1, 0.2, 0.3])) == len(values)


def test_bars_lie_between_their_edges():
    assert filled([0.05, 0.15, 0.16, 7.0]).bars([0.0, 0.1, 0.2, 0.3]) == [1, 2, 1]

import pytest

from voxgate.synth.chattts.shape import TRUE
from voxgate.synth.chattts.windows import Span, batches, bucket, span


def test_a_window_takes_its_context_with_it():
    assert span(TRUE, 3, begin=100, end=110, known=118, last=False) == Span(
        3, start=48, steps=70, first=52 * 512, last=62 * 512
    )


def test_a_window_at_the_start_has_no_more_than_there_is():
    assert span(TRUE, 0, begin=10, end=20, known=28, last=False) == Span(
        0, start=0, steps=28, first=10 * 512, last=20 * 512
    )


def test_more_than_the_context_behind_a_window_is_not_looked_at():
    assert span(TRUE, 0, begin=0, end=4, known=200, last=False).steps == 4 + 52


def test_the_last_window_ends_half_a_step_early():
    assert span(TRUE, 0, begin=0, end=8, known=8, last=True).last == 8 * 512 - 256


def test_windows_of_like_length_are_decoded_together():
    spans = [Span(n, 0, steps, 0, 0) for n, steps in enumerate([60, 20, 61, 19, 21])]

    assert batches(spans, 3) == [[3, 1, 4], [0, 2]]


def test_a_size_takes_the_smallest_bucket_that_holds_it():
    assert bucket(64, (64, 128)) == 64
    assert bucket(65, (64, 128)) == 128
    with pytest.raises(ValueError, match="129 is over"):
        bucket(129, (64, 128))

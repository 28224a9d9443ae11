import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth import joins
from voxgate.synth.chattts.edges import Edges
from voxgate.synth.segment import Boundary

RATE = 24_000


def signal(*parts: tuple[float, float]) -> np.ndarray:
    """Stretches of (seconds, level) of a tone."""
    pieces = [level * np.sin(np.arange(round(seconds * RATE)) / 10) for seconds, level in parts]
    return np.concatenate(pieces).astype(np.float32)


SPOKEN = signal((0.4, 0.0), (0.3, 0.5), (0.7, 0.0), (0.2, 0.5), (0.9, 0.0))
BOUNDS = [
    (Boundary.START, Boundary.CLAUSE),
    (Boundary.CLAUSE, Boundary.SENTENCE),
    (Boundary.SENTENCE, Boundary.PARAGRAPH),
    (Boundary.FORCED, Boundary.END),
]


def in_pieces(sound: np.ndarray, sizes: list[int], before: Boundary, after: Boundary, pace: float = 1.0) -> list:
    edges = Edges(RATE, joins.LEAD[before], joins.TAIL[after], pace)
    out, at = [], 0
    for size in sizes:
        out.append(edges.push(sound[at : at + size], last=False))
        at += size
    return [*out, edges.push(sound[at:], last=True)]


@pytest.mark.parametrize(("before", "after"), BOUNDS)
@given(sizes=st.lists(st.integers(1, 20_000), max_size=12), pace=st.sampled_from([1.0, 1.5]))
def test_the_ends_are_as_those_of_the_whole(before, after, sizes, pace):
    whole = joins.trim(SPOKEN, RATE, joins.LEAD[before], joins.TAIL[after], pace)
    pieced = np.concatenate(in_pieces(SPOKEN, sizes, before, after, pace))

    # Windows of 5 ms lie elsewhere in pieces than in the whole, so that an edge of sound is found some ms apart.
    assert abs(len(pieced) - len(whole)) <= 0.012 * RATE
    assert np.count_nonzero(np.abs(pieced) > 0.1) == pytest.approx(np.count_nonzero(np.abs(whole) > 0.1), rel=0.03)


def test_a_pause_inside_is_kept_whole():
    whole = joins.trim(SPOKEN, RATE, joins.LEAD[Boundary.START], joins.TAIL[Boundary.CLAUSE])
    pieced = np.concatenate(in_pieces(SPOKEN, [4000] * 14, Boundary.START, Boundary.CLAUSE))

    quiet = [int(np.diff(np.flatnonzero(np.abs(each) > 0.1)).max()) for each in (whole, pieced)]
    assert quiet[0] == quiet[1]


def test_sound_is_given_out_as_it_comes():
    pieces = in_pieces(SPOKEN, [9600, 4800, 2400], Boundary.START, Boundary.CLAUSE)

    assert len(pieces[0]) == 0
    assert len(pieces[1]) == pytest.approx(4800 - 120, abs=500)
    assert len(pieces[2]) == pytest.approx(2400, abs=200)


def test_where_all_of_the_tail_is_kept_nothing_is_held_back():
    pieces = in_pieces(SPOKEN, [20_000, 16_000], Boundary.START, Boundary.END)

    assert sum(map(len, pieces[:2])) == pytest.approx(36_000 - 9_600, abs=500)


def test_a_segment_without_a_sound_ends():
    silence = signal((0.5, 0.0))

    assert not np.concatenate(in_pieces(silence, [3000], Boundary.START, Boundary.CLAUSE)).any()

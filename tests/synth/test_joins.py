import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth import joins
from voxgate.synth.segment import Boundary

RATE = 24000
ms = RATE // 1000


def silence(milliseconds):
    return np.zeros(milliseconds * ms, np.float32)


def sound(milliseconds):
    return (0.3 * np.sin(2 * np.pi * 200 * np.arange(milliseconds * ms) / RATE)).astype(np.float32)


def padded(before, after, milliseconds=300):
    return np.concatenate([silence(before), sound(milliseconds), silence(after)])


def kept(signal):
    """Milliseconds of silence at both ends."""
    bounds = joins.audible(signal, RATE)
    assert bounds is not None
    return bounds[0] / ms, (len(signal) - bounds[1]) / ms


def test_the_first_sound_of_an_utterance_comes_after_15_ms():
    trimmed = joins.trim(padded(300, 400), RATE, joins.LEAD[Boundary.START], joins.TAIL[Boundary.END])

    lead, tail = kept(trimmed)
    assert lead == pytest.approx(15, abs=5)
    assert tail == pytest.approx(400, abs=5)  # prosody


@given(
    lead=st.integers(150, 400),
    tail=st.integers(250, 550),
    boundary=st.sampled_from([Boundary.CLAUSE, Boundary.FORCED, Boundary.SENTENCE, Boundary.PARAGRAPH]),
    pace=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_what_both_sides_of_a_boundary_keep_adds_up_to_its_pause(lead, tail, boundary, pace):
    left = joins.trim(padded(200, int(tail / pace)), RATE, joins.LEAD[Boundary.START], joins.TAIL[boundary], pace)
    right = joins.trim(padded(int(lead / pace), 200), RATE, joins.LEAD[boundary], joins.TAIL[Boundary.END], pace)

    pause = (kept(left)[1] + kept(right)[0]) * pace

    shortest, longest = {
        Boundary.CLAUSE: (150, 250),
        Boundary.FORCED: (0, 30),
        Boundary.SENTENCE: (600, 800),
        Boundary.PARAGRAPH: (985, 1015),
    }[boundary]
    assert shortest - 5 <= pause <= longest + 5


@pytest.mark.parametrize(
    ("whole_ms", "pause_ms"), [(0, 15), (62, 74), (115, 138), (140, 165), (200, 165), (300, 195), (700, 240)]
)
def test_a_clause_pauses_as_in_the_whole_sentence_within_its_bounds(whole_ms, pause_ms):
    lead = joins.continuation_lead(Boundary.CLAUSE, whole_ms / 1000)

    assert lead.most + joins.TAIL[Boundary.CLAUSE].most == pytest.approx(pause_ms / 1000, abs=0.001)


def test_a_forced_cut_gets_no_pause_however_long_the_voice_makes_one():
    assert joins.continuation_lead(Boundary.FORCED, 0.4) == joins.LEAD[Boundary.FORCED]


def test_cut_edges_fade_and_nothing_between_changes():
    signal = padded(300, 400) + np.float32(0.001)

    trimmed = joins.trim(signal, RATE, joins.LEAD[Boundary.START], joins.TAIL[Boundary.CLAUSE])

    bounds = joins.audible(signal, RATE)
    assert bounds is not None
    start = bounds[0] - 15 * ms
    fade = 5 * ms
    assert abs(trimmed[0]) < 1e-5
    assert abs(trimmed[-1]) < 1e-5
    assert np.array_equal(trimmed[fade:-fade], signal[start + fade : start + len(trimmed) - fade])


def test_an_edge_that_is_not_cut_keeps_its_samples():
    signal = padded(0, 0)

    assert np.array_equal(joins.trim(signal, RATE, joins.LEAD[Boundary.START], joins.TAIL[Boundary.END]), signal)


@pytest.mark.parametrize("length", [0, 1, 100, 5000])
def test_silence_stays_as_it_is(length):
    signal = np.zeros(length, np.float32)

    assert len(joins.trim(signal, RATE, joins.LEAD[Boundary.START], joins.TAIL[Boundary.CLAUSE])) == length


def test_the_pause_is_found_where_it_reaches_into_the_window():
    signal = np.concatenate([sound(100), silence(40), sound(100), silence(120), sound(100)])

    pause = joins.pause_within(signal, RATE, 300 * ms, 380 * ms)

    assert pause.start == pytest.approx(240 * ms, abs=5 * ms)
    assert pause.stop == pytest.approx(360 * ms, abs=5 * ms)


def test_silence_that_began_before_the_signal_is_a_pause():
    pause = joins.pause_within(np.concatenate([silence(80), sound(100)]), RATE, 60 * ms, 90 * ms)

    assert pause.start == 0
    assert pause.stop == pytest.approx(80 * ms, abs=5 * ms)


def test_without_a_pause_the_quietest_place_is_taken():
    signal = sound(200)
    signal[118 * ms : 128 * ms] *= 0.1

    pause = joins.pause_within(signal, RATE, 100 * ms, 150 * ms)

    assert pause.start == pause.stop
    assert 118 * ms <= pause.start <= 128 * ms


def test_full_scale_does_not_wrap_around():
    assert joins.to_int16(np.array([-2.0, -1.0, 0.0, 1.0, 2.0], np.float32)).tolist() == [
        -32767,
        -32767,
        0,
        32767,
        32767,
    ]

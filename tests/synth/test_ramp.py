from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth.engine import Steps
from voxgate.synth.ramp import JITTER_S, MOST_CHUNK_S, Rung, ramp

RATE = 24000
CHATTTS = Steps(samples=512, step_s=0.002, decode_s=0.005, least_ahead=8, most_ahead=52)


def engines() -> st.SearchStrategy[Steps]:
    return st.builds(
        Steps,
        samples=st.integers(120, 2400),
        step_s=st.floats(0.0001, 0.1),
        decode_s=st.floats(0, 0.2),
        least_ahead=st.integers(0, 8),
        most_ahead=st.integers(8, 60),
    )


@given(engines())
def test_while_a_chunk_plays_the_next_one_becomes_ready(steps: Steps):
    found = ramp(steps, RATE)
    audio_s = steps.samples / RATE
    pairs = zip(found.rungs, (*found.rungs[1:], found.rungs[-1]), strict=True)

    assert not found.sustained or all(
        now.new * audio_s >= (then.new + then.ahead - now.ahead) * steps.step_s + steps.decode_s + JITTER_S - 1e-9
        for now, then in pairs
    )


@given(engines())
def test_chunks_and_look_ahead_only_grow_within_their_bounds(steps: Steps):
    found = ramp(steps, RATE)
    lengths, aheads = [rung.new for rung in found.rungs], [rung.ahead for rung in found.rungs]

    assert lengths == sorted(lengths)
    assert aheads == sorted(aheads)
    assert lengths[0] >= 1
    assert lengths[-1] <= max(1, MOST_CHUNK_S * RATE / steps.samples)
    assert aheads[-1] <= steps.most_ahead
    assert len(set(found.rungs)) == len(found.rungs)


def test_a_fast_engine_is_heard_after_a_few_steps_and_grows_to_the_longest_chunks():
    found = ramp(CHATTTS, RATE)

    assert found.rungs[0] == Rung(2, 8)
    assert found.rungs[-1] == Rung(23, 52)
    assert found.sustained


def test_an_engine_that_leaves_little_time_starts_later_and_is_flattened():
    found = ramp(Steps(samples=480, step_s=0.016, decode_s=0.01, least_ahead=1, most_ahead=6), RATE)

    assert found.sustained
    assert found.flattened
    assert found.rungs[0].new > 8


def test_an_engine_slower_than_speech_is_told_as_one():
    found = ramp(Steps(samples=480, step_s=0.03, decode_s=0.01, most_ahead=6), RATE)

    assert (found.sustained, found.rungs) == (False, (Rung(25, 6),))

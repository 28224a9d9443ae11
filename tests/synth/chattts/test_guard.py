import numpy as np

from voxgate.synth.chattts.guard import SilenceWatch, step_bounds

RATE = 24_000


def test_a_text_may_take_somewhat_longer_than_it_should_and_not_much_less():
    least, most = step_bounds("The quick brown fox jumps over the lazy dog.", 1.0, 46.875)

    assert 10 < least < 40
    assert 150 < most < 400
    assert step_bounds("The quick brown fox jumps over the lazy dog.", 2.0, 46.875)[1] < most
    assert step_bounds("Hi.", 1.0, 46.875)[1] > 40


def test_three_seconds_of_silence_are_the_end():
    watch = SilenceWatch(RATE)
    loud, silence = np.full(RATE, 0.1, np.float32), np.full(RATE, 0.001, np.float32)

    assert not watch.push(loud)
    assert [watch.push(silence) for _ in range(4)] == [False, False, False, True]


def test_any_sound_starts_the_count_anew():
    watch = SilenceWatch(RATE)
    blip = np.zeros(RATE, np.float32)
    blip[100:500] = 0.5

    for _ in range(4):
        assert not watch.push(np.zeros(RATE, np.float32))
        assert not watch.push(np.zeros(RATE, np.float32))
        assert not watch.push(blip)
    assert not watch.push(np.zeros(0, np.float32))

import numpy as np
import pytest

from voxgate.codecs.pcm import fade_in, fade_out, to_float, to_int16

RATES = (8000, 16000, 22050, 24000, 44100, 48000)


def test_every_sample_value_survives_the_way_to_float_and_back():
    every = np.arange(-32768, 32768).astype(np.int16)
    assert np.array_equal(to_int16(to_float(every)), every)


def test_what_is_too_loud_saturates_instead_of_wrapping():
    loud = np.array([-2.0, -1.0, 1.0, 1.5, 1e9], np.float32)
    assert to_int16(loud).tolist() == [-32768, -32768, 32767, 32767, 32767]


def test_samples_are_rounded_to_the_nearest_step():
    steps = np.array([0.4, 0.6, -0.4, -0.6]) / 32768
    assert to_int16(steps).tolist() == [0, 1, 0, -1]


@pytest.mark.parametrize("rate", RATES)
def test_a_fade_lasts_its_time_at_the_actual_rate(rate):
    flat = np.full(rate, 10000, np.int16)
    rising, falling = fade_in(flat, rate), fade_out(flat, rate)
    length = round(rate * 0.005)
    assert np.all(rising[: length - 1] < 10000)
    assert np.array_equal(rising[length:], flat[length:])
    assert np.array_equal(falling, rising[::-1])


def test_a_fade_begins_in_silence_and_never_steps_more_than_its_slope():
    rising = fade_in(np.full(24000, 32767, np.int16), 24000).astype(int)
    assert rising[0] < 50
    assert np.max(np.diff(rising)) <= np.ceil(32767 * np.pi / 2 / 120)


def test_fade_out_and_fade_in_of_the_same_length_add_up_to_the_whole():
    flat = np.full(120, 20000, np.int16)
    assert np.max(np.abs(fade_in(flat, 24000) + fade_out(flat, 24000) - flat)) <= 1


@pytest.mark.parametrize("length", [0, 1, 2, 50])
def test_a_sound_shorter_than_the_fade_is_faded_over_all_of_it(length):
    short = np.full(length, 20000, np.int16)
    assert len(fade_in(short, 48000)) == length
    assert np.all(fade_out(short, 48000) < 20000)


def test_a_fade_leaves_its_input_alone():
    pcm = np.full(1000, 1000, np.int16)
    fade_in(pcm, 24000)
    fade_out(pcm, 24000)
    assert np.all(pcm == 1000)

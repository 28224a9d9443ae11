import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxgate.codecs.resample import Resampler, resampled_length

RATES = (8000, 16000, 22050, 24000, 44100, 48000)
PAIRS = [(source, rate) for source in RATES for rate in RATES if source != rate]


def noise(samples):
    return np.random.default_rng(samples).integers(-20000, 20000, samples).astype(np.int16)


def tone(samples, rate, hertz=440.0, amplitude=12000):
    return np.rint(amplitude * np.sin(2 * np.pi * hertz * np.arange(samples) / rate)).astype(np.int16)


def resampled(pcm, source, rate, cuts=()):
    resampler = Resampler(source, rate)
    return np.concatenate([*map(resampler.push, np.split(pcm, sorted(cuts))), resampler.finish()])


@pytest.mark.parametrize(("samples", "expected"), [(0, 0), (1, 1), (2, 1), (3, 2), (24001, 12001)])
def test_a_length_is_the_nearest_whole_number_with_halves_up(samples, expected):
    assert resampled_length(samples, 24000, 12000) == expected


@settings(deadline=None, max_examples=60)
@given(pair=st.sampled_from(PAIRS), samples=st.integers(0, 20000), data=st.data())
def test_any_cutting_gives_the_same_samples_and_the_exact_length(pair, samples, data):
    source, rate = pair
    cuts = data.draw(st.lists(st.integers(0, samples), max_size=12))
    pcm = noise(samples)
    whole = resampled(pcm, source, rate)
    assert len(whole) == resampled_length(samples, source, rate)
    assert np.array_equal(resampled(pcm, source, rate, cuts), whole)


def test_the_same_input_gives_the_same_output_every_time():
    pcm = noise(24000)
    assert np.array_equal(resampled(pcm, 24000, 44100), resampled(pcm, 24000, 44100))


def test_single_samples_add_up_to_the_same_as_one_push():
    pcm = noise(3000)
    assert np.array_equal(resampled(pcm, 24000, 16000, range(3000)), resampled(pcm, 24000, 16000))


@pytest.mark.parametrize(("source", "rate"), PAIRS)
def test_a_tone_stays_what_it_is_at_the_new_rate(source, rate):
    heard = resampled(tone(source, source), source, rate).astype(int)
    edge = rate // 20
    assert np.max(np.abs(heard - tone(rate, rate))[edge:-edge]) <= 2


def test_full_scale_saturates_instead_of_wrapping():
    square = np.where(np.arange(24000) // 60 % 2, 32767, -32768).astype(np.int16)
    heard = resampled(square, 24000, 48000).astype(int)
    assert np.max(np.abs(np.diff(heard))) < 62000  # a wrapped overshoot would jump by nearly 65536


@pytest.mark.parametrize("rate", [rate for rate in RATES if rate != 24000])
def test_little_is_held_back_between_pushes(rate):
    resampler = Resampler(24000, rate)
    given_out = 0
    for pushed in range(1, 200):
        given_out += len(resampler.push(noise(480)))
        assert pushed * 0.02 - given_out / rate < 0.08

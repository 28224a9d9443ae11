import numpy as np
import pytest

from voxgate.synth.loudness import CEILING, KNEE, TARGET_LUFS, gain_for, level


def test_the_gain_brings_what_was_measured_to_the_target():
    assert gain_for(TARGET_LUFS) == 1
    assert gain_for(TARGET_LUFS - 20) == pytest.approx(10)


def test_below_the_knee_it_is_a_gain_and_nothing_else():
    signal = np.linspace(-0.42, 0.42, 1001, dtype=np.float32)

    assert np.array_equal(level(signal, 2.0), 2 * signal)


def test_peaks_keep_their_order_and_stay_below_full_scale():
    peaks = level(np.linspace(0, 3, 500, dtype=np.float32), 1.0)

    assert np.all(np.diff(peaks) >= 0)
    assert np.all(np.diff(peaks)[:150] > 0)
    assert KNEE < peaks.max() <= CEILING + 1e-6
    assert np.array_equal(level(-np.linspace(0, 3, 500, dtype=np.float32), 1.0), -peaks)


def test_what_it_does_to_a_sample_does_not_depend_on_the_others():
    signal = np.random.default_rng(0).normal(0, 0.6, 2000).astype(np.float32)

    assert np.array_equal(np.concatenate([level(part, 1.4) for part in np.split(signal, 8)]), level(signal, 1.4))

import numpy as np

from voxgate.synth.chattts.uniforms import ATTEMPTS, retries, uniforms


def test_a_step_has_its_numbers_however_many_are_drawn():
    assert np.array_equal(uniforms(7, 100, 4)[:10], uniforms(7, 10, 4))


def test_seeds_steps_and_attempts_have_numbers_of_their_own():
    numbers = np.concatenate(
        [uniforms(7, 50, 4), uniforms(8, 50, 4), uniforms(-1, 50, 4), retries(7, 4), retries(8, 4)]
    )

    assert retries(7, 4).shape == (ATTEMPTS - 1, 4)
    assert len(np.unique(numbers)) == numbers.size


def test_numbers_are_spread_over_0_to_1():
    numbers = uniforms(3, 5000, 4)

    assert 0 <= numbers.min() < 0.001
    assert 0.999 < numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.01

import numpy as np
import pytest
from hibari import dsp
from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth.engines.waveform import BINS, NOISE_FRAMES, PARTS, Noise, noise_table, stretch, waveform


@pytest.fixture(scope="module")
def table() -> Noise:
    return noise_table()


class GivenNoise:
    """Stands where hibari draws its noise."""

    def __init__(self, noise: Noise) -> None:
        self._parts = np.ascontiguousarray(noise.T).view(np.float32)

    def standard_normal(self, shape: tuple[int, int], dtype: type) -> np.ndarray:
        assert self._parts.shape == shape
        return self._parts.astype(dtype)


@pytest.mark.parametrize("frames", [5, 40, 301])
def test_it_is_hibaris_signal_path_to_the_bit(table: Noise, frames: int):
    chance = np.random.default_rng(frames)
    head = chance.normal(-1.0, 1.5, (frames, PARTS * BINS)).astype(np.float32)
    f0 = np.where(chance.random(frames) < 0.3, 0, chance.uniform(80, 300, frames)).astype(np.float32)
    noise = stretch(table, frames, 77)

    theirs = dsp.synth(*np.split(head.T, PARTS), f0=f0, rng=GivenNoise(noise))  # pyright: ignore[reportArgumentType]

    assert np.array_equal(waveform(head, f0, noise), theirs)


def test_the_noise_is_normal_and_always_the_same(table: Noise):
    assert table.shape == (NOISE_FRAMES, BINS)
    assert np.array_equal(table[:3], noise_table()[:3])
    for part in (table.real, table.imag):
        assert abs(part.mean()) < 0.01
        assert abs(part.std() - 1) < 0.01
    neighbours = np.abs(np.mean(table[1:] * table[:-1].conj()))
    assert neighbours < 0.01


@given(frames=st.integers(1, 3 * NOISE_FRAMES), number=st.integers(0, 2**64))
def test_a_stretch_has_as_many_frames_as_asked(table: Noise, frames: int, number: int):
    assert stretch(table[:, :1], frames, number).shape == (frames, 1)

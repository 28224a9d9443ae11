import pytest
import torch

from tiny_chattts import tiny_model
from voxgate.synth.chattts.dvae import Dvae, mel_filters
from voxgate.synth.chattts.shape import TINY, TRUE


@pytest.fixture(scope="module")
def dvae() -> Dvae:
    return Dvae(tiny_model())


def test_sound_becomes_codes_and_codes_become_mel(dvae):
    sound = torch.randn(20 * TINY.samples_per_step, generator=torch.Generator().manual_seed(1)) / 10

    codes = dvae.encode(sound)
    assert codes.shape == (4, 20)
    assert codes.min() >= 0
    assert codes.max() < TINY.end_code
    assert dvae.decode(codes).shape == (1, TINY.mels, 40)


def test_a_code_stands_for_four_numbers_of_five_levels_and_its_residual_for_finer_ones(dvae):
    # 189 = 4 + 2 * 5 + 2 * 25 + 1 * 125: the levels 1, 0, 0, -0.5; 312 is the middle of all four.
    vectors = dvae._dequantize(torch.tensor([[189], [312], [312], [189]]))[0, :, 0]
    levels = torch.tensor([1.0, 0.0, 0.0, -0.5])
    expected = [dvae._project(0, "out", levels), dvae._project(1, "out", levels / 4)]

    assert torch.allclose(vectors, torch.cat(expected), atol=1e-6)


def test_a_vector_is_given_the_nearest_code_and_then_the_nearest_residual(dvae):
    vector = torch.randn(1, TINY.dvae_dim, 1, generator=torch.Generator().manual_seed(4))
    code, residual = dvae._quantize(vector)[:2, 0]

    wanted = 2.002 * torch.tanh(dvae._project(0, "in", vector[0, : TINY.dvae_dim // 2, 0]))
    digits = [code // 5**n % 5 - 2 for n in range(4)]
    finer = [residual // 5**n % 5 - 2 for n in range(4)]
    assert digits == [round(2.002 * float(torch.tanh(each))) for each in wanted]
    left = [float(each) - int(digit) / 2 for each, digit in zip(wanted, digits, strict=True)]
    assert finer == [round(2.002 * float(torch.tanh(torch.tensor(4 * each)))) for each in left]


def test_mel_filters_cover_the_band_with_triangles():
    filters = mel_filters(TRUE.mels, TRUE.n_fft)

    assert filters.shape == (100, 513)
    assert filters.max() <= 1
    assert (filters.sum(1) > 0).all()
    peaks = filters.argmax(1)
    assert (peaks.diff() >= 0).all()

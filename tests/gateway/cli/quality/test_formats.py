import numpy as np
import pytest

from voxgate.codecs.packetizer import WIRE_CODECS, choose_format
from voxgate.gateway.cli.quality.formats import lengths, resampled, round_trip

TONE = (8000 * np.sin(np.arange(9000) * 2 * np.pi * 440 / 24000)).astype(np.int16)


async def test_every_length_is_kept():
    (figure,) = await lengths(2)

    assert (figure.value, figure.kept) == (0, True)


@pytest.mark.parametrize("codec", WIRE_CODECS)
def test_a_tone_comes_back_as_it_was(codec: str):
    form = choose_format(codec, 24000, 20, 24000)
    heard = round_trip(TONE, form, 24000, 700)

    expected = resampled(TONE, 24000, form.sample_rate)
    assert len(heard) == len(expected)
    middle = slice(len(expected) // 4, -len(expected) // 4)
    likeness = np.corrcoef(heard[middle].astype(float), expected[middle].astype(float))[0, 1]
    assert likeness > 0.99

import pytest
import torch

from tiny_chattts import CPU, tiny_model
from voxgate.synth.chattts.lookahead import LookAhead, choose, curve
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.vocoder import Vocoder


def test_the_error_falls_with_the_look_ahead_and_is_gone_with_all_of_the_context():
    vocoder = Vocoder(tiny_model(), CPU, torch.float32)
    states = torch.randn(60, TINY.hidden, generator=torch.Generator().manual_seed(0))

    measured = curve(lambda x, steps: vocoder(x[None], torch.tensor([steps]))[0], [states], TINY)

    assert max(measured) == TINY.context_steps
    assert measured[0] < measured[4] < measured[8] < measured[TINY.context_steps]
    assert measured[TINY.context_steps] > 90


def test_the_smallest_that_is_good_enough_is_chosen():
    assert choose({0: 5.0, 4: 26.0, 8: 39.0, 12: 41.0, 52: 120.0}) == LookAhead(4, 12)
    assert choose({0: 50.0, 4: 60.0}) == LookAhead(3, 3)
    assert choose({0: 5.0, 52: 30.0}) == LookAhead(52, 52)


def test_speech_that_is_too_short_tells_nothing():
    with pytest.raises(ValueError, match="no speech is longer"):
        curve(lambda x, steps: x, [torch.zeros(5, TINY.hidden)], TINY)

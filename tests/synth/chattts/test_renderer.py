import pytest
import torch

from tiny_chattts import CPU, tiny_model
from voxgate.synth.chattts.renderer import Renderer
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.vocoder import Vocoder
from voxgate.synth.chattts.windows import span

RING = 96
STEPS = 150


@pytest.fixture(scope="module")
def vocoder() -> Vocoder:
    return Vocoder(tiny_model(), CPU, torch.float32)


def test_a_stream_out_of_the_ring_is_the_whole_decode(vocoder):
    """Two slots, steps written as they come, the ring lapped, windows with full look-ahead."""
    states = torch.randn(2, STEPS, TINY.hidden, generator=torch.Generator().manual_seed(0))
    ring = torch.zeros(2, RING, TINY.hidden)
    known = torch.zeros(2, dtype=torch.int64)
    renderer = Renderer(vocoder, ring, known)
    renderer.warm()
    context, written, heard = TINY.context_steps, 0, [[], []]
    for begin in range(0, STEPS, 10):
        end = begin + 10
        while written < min(end + context, STEPS):
            ring[:, written % RING] = states[:, written]
            written += 1
        known[:] = written
        spans = [span(TINY, slot, begin, end, written, last=end == STEPS) for slot in (1, 0)]
        for each, sound in zip(spans, renderer.render(spans), strict=True):
            heard[each.slot].append(torch.from_numpy(sound))

    whole = vocoder(states, torch.tensor([STEPS, STEPS]))[:, : -TINY.hop]
    for slot in (0, 1):
        assert torch.allclose(torch.cat(heard[slot]), whole[slot], atol=1e-5)


def test_windows_of_many_lengths_and_slots_sound_as_one_by_one(vocoder):
    ring = torch.randn(40, RING, TINY.hidden, generator=torch.Generator().manual_seed(1))
    renderer = Renderer(vocoder, ring, torch.full((40,), RING))
    spans = [span(TINY, slot, 0, 1 + slot % 7, 1 + slot % 7 + slot % 11, last=False) for slot in range(40)]

    together = renderer.render(spans)

    for each, sound in zip(spans, together, strict=True):
        (alone,) = renderer.render([each])
        assert torch.allclose(torch.from_numpy(sound), torch.from_numpy(alone), atol=1e-5)
        assert len(sound) == each.last - each.first


def test_a_span_that_reaches_beyond_the_end_sounds_as_if_it_did_not(vocoder):
    ring = torch.randn(1, RING, TINY.hidden, generator=torch.Generator().manual_seed(2))
    renderer = Renderer(vocoder, ring, torch.tensor([20]))

    (beyond,) = renderer.render([span(TINY, 0, 10, 14, 23, last=False)])
    (exact,) = renderer.render([span(TINY, 0, 10, 14, 20, last=False)])

    assert torch.allclose(torch.from_numpy(beyond), torch.from_numpy(exact), atol=1e-6)

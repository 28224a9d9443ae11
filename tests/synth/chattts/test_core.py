import torch

from tiny_chattts import CPU, tiny_model
from voxgate.synth.chattts.core import Rows, TorchCore
from voxgate.synth.chattts.sampler import RECENT, Sampling
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.uniforms import ATTEMPTS

CAPACITY, SLOTS = 32, 3


def test_a_step_draws_codes_out_of_its_own_states_and_embeds_them():
    core = TorchCore(tiny_model(), CAPACITY, CPU, torch.float32)
    cache = torch.zeros(TINY.layers, 2, SLOTS, TINY.heads, CAPACITY, TINY.head_dim)
    prompt = core.embed_text(torch.arange(5))[None]
    core.prefill(prompt, torch.tensor([1]), 1, cache)
    assert cache[:, :, 1, :, :5].any()
    assert not cache[:, :, (0, 2)].any()

    rows = Rows(
        x=core.embed_text(torch.tensor([7, 8, 9])),
        position=torch.tensor([0, 5, 0]),
        steps=torch.ones(SLOTS, dtype=torch.int64),
        recent=torch.full((SLOTS, RECENT, TINY.codebooks), -1),
        uniforms=torch.full((SLOTS, ATTEMPTS, TINY.codebooks), 0.5),
        settings=torch.tensor([Sampling(temperature=0.0).row()] * SLOTS),
        cache=cache,
    )
    drawn = core.step(rows, CAPACITY)

    best = core.llama.scores(drawn.hidden)
    best[:, :, TINY.end_code] = -torch.inf
    shown = drawn.codes.clone()
    likely = shown == best.argmax(2)
    assert bool((likely | (shown == TINY.end_code)).all())  # greedy: the likeliest, or the end
    assert torch.equal(drawn.embedded, core.llama.embed_codes(drawn.codes))
    assert cache[:, :, 1, :, 5].any()

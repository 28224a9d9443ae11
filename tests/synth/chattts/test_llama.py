import pytest
import torch

from tiny_chattts import CPU, tiny_model
from voxgate.synth.chattts import layout
from voxgate.synth.chattts.llama import Llama, rotary
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.weights import Weights

CAPACITY = 32


@pytest.fixture(scope="module")
def llama() -> Llama:
    return Llama(tiny_model(), CAPACITY, CPU, torch.float32)


def cache(rows: int) -> torch.Tensor:
    return torch.full((TINY.layers, 2, rows, TINY.heads, CAPACITY, TINY.head_dim), 9.0)


def inputs(rows: int, time: int) -> torch.Tensor:
    return torch.randn(rows, time, TINY.hidden, generator=torch.Generator().manual_seed(time))


def plain_attention(weights: Weights, n: int, x: torch.Tensor) -> torch.Tensor:
    """One layer of attention over a sequence [T, H], written out number by number."""
    q, k, v = (x @ weights[f"layers.{n}.self_attn.{part}_proj.weight"].T for part in "qkv")
    out = torch.zeros_like(x)
    half = TINY.head_dim // 2
    for head in range(TINY.heads):
        part = slice(head * TINY.head_dim, (head + 1) * TINY.head_dim)
        turned = []
        for vectors in (q[:, part], k[:, part]):
            rows = []
            for position, vector in enumerate(vectors):
                angles = position * 10_000.0 ** (-torch.arange(half) / half)
                first, second = vector[:half], vector[half:]
                rows.append(
                    torch.cat(
                        [
                            first * angles.cos() - second * angles.sin(),
                            second * angles.cos() + first * angles.sin(),
                        ]
                    )
                )
            turned.append(torch.stack(rows))
        for position in range(len(x)):
            scores = turned[1][: position + 1] @ turned[0][position] / TINY.head_dim**0.5
            out[position, part] = scores.softmax(0) @ v[: position + 1, part]
    return out @ weights[f"layers.{n}.self_attn.o_proj.weight"].T


def plain_llama(x: torch.Tensor) -> torch.Tensor:
    weights = tiny_model()[layout.GPT]

    def normed(x: torch.Tensor, name: str) -> torch.Tensor:
        return x / (x.square().mean(1, keepdim=True) + TINY.rms_eps).sqrt() * weights[name]

    for n in range(TINY.layers):
        x = x + plain_attention(weights, n, normed(x, f"layers.{n}.input_layernorm.weight"))
        inner = normed(x, f"layers.{n}.post_attention_layernorm.weight")
        gate, up = (inner @ weights[f"layers.{n}.mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        x = x + (gate * gate.sigmoid() * up) @ weights[f"layers.{n}.mlp.down_proj.weight"].T
    return normed(x, "norm.weight")


FIRST = torch.tensor([0])


def steps_of(
    llama: Llama, x: torch.Tensor, positions: range, kept: torch.Tensor, length: int = CAPACITY
) -> torch.Tensor:
    return torch.stack([llama.step(x[:, n], torch.tensor([n]), kept, length) for n in positions], 1)


def test_it_computes_a_llama(llama):
    x = inputs(1, 9)

    assert torch.allclose(llama.prefill(x, FIRST, cache(1))[0], plain_llama(x[0]), atol=1e-5)


def test_step_by_step_is_as_all_at_once(llama):
    x, kept = inputs(1, 12), cache(1)
    expected = llama.prefill(x, FIRST, cache(1))

    begun = llama.prefill(x[:, :5], FIRST, kept)
    steps = steps_of(llama, x, range(5, 12), kept, length=16)

    assert torch.allclose(torch.cat([begun, steps], 1), expected, atol=1e-5)


def test_padding_behind_a_prompt_is_overwritten_and_never_seen(llama):
    x, kept = inputs(1, 12), cache(1)
    expected = llama.prefill(x, FIRST, cache(1))
    padded = torch.cat([x[:, :5], torch.full((1, 3, TINY.hidden), 50.0)], 1)

    llama.prefill(padded, FIRST, kept)

    assert torch.allclose(steps_of(llama, x, range(5, 12), kept), expected[:, 5:], atol=1e-5)


def test_rows_at_mixed_positions_do_not_know_of_one_another(llama):
    x, kept = inputs(2, 12), cache(2)
    alone = [llama.prefill(x[n : n + 1], FIRST, cache(1)) for n in range(2)]

    llama.prefill(x[:1, :7], torch.tensor([0]), kept)
    llama.prefill(x[1:, :3], torch.tensor([1]), kept)
    both = llama.step(torch.stack([x[0, 7], x[1, 3]]), torch.tensor([7, 3]), kept, CAPACITY)

    assert torch.allclose(both[0], alone[0][0, 7], atol=1e-5)
    assert torch.allclose(both[1], alone[1][0, 3], atol=1e-5)


def test_codes_are_embedded_as_the_sum_of_their_books(llama):
    embed = tiny_model()[layout.EMBED]
    codes = torch.tensor([[3, 625, 0, 17]])

    expected = torch.stack([embed[f"emb_code.{book}.weight"][code] for book, code in enumerate(codes[0])])
    assert torch.allclose(llama.embed_codes(codes)[0], expected.sum(0))


def test_scores_fold_the_weight_norm(llama):
    embed, hidden = tiny_model()[layout.EMBED], inputs(1, 1)[0]
    g = embed["head_code.2.parametrizations.weight.original0"]
    v = embed["head_code.2.parametrizations.weight.original1"]

    expected = hidden @ (v / v.square().sum(1, keepdim=True).sqrt() * g).T
    assert torch.allclose(llama.scores(hidden)[:, 2], expected, atol=1e-5)


def test_an_observer_is_told_the_input_of_every_linear_layer(llama):
    told = {}
    llama.observe = lambda name, x: told.setdefault(name, x.shape)
    llama.prefill(inputs(1, 2), FIRST, cache(1))
    llama.observe = None

    assert sorted(told) == sorted(
        f"{n}.{part}" for n in range(TINY.layers) for part in ("qkv", "out", "gate_up", "down")
    )
    assert told["1.down"] == (1, 2, TINY.intermediate)


def test_rotary_positions_begin_at_no_turn():
    cos, sin = rotary(4, 10_000.0, 3)

    assert cos[0].tolist() == [1, 1, 1, 1]
    assert sin[0].tolist() == [0, 0, 0, 0]

"""The transformer: embeddings, a Llama stack with a key-value cache of our own, and the heads that score codes.

Rows of a batch are at positions of their own. Owns the weights of this part, not the cache: whoever calls brings it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from . import layout
from .weights import Model, folded_head

Observer = Callable[[str, Tensor], None]  # told the input of every linear layer, by the layer's name


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: Tensor
    out: Tensor
    gate_up: Tensor
    down: Tensor
    before_attention: Tensor
    before_mlp: Tensor


class Llama:
    """`model` at the precision `dtype`, for sequences of at most `capacity` tokens."""

    def __init__(self, model: Model, capacity: int, device: torch.device, dtype: torch.dtype) -> None:
        gpt, embed, shape = model[layout.GPT], model[layout.EMBED], model.shape
        self.shape = shape
        self.observe: Observer | None = None

        def placed(tensor: Tensor) -> Tensor:
            return tensor.to(device=device, dtype=dtype)

        self._text = placed(embed["emb_text.weight"])
        self._codes = placed(torch.stack([embed[f"emb_code.{n}.weight"] for n in range(shape.codebooks)]))
        self._heads = placed(torch.cat([folded_head(embed, n) for n in range(shape.codebooks)])).float()
        self._norm = placed(gpt["norm.weight"])
        self._layers = []
        for n in range(shape.layers):
            attention, mlp = f"layers.{n}.self_attn", f"layers.{n}.mlp"
            self._layers.append(
                _Layer(
                    placed(torch.cat([gpt[f"{attention}.{part}_proj.weight"] for part in "qkv"])),
                    placed(gpt[f"{attention}.o_proj.weight"]),
                    placed(torch.cat([gpt[f"{mlp}.gate_proj.weight"], gpt[f"{mlp}.up_proj.weight"]])),
                    placed(gpt[f"{mlp}.down_proj.weight"]),
                    placed(gpt[f"layers.{n}.input_layernorm.weight"]),
                    placed(gpt[f"layers.{n}.post_attention_layernorm.weight"]),
                )
            )
        cos, sin = rotary(shape.head_dim, shape.rope_theta, capacity)
        self._cos, self._sin = placed(cos), placed(sin)
        self._books = torch.arange(shape.codebooks, device=device)
        self._columns = torch.arange(capacity, device=device)

    def embed_text(self, ids: Tensor) -> Tensor:
        """[..., H] of token ids [...]."""
        return self._text[ids]

    def embed_codes(self, codes: Tensor) -> Tensor:
        """[B, H] of the codes of a step [B, Q]: the sum over codebooks."""
        return self._codes[self._books, codes].sum(1)

    def scores(self, hidden: Tensor) -> Tensor:
        """Logits [B, Q, N] of hidden states [B, H], float32: precision counts here, and it is one matrix."""
        return F.linear(hidden.float(), self._heads).view(len(hidden), self.shape.codebooks, self.shape.codes)

    def prefill(self, x: Tensor, slot: Tensor, cache: Tensor) -> Tensor:
        """Hidden states [1, T, H] of a sequence `x` [1, T, H] from its beginning.

        Keys and values go into row `slot` [1] of `cache` [L, 2, S, heads, capacity, D]. What is behind the sequence
        proper is padding: steps will overwrite it before they look at it.
        """
        positions = self._columns[None, : x.shape[1]]

        def attend(n: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            _write(cache[n], slot[:, None], positions, k, v)
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        return self._run(x, positions, attend)

    def step(self, x: Tensor, positions: Tensor, cache: Tensor, length: int) -> Tensor:
        """Hidden states [B, H] of one embedding for each row [B, H], at `positions` [B].

        `cache` [L, 2, B, heads, capacity, D] is written there, and read in its first `length` columns: what is behind a
        row's own position is never looked at.
        """
        rows = torch.arange(len(x), device=x.device)[:, None]
        mask = (self._columns[:length] <= positions[:, None])[:, None, None]  # [B, 1, 1, length]

        def attend(n: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            _write(cache[n], rows, positions[:, None], k, v)
            keys, values = cache[n]
            return F.scaled_dot_product_attention(q, keys[:, :, :length], values[:, :, :length], attn_mask=mask)

        return self._run(x[:, None], positions[:, None], attend)[:, 0]

    def _run(self, x: Tensor, positions: Tensor, attend: Callable[[int, Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        shape = self.shape
        batch, time, _ = x.shape
        cos, sin = self._cos[positions][:, None], self._sin[positions][:, None]
        for n, layer in enumerate(self._layers):
            normed = F.rms_norm(x, (shape.hidden,), layer.before_attention, shape.rms_eps)
            qkv = self._linear(f"{n}.qkv", normed, layer.qkv).view(batch, time, 3, shape.heads, shape.head_dim)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each [B, heads, T, D]
            seen = attend(n, q * cos + _turned(q) * sin, k * cos + _turned(k) * sin, v)
            x = x + self._linear(f"{n}.out", seen.transpose(1, 2).reshape(batch, time, shape.hidden), layer.out)
            normed = F.rms_norm(x, (shape.hidden,), layer.before_mlp, shape.rms_eps)
            gate, up = self._linear(f"{n}.gate_up", normed, layer.gate_up).chunk(2, -1)
            x = x + self._linear(f"{n}.down", F.silu(gate) * up, layer.down)
        return F.rms_norm(x, (shape.hidden,), self._norm, shape.rms_eps)

    def _linear(self, name: str, x: Tensor, weight: Tensor) -> Tensor:
        if self.observe is not None:
            self.observe(name, x)
        return F.linear(x, weight)


def rotary(head_dim: int, theta: float, capacity: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine [capacity, head_dim] of the rotary embedding; halves, not pairs, belong together."""
    frequencies = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angles = torch.outer(torch.arange(capacity, dtype=torch.float64), frequencies).repeat(1, 2)
    return angles.cos().float(), angles.sin().float()


def _write(layer: Tensor, rows: Tensor, positions: Tensor, k: Tensor, v: Tensor) -> None:
    """Keys and values [B, heads, T, D] into `layer` [2, S, heads, capacity, D]."""
    layer[0][rows, :, positions] = k.transpose(1, 2)
    layer[1][rows, :, positions] = v.transpose(1, 2)


def _turned(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)

"""Chooses the codes of a step: temperature, repetition penalty, top-p, top-k, then a draw, each codebook by itself.

Every row has its own settings and its own random numbers, so a row's codes do not depend on its neighbours. graphs.py
says the same in ONNX.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

RECENT = 16  # steps that the repetition penalty looks back on
MOST_K = 64  # candidates that are ever considered; top_k is at most so much
LEAST_KEPT = 3  # by top-p and by top-k, whatever their values


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the codes of one segment are drawn. Greedy at temperature 0."""

    temperature: float = 0.3
    top_p: float = 0.7
    top_k: int = 20
    penalty: float = 1.05
    min_steps: int = 0  # before which the speech cannot end

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 10:
            raise ValueError(f"temperature {self.temperature} is outside 0-10")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p {self.top_p} is outside 0-1")
        if not 1 <= self.top_k <= MOST_K:
            raise ValueError(f"top_k {self.top_k} is outside 1-{MOST_K}")
        if not 1 <= self.penalty <= 2:
            raise ValueError(f"penalty {self.penalty} is outside 1-2")

    def row(self) -> list[float]:
        """As a row of `settings` below. Greedy is temperature 1 with every random number 0."""
        greedy = self.temperature == 0
        temperature = 1.0 if greedy else self.temperature
        return [temperature, self.top_p, float(self.top_k), self.penalty, float(self.min_steps), float(not greedy)]


COLUMNS = 6  # of `settings`: temperature, top_p, top_k, penalty, min_steps, random


def sample(logits: Tensor, recent: Tensor, uniforms: Tensor, settings: Tensor, steps: Tensor) -> Tensor:
    """Codes [B, Q] out of `logits` [B, Q, N], float32; code N - 1 ends the speech.

    `recent` [B, RECENT, Q]: the codes before, -1 for none. `uniforms` [B, A, Q]: of every attempt; those after the
    first count in step 0 alone, where an attempt that would end the speech gives way to the next. `steps` [B]: how many
    codes there are so far.
    """
    last = logits.shape[2] - 1
    temperature, top_p, top_k, penalty, min_steps, random = (settings[:, n, None, None] for n in range(COLUMNS))
    is_end = torch.arange(last + 1, device=logits.device) == last
    scores = logits.masked_fill(is_end & (steps[:, None, None] < min_steps), -torch.inf) / temperature
    scores = _penalized(scores, recent, penalty)
    best, candidates = scores.topk(min(MOST_K, last + 1), dim=2)
    odds = (best - scores.logsumexp(2, keepdim=True)).exp()
    rank = torch.arange(odds.shape[2], device=odds.device)
    likely = (odds.cumsum(2) - odds < top_p) | (rank < LEAST_KEPT)
    odds = odds * (likely & (rank < top_k.clamp(min=LEAST_KEPT)))
    up_to = odds.cumsum(2)[:, None]  # [B, 1, Q, K]
    drawn = (uniforms * random)[..., None] * up_to[..., -1:]
    chosen = ((up_to <= drawn) & (up_to < up_to[..., -1:])).sum(3)  # [B, A, Q]
    codes = candidates[:, None].expand(-1, chosen.shape[1], -1, -1).gather(3, chosen[..., None])[..., 0]
    goes_on = (codes != last).all(2)  # [B, A]
    attempt = torch.where(steps == 0, goes_on.int().argmax(1), 0)
    return codes.gather(1, attempt[:, None, None].expand(-1, 1, codes.shape[2]))[:, 0]


def _penalized(scores: Tensor, recent: Tensor, penalty: Tensor) -> Tensor:
    """Each code made less likely by `penalty` for every time it is among the recent ones of its codebook."""
    size = scores.shape[2]
    counts = scores.new_zeros(*scores.shape[:2], size + 1)  # the last column is for "none"
    codes = torch.where(recent < 0, size, recent).transpose(1, 2)
    counts.scatter_add_(2, codes, torch.ones_like(codes, dtype=counts.dtype))
    alpha = penalty ** counts[..., :size]
    return torch.where(scores < 0, scores * alpha, scores / alpha)

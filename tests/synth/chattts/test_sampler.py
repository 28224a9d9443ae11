from typing import Any

import pytest
import torch

from voxgate.synth.chattts.sampler import RECENT, Sampling, sample

BOOKS, CODES = 4, 626
END = CODES - 1


def logits(*peaks: tuple[int, float], rows: int = 1) -> torch.Tensor:
    """The same for every codebook: low, but at `peaks`."""
    scores = torch.full((rows, BOOKS, CODES), -20.0)
    for code, height in peaks:
        scores[:, :, code] = height
    return scores


def draw(
    scores: torch.Tensor,
    u: float | list[float] = 0.0,
    *,
    step: int = 5,
    recent: tuple[int, ...] = (),
    **settings: Any,
) -> list[int]:
    """The codes of one row, for the random numbers of its attempts."""
    attempts = torch.tensor([u] if isinstance(u, float) else u)[None, :, None].expand(1, -1, BOOKS)
    before = torch.full((1, RECENT, BOOKS), -1)
    for n, code in enumerate(recent):
        before[0, n] = code
    row = torch.tensor([Sampling(**{"temperature": 1.0, **settings}).row()])
    return sample(scores, before, attempts, row, torch.tensor([step]))[0].tolist()


def distribution(scores: torch.Tensor, **settings: Any) -> dict[int, float]:
    """How often each code of the first codebook comes, over evenly spread random numbers."""
    drawn = [draw(scores, (n + 0.5) / 200, **settings)[0] for n in range(200)]
    return {code: drawn.count(code) / 200 for code in set(drawn)}


TWO = logits((3, 1.0), (7, 0.0))  # 73 % and 27 % when nothing else is kept


def test_codes_come_as_often_as_they_are_likely():
    assert distribution(TWO, top_p=1.0) == {3: pytest.approx(0.73, abs=0.01), 7: pytest.approx(0.27, abs=0.01)}


def test_a_low_temperature_sharpens():
    assert distribution(TWO, top_p=1.0, temperature=0.3)[3] == pytest.approx(0.965, abs=0.01)


def test_greedy_takes_the_best_whatever_the_random_number():
    assert draw(TWO, 0.999, temperature=0.0) == [3] * BOOKS


FIVE = logits(*((code, 2.0 - code / 100) for code in range(5)))  # about a fifth each, the first the best


def test_top_p_keeps_what_makes_up_the_share_and_at_least_three():
    assert set(distribution(FIVE, top_p=0.7)) == {0, 1, 2, 3}
    assert set(distribution(FIVE, top_p=0.1)) == {0, 1, 2}


def test_top_k_keeps_the_best_and_at_least_three():
    assert set(distribution(FIVE, top_p=1.0, top_k=4)) == {0, 1, 2, 3}
    assert set(distribution(FIVE, top_p=1.0, top_k=1)) == {0, 1, 2}


def test_a_repeated_code_is_penalized_once_for_every_time_it_came():
    scores = logits((3, 1.0), (7, 1.0))
    once, twice = (distribution(scores, recent=(3,) * n, penalty=1.5, top_p=1.0)[3] for n in (1, 2))

    assert once == pytest.approx(1 / (1 + 2.71828 ** (1 - 1 / 1.5)), abs=0.01)
    assert twice == pytest.approx(1 / (1 + 2.71828 ** (1 - 1 / 1.5**2)), abs=0.01)


def test_the_penalty_makes_what_is_unlikely_even_less_likely():
    scores = logits((3, -1.0), (7, -1.0))

    assert distribution(scores, recent=(3,), penalty=1.5, top_p=1.0)[3] == pytest.approx(
        1 / (1 + 2.71828**0.5), abs=0.01
    )


def test_the_speech_cannot_end_before_its_least_number_of_steps():
    scores = logits((END, 9.0), (3, 1.0))

    assert draw(scores, step=4, min_steps=5) == [3] * BOOKS
    assert draw(scores, step=5, min_steps=5) == [END] * BOOKS


def test_a_first_step_that_would_end_the_speech_is_drawn_again():
    scores = logits((END, 1.0), (3, 1.0), (7, 1.0))
    thirds = {0.1: draw(scores, 0.1), 0.5: draw(scores, 0.5), 0.9: draw(scores, 0.9)}
    ends = next(u for u, codes in thirds.items() if codes == [END] * BOOKS)
    goes_on = next(u for u, codes in thirds.items() if codes != [END] * BOOKS)

    assert draw(scores, [ends, ends, goes_on], step=0) == thirds[goes_on]
    assert draw(scores, [ends, ends, ends], step=0) == thirds[ends]
    assert draw(scores, [ends, ends, goes_on], step=1) == thirds[ends]


def test_the_codes_of_a_row_do_not_depend_on_its_neighbours():
    generator = torch.Generator().manual_seed(5)
    rows = 200  # more than 626 codebooks in one batch
    scores = 3 * torch.randn(rows, BOOKS, CODES, generator=generator)
    recent = torch.randint(-1, CODES, (rows, RECENT, BOOKS), generator=generator)
    uniforms = torch.rand(rows, 3, BOOKS, generator=generator)
    settings = torch.tensor(
        [Sampling(0.1 + n / rows, top_k=1 + n % 64, penalty=1 + n % 7 / 10).row() for n in range(rows)]
    )
    steps = torch.arange(rows) % 3

    together = sample(scores, recent, uniforms, settings, steps)
    alone = [sample(*(each[n : n + 1] for each in (scores, recent, uniforms, settings, steps)))[0] for n in range(rows)]

    assert torch.equal(together, torch.stack(alone))


@pytest.mark.parametrize("wrong", [{"temperature": -1}, {"top_p": 0}, {"top_k": 65}, {"penalty": 0.5}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Sampling(**wrong)

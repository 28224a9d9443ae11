from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_chattts import CPU, tiny_model
from voxgate.synth.chattts.errors import TextTooLong
from voxgate.synth.chattts.sampler import Sampling
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.stepper import Progress, Prompt, Stepper, slot_bytes

WIDTH = 4
SPEAKER_ID = 2


def make_stepper(late: bool = False) -> Stepper:
    """Always computed at one width, where equal codes are promised."""
    return Stepper(
        tiny_model(),
        slots=WIDTH,
        capacity=128,
        ring=96,
        device=CPU,
        dtype=torch.float32,
        widths=(WIDTH,),
        late=late,
    )


@pytest.fixture(scope="module")
def shared() -> Stepper:
    stepper = make_stepper()
    stepper.warm()
    return stepper


def prompt(n: int, *, budget: int = 30, greedy: bool = False, **sampling: Any) -> Prompt:
    """The n-th text: its own length, words, voice and seed."""
    ids = tuple(3 + (n * 31 + place * 7) % 100 for place in range(4 + n * 5 % 17))
    speaker = np.random.default_rng(n).standard_normal(TINY.hidden).astype(np.float32)
    chosen = Sampling(**{"temperature": 0.0 if greedy else 0.7, "min_steps": 3, **sampling})
    return Prompt((1, SPEAKER_ID, *ids), speaker, SPEAKER_ID, chosen, seed=n, budget=budget)


def codes(stepper: Stepper, slot: int, steps: int) -> list[list[int]]:
    return stepper.codes[slot, :steps].tolist()


def alone(stepper: Stepper, what: Prompt, slot: int = 0) -> list[list[int]]:
    """The codes of a segment that nobody is beside."""
    stepper.load(slot, what)
    while not (progress := stepper.step([slot])[slot]).ended:
        pass
    stepper.release(slot)
    return codes(stepper, slot, progress.steps)


@pytest.mark.parametrize("greedy", [True, False])
def test_a_segment_has_its_codes_in_every_slot_and_its_own(shared, greedy):
    expected = [alone(shared, prompt(n, greedy=greedy)) for n in range(3)]

    assert [alone(shared, prompt(n, greedy=greedy), slot=3 - n) for n in range(3)] == expected
    assert expected[0] != expected[1]


@pytest.mark.parametrize("greedy", [True, False])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_slots_that_join_leave_and_are_held_are_as_alone(shared, greedy, data):
    """Whatever the order: who joins when, who is left out of a step, who is dropped in mid-speech."""
    waiting = [prompt(n, greedy=greedy, budget=8 + n * 3) for n in range(6)]
    running: dict[int, Prompt] = {}
    spoken: list[tuple[Prompt, list[list[int]]]] = []
    for _ in range(400):
        if not waiting and not running:
            break
        free = sorted(set(range(WIDTH)) - set(running))
        if waiting and free and data.draw(st.booleans(), "join"):
            slot = data.draw(st.sampled_from(free), "slot")
            shared.load(slot, waiting[0])
            running[slot] = waiting.pop(0)
        if running and data.draw(st.integers(0, 30), "cancel") == 0:
            slot = data.draw(st.sampled_from(sorted(running)), "cancelled")
            shared.release(slot)
            del running[slot]
        held = data.draw(st.sets(st.sampled_from(sorted(running)), max_size=2), "held") if running else set()
        if not (rows := sorted(set(running) - held)):
            continue
        for slot, progress in shared.step(rows).items():
            if progress.ended:
                spoken.append((running.pop(slot), codes(shared, slot, progress.steps)))
                shared.release(slot)
    for slot in running:
        shared.release(slot)

    assert [said for _, said in spoken] == [alone(shared, what) for what, _ in spoken]


def test_hidden_states_lie_in_the_ring_at_their_step(shared):
    what = prompt(3, budget=100, min_steps=100)
    shared.load(0, what)
    seen = []
    for step in range(100):
        shared.step([0])
        seen.append(shared.ring[0, step % 96].clone())
    shared.release(0)

    assert not torch.equal(seen[0], seen[96])
    for step in range(4, 100):
        assert torch.equal(shared.ring[0, step % 96], seen[step])


def test_a_slot_that_is_left_out_does_not_advance(shared):
    shared.load(0, prompt(0, budget=20, min_steps=20))
    shared.load(1, prompt(1, budget=20, min_steps=20))
    for _ in range(5):
        shared.step([1])

    assert shared.step([0, 1]) == {0: Progress(1, False), 1: Progress(6, False)}
    shared.release(0)
    shared.release(1)


def test_the_budget_ends_a_speech_with_its_last_step(shared):
    shared.load(0, prompt(0, budget=4, min_steps=50))
    told = [shared.step([0])[0] for _ in range(5)]
    shared.release(0)

    assert told == [Progress(1, False), Progress(2, False), Progress(3, False), Progress(4, True), Progress(4, True)]


def test_a_late_stepper_tells_of_the_step_before():
    stepper = make_stepper(late=True)
    stepper.load(0, prompt(0, budget=3, min_steps=50))

    assert [stepper.step([0]) for _ in range(4)] == [
        {},
        {0: Progress(1, False)},
        {0: Progress(2, False)},
        {0: Progress(3, True)},
    ]


def test_a_late_report_is_not_taken_for_one_of_the_next_segment_in_the_slot():
    stepper = make_stepper(late=True)
    stepper.load(0, prompt(0, budget=1, min_steps=50))
    stepper.step([0])  # has ended, which is told by the next step
    stepper.release(0)
    stepper.load(0, prompt(1, budget=9, min_steps=50))

    assert stepper.step([0]) == {}
    assert stepper.step([0]) == {0: Progress(1, False)}


def test_a_speech_ends_by_its_end_code_and_without_it_in_its_codes(shared):
    lengths = {len(alone(shared, prompt(n, budget=100, min_steps=0, temperature=1.0))) for n in range(6)}

    assert len(lengths) > 1
    assert not any(TINY.end_code in row for n in range(3) for row in alone(shared, prompt(n, budget=100)))


def test_the_voice_shapes_the_codes(shared):
    one = prompt(0, greedy=True)
    other = Prompt(one.ids, np.ones(TINY.hidden, np.float32), SPEAKER_ID, one.sampling, one.seed, one.budget)

    assert alone(shared, one) != alone(shared, other)


def test_what_does_not_fit_a_slot_is_refused(shared):
    with pytest.raises(TextTooLong, match="6 tokens of text and 123 steps of speech do not fit 128"):
        shared.load(0, prompt(0, budget=123))


def test_a_slot_takes_the_memory_it_is_said_to():
    stepper = make_stepper()
    held = stepper._cache.nbytes + stepper.ring.nbytes + stepper.codes.nbytes + stepper._uniforms.nbytes

    assert stepper.pool_bytes == held == WIDTH * slot_bytes(tiny_model(), 128, 96, torch.float32)

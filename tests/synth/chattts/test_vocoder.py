import pytest
import torch

from tiny_chattts import CPU, tiny_model
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.vocoder import Vocoder, inverse_stft

CONTEXT = TINY.context_steps
STEP = TINY.samples_per_step


@pytest.fixture(scope="module")
def vocoder() -> Vocoder:
    return Vocoder(tiny_model(), CPU, torch.float32)


def hidden(steps: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(steps, TINY.hidden, generator=torch.Generator().manual_seed(seed))


def whole(vocoder: Vocoder, states: torch.Tensor) -> torch.Tensor:
    """The sound of all of it, alone."""
    return vocoder(states[None], torch.tensor([len(states)]))[0, : len(states) * STEP - TINY.hop]


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, atol=1e-5)


def test_the_inverse_stft_is_that_of_torch(vocoder):
    sound = torch.randn(40 * TINY.hop, generator=torch.Generator().manual_seed(3))
    window = torch.hann_window(TINY.n_fft)
    spectrum = torch.stft(sound, TINY.n_fft, TINY.hop, window=window, return_complex=True)
    basis, _ = inverse_stft(TINY.n_fft)
    frames = (torch.cat([spectrum.real, spectrum.imag]).T @ basis)[None]
    envelope = window.square().expand(1, frames.shape[1], -1)

    ours = vocoder._overlapped(frames) / vocoder._overlapped(envelope)
    assert close(ours[0, : -TINY.hop], torch.istft(spectrum, TINY.n_fft, TINY.hop, window=window))


def test_a_window_with_full_context_sounds_as_in_the_whole(vocoder):
    states = hidden(3 * CONTEXT + 5)
    expected = whole(vocoder, states)

    begin, end = CONTEXT + 2, CONTEXT + 5
    window = states[begin - CONTEXT : end + CONTEXT]
    heard = vocoder(window[None], torch.tensor([len(window)]))[0]

    assert close(heard[CONTEXT * STEP : (CONTEXT + end - begin) * STEP], expected[begin * STEP : end * STEP])


def test_one_step_less_of_context_is_heard(vocoder):
    states = hidden(3 * CONTEXT + 5)
    begin, end = CONTEXT + 2, CONTEXT + 5
    expected = whole(vocoder, states)[begin * STEP : end * STEP]

    for left, right in [(CONTEXT - 3, CONTEXT), (CONTEXT, CONTEXT - 3)]:
        window = states[begin - left : end + right]
        heard = vocoder(window[None], torch.tensor([len(window)]))[0]
        assert not torch.equal(heard[left * STEP : (left + end - begin) * STEP], expected)


def test_chunks_of_a_stream_joined_are_the_whole(vocoder):
    states = hidden(2 * CONTEXT + 21)
    chunks, begin, n = [], 0, len(states)
    while begin < n:
        end = min(begin + 7, n)
        start, stop = max(0, begin - CONTEXT), min(end + CONTEXT, n)
        heard = vocoder(states[None, start:stop], torch.tensor([stop - start]))[0]
        chunks.append(heard[(begin - start) * STEP : (end - start) * STEP])
        begin = end

    assert close(torch.cat(chunks)[: -TINY.hop], whole(vocoder, states))


def test_rows_of_a_batch_sound_as_they_do_alone(vocoder):
    rows = [hidden(steps, steps) for steps in (3, 20, 9)]
    batch = torch.zeros(3, 20, TINY.hidden)
    batch += 7.0  # what lies behind the end of a row is not looked at
    for n, states in enumerate(rows):
        batch[n, : len(states)] = states

    sounds = vocoder(batch, torch.tensor([len(states) for states in rows]))

    for sound, states in zip(sounds, rows, strict=True):
        assert close(sound[: len(states) * STEP - TINY.hop], whole(vocoder, states))

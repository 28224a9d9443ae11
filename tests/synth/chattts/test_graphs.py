"""The graphs compute what torch does; onnxruntime runs them here."""

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
import torch

from tiny_chattts import CPU, tiny_model
from voxgate.synth.chattts import graphs
from voxgate.synth.chattts.llama import Llama
from voxgate.synth.chattts.sampler import RECENT, Sampling, sample
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.uniforms import ATTEMPTS
from voxgate.synth.chattts.vocoder import Vocoder

CAPACITY = 48
BOOKS = TINY.codebooks
HALF = {"float32": (np.float32, 1e-4), "float16": (np.float16, 0.05)}


def session(exported: graphs.Exported) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(exported.onnx, options, providers=["CPUExecutionProvider"])


def run(runner: ort.InferenceSession, feed: dict[str, Any]) -> dict[str, Any]:
    return dict(zip([output.name for output in runner.get_outputs()], runner.run(None, feed), strict=True))


def caches(rows: int, kind: Any) -> dict[str, np.ndarray]:
    size = (rows, TINY.heads, CAPACITY, TINY.head_dim)
    return {f"{part}_{n}": np.full(size, 3, kind) for n in range(TINY.layers) for part in ("key", "value")}


def renewed(outputs: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("new_"): value for name, value in outputs.items() if name.startswith("new_")}


@pytest.mark.parametrize("precision", HALF)
def test_prefill_and_steps_are_those_of_torch(precision):
    """Two rows with prompts of their own lengths, then five steps of both, each at its own position."""
    kind, tolerance = HALF[precision]
    llama = Llama(tiny_model(), CAPACITY, CPU, torch.float32)
    generator = torch.Generator().manual_seed(0)
    lengths = (5, 9)
    prompts = [torch.randn(1, length, TINY.hidden, generator=generator) for length in lengths]
    kept = torch.zeros(TINY.layers, 2, 2, TINY.heads, CAPACITY, TINY.head_dim)
    prefill, step = (session(make(tiny_model(), CAPACITY, precision)) for make in (graphs.prefill, graphs.step))
    parts = []
    for row, prompt in enumerate(prompts):
        llama.prefill(prompt, torch.tensor([row]), kept)
        feed = {"x": prompt.numpy().astype(kind), "start": np.zeros(1, np.int64), **caches(1, kind)}
        parts.append(renewed(run(prefill, feed)))
    state = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    x = torch.randn(2, TINY.hidden, generator=generator)
    ours = x.numpy().astype(kind)
    recent = torch.full((2, RECENT, BOOKS), -1)
    settings = torch.tensor([Sampling(temperature=0.0).row(), Sampling(temperature=0.5, min_steps=3).row()])

    for n in range(5):
        position = torch.tensor(lengths) + n
        uniforms = torch.rand(2, ATTEMPTS, BOOKS, generator=generator)
        steps = torch.tensor([n, n])
        hidden = llama.step(x, position, kept, CAPACITY)
        codes = sample(llama.scores(hidden), recent, uniforms, settings, steps)
        fed = {"x": ours, "position": position.numpy(), "steps": steps.numpy(), "recent": recent.numpy()}
        outputs = run(step, {**fed, "uniforms": uniforms.numpy(), "settings": settings.numpy(), **state})
        state = renewed(outputs)

        assert np.abs(outputs["hidden"].astype(np.float32) - hidden.numpy()).max() < tolerance
        if precision == "float32":
            assert outputs["codes"].tolist() == codes.tolist()
        recent = torch.cat([codes[:, None], recent[:, :-1]], 1)
        x = llama.embed_codes(codes)
        ours = x.numpy().astype(kind)
        if precision == "float32":
            assert np.allclose(outputs["next"], x.numpy(), atol=1e-5)


def test_the_sampler_in_the_graph_draws_as_torch_does():
    rows = 64
    generator = torch.Generator().manual_seed(1)
    llama = Llama(tiny_model(), CAPACITY, CPU, torch.float32)
    x = torch.randn(rows, TINY.hidden, generator=generator) * 3
    recent = torch.randint(-1, TINY.codes, (rows, RECENT, BOOKS), generator=generator)
    uniforms = torch.rand(rows, ATTEMPTS, BOOKS, generator=generator)
    chosen = [Sampling(n % 5 / 3, 0.3 + n % 7 / 10, 1 + n % 64, 1 + n % 4 / 4, n % 3) for n in range(rows)]
    settings = torch.tensor([each.row() for each in chosen])
    steps = torch.arange(rows) % 4
    kept = torch.zeros(TINY.layers, 2, rows, TINY.heads, CAPACITY, TINY.head_dim)
    hidden = llama.step(x, torch.zeros(rows, dtype=torch.int64), kept, CAPACITY)
    expected = sample(llama.scores(hidden), recent, uniforms, settings, steps)

    feed = {"x": x.numpy(), "position": np.zeros(rows, np.int64), "steps": steps.numpy(), "recent": recent.numpy()}
    feed |= {"uniforms": uniforms.numpy(), "settings": settings.numpy(), **caches(rows, np.float32)}
    outputs = run(session(graphs.step(tiny_model(), CAPACITY, "float32")), feed)

    assert outputs["codes"].tolist() == expected.tolist()


@pytest.mark.parametrize("precision", HALF)
def test_the_vocoder_is_that_of_torch(precision):
    kind, tolerance = HALF[precision]
    states = torch.randn(3, 12, TINY.hidden, generator=torch.Generator().manual_seed(2))
    lengths = torch.tensor([12, 5, 1])
    expected = Vocoder(tiny_model(), CPU, torch.float32)(states, lengths).numpy()

    feed = {"hidden": states.numpy().astype(kind), "lengths": lengths.numpy()}
    sound = run(session(graphs.vocoder(tiny_model(), precision)), feed)["sound"]

    assert sound.shape == expected.shape
    for row, steps in enumerate(lengths):
        samples = int(steps) * TINY.samples_per_step - TINY.hop
        error = sound[row, :samples] - expected[row, :samples]
        assert np.sqrt(np.square(error).mean() / np.square(expected[row, :samples]).mean()) < tolerance


def test_a_graph_is_the_same_bytes_each_time():
    assert graphs.step(tiny_model(), CAPACITY, "float16").onnx == graphs.step(tiny_model(), CAPACITY, "float16").onnx

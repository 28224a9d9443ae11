import numpy as np
import onnxruntime as ort
import pytest
import torch

from tiny_chattts import CPU, tiny_model
from voxgate.synth.chattts import graphs
from voxgate.synth.chattts.calibration import QUANTILE, Activations, calibrate
from voxgate.synth.chattts.sampler import RECENT, Sampling
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.stepper import Prompt, Stepper
from voxgate.synth.chattts.uniforms import ATTEMPTS

CAPACITY = 64


@pytest.fixture(scope="module")
def scales() -> dict[str, float]:
    stepper = Stepper(tiny_model(), slots=1, capacity=CAPACITY, ring=64, device=CPU, dtype=torch.float32)
    prompts = [Prompt(tuple(range(n, n + 6)), None, -1, Sampling(min_steps=20), n, 40) for n in range(3)]
    return calibrate(stepper, prompts, steps=20)


def test_every_layer_gets_a_scale(scales):
    assert len(scales) == 4 * TINY.layers
    assert all(0.001 < scale < 1 for scale in scales.values())


def test_a_scale_is_what_the_largest_values_need():
    seen = Activations()
    seen("layer", torch.linspace(-4, 2, 10_000))
    seen("layer", torch.ones(3))

    assert seen.scales() == {"layer": pytest.approx(4 * QUANTILE / 127, rel=0.01)}


def test_a_quantized_step_is_nearly_the_whole_one(scales):
    """With real activations; with scales a hundred times too small nothing is left of it."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(4, TINY.hidden, generator=generator).numpy()
    size = (4, TINY.heads, CAPACITY, TINY.head_dim)
    feed = {
        "x": x,
        "position": np.zeros(4, np.int64),
        "steps": np.ones(4, np.int64),
        "recent": np.full((4, RECENT, TINY.codebooks), -1),
        "uniforms": np.zeros((4, ATTEMPTS, TINY.codebooks), np.float32),
        "settings": np.asarray([Sampling().row()] * 4, np.float32),
        **{f"{part}_{n}": np.zeros(size, np.float32) for n in range(TINY.layers) for part in ("key", "value")},
    }

    def hidden(given: dict[str, float] | None) -> np.ndarray:
        exported = graphs.step(tiny_model(), CAPACITY, "float32", given)
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        return np.asarray(ort.InferenceSession(exported.onnx, options).run(["hidden"], feed)[0])

    whole = hidden(None)
    far_too_small = {name: scale / 100 for name, scale in scales.items()}
    errors = [np.square(hidden(given) - whole).mean() / np.square(whole).mean() for given in (scales, far_too_small)]
    assert errors[0] < 0.003
    assert errors[1] > 0.1


def test_it_is_done_on_the_cpu(scales):
    stepper = Stepper(tiny_model(), slots=1, capacity=CAPACITY, ring=64, device=CPU, dtype=torch.float32)
    stepper.device = torch.device("cuda")
    with pytest.raises(ValueError, match="on the CPU"):
        calibrate(stepper, [], 1)

import contextlib
import os

import numpy as np
import onnxruntime as ort
import pytest
from hibari.tts import ASSETS
from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth.engines.onnx_graph import with_outputs


@pytest.fixture(scope="module")
def model() -> bytes:
    with open(os.path.join(ASSETS, "hibari.onnx"), "rb") as file:
        return file.read()


def run(model: bytes) -> dict[str, np.ndarray]:
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    feed = {"ids": np.arange(0, 40, dtype=np.int64)[None], "speed": np.ones(1, np.float32)}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, map(np.asarray, session.run(None, feed)), strict=True))


def test_an_inner_tensor_becomes_the_output(model: bytes):
    outputs = run(with_outputs(model, ("/head/Add_output_0", "f0"), frozenset({"/Transpose_58_output_0", "lh"})))
    whole = run(model)

    assert list(outputs) == ["/head/Add_output_0", "f0"]
    split = np.split(outputs["/head/Add_output_0"][0].T, 5)
    for name, part in zip(("lh", "theta", "ln", "lr", "phi"), split, strict=True):
        assert np.array_equal(part, whole[name][0])
    assert np.array_equal(outputs["f0"], whole["f0"])


def test_a_tensor_that_is_not_there_is_refused_by_onnxruntime(model: bytes):
    with pytest.raises(Exception, match="no_such_tensor"):
        run(with_outputs(model, ("no_such_tensor",), frozenset()))


def test_a_model_cut_short_is_no_model(model: bytes):
    with pytest.raises(ValueError, match="cut short"):
        with_outputs(model[:-100], ("f0",), frozenset())


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_a_value_error(noise: bytes):
    with contextlib.suppress(ValueError):
        assert isinstance(with_outputs(noise, ("f0",), frozenset()), bytes)

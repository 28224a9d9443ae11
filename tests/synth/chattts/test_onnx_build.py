import numpy as np
import onnx
import onnxruntime as ort

from voxgate.synth.chattts.onnx_build import FLOAT, Graph


def computed(graph: Graph, x: np.ndarray) -> np.ndarray:
    runner = ort.InferenceSession(graph.bytes(), providers=["CPUExecutionProvider"])
    return np.asarray(runner.run(None, {"x": x})[0])


def linear(scales: dict[str, float] | None = None) -> Graph:
    weight = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    graph = Graph("test", "float32", scales)
    y = graph.linear("layer", graph.input("x", FLOAT, ["B", 4]), weight, np.ones(3, np.float32))
    graph.output("y", y, FLOAT, ["B", 3])
    return graph


X = np.array([[1.0, -0.5, 0.25, 2.0]], np.float32)


def test_a_linear_layer_is_one():
    weight = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

    assert np.allclose(computed(linear(), X), X @ weight.T + 1, atol=1e-6)


def test_a_quantized_layer_is_nearly_the_same_and_has_integers_inside():
    graph = linear({"layer": 2.0 / 127})
    model = onnx.load_from_string(graph.bytes())

    assert [node.op_type for node in model.graph.node][:3] == ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear"]
    assert np.abs(computed(graph, X) - computed(linear(), X)).max() < 0.05
    assert not np.array_equal(computed(graph, X), computed(linear(), X))


def test_what_is_over_the_scale_is_clipped():
    small, large = (computed(linear({"layer": scale}), 10 * X) for scale in (2.0 / 127, 20.0 / 127))

    assert np.abs(small - large).max() > 1


def test_constants_of_one_name_are_stored_once():
    graph = Graph("test", "bfloat16")
    assert graph.number(1.5) == graph.number(1.5)
    graph.output("y", graph.number(1.00390625), graph.type, [])
    stored = {tensor.name: tensor.raw_data for tensor in onnx.load_from_string(graph.bytes()).graph.initializer}

    assert len(stored) == 2
    assert stored[graph.number(1.00390625)] == b"\x80\x3f"  # half way between two, to the even one

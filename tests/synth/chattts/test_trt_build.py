"""Engines are really built here, for three kinds of GPU, without any."""

import pytest

from tiny_chattts import tiny_model
from voxgate.synth.chattts import graphs
from voxgate.synth.chattts.errors import BuildError, ProfileError
from voxgate.synth.chattts.graphs import Exported
from voxgate.synth.chattts.onnx_build import INT64, Graph
from voxgate.synth.chattts.plans import Range, Recipe, buckets
from voxgate.synth.chattts.trt_build import build, builder_name, plan_key, tensorrt

CAPACITY = 48
TARGETS = ("8.6", "8.9", "12.0")
T = Range(2, 8, 16)
SCALES = {f"{n}.{part}": 0.05 for n in range(2) for part in ("qkv", "out", "gate_up", "down")}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_every_graph_is_built(target, precision):
    model = tiny_model()
    wanted = [
        (graphs.step(model, CAPACITY, precision), buckets(4)),
        (graphs.prefill(model, CAPACITY, precision), ({"B": Range(1, 1, 1), "T": T},)),
        (graphs.vocoder(model, precision), buckets(4, T=T)),
    ]

    for exported, profiles in wanted:
        assert len(build(exported, Recipe(target, profiles))) > 100_000


@pytest.mark.parametrize("target", TARGETS)
def test_a_quantized_graph_is_built(target):
    profiles = ({"B": Range(1, 2, 4)},)
    whole, quantized = (
        build(graphs.step(tiny_model(), CAPACITY, "float16", scales), Recipe(target, profiles))
        for scales in (None, SCALES)
    )

    assert quantized != whole


def test_a_device_it_does_not_build_for_is_refused():
    exported, profiles = graphs.prefill(tiny_model(), CAPACITY, "float16"), ({"B": Range(1, 1, 1), "T": T},)

    for target in ("9.0", "10.0", "1.7"):  # it does not know Hopper, the big Blackwell, and what is none
        with pytest.raises(BuildError, match=f"compute capability {target}"):
            build(exported, Recipe(target, profiles))


def test_an_input_that_would_be_ignored_is_an_error():
    """The operator `Attention` takes the lengths of its rows, and TensorRT drops them with a warning."""
    graph = Graph("attention", "float16")
    q, k, v = (graph.input(name, graph.type, ["B", 2, 4, 16]) for name in "qkv")
    lengths = graph.input("lengths", INT64, ["B"])
    graph.output("y", graph.op("Attention", q, k, v, "", "", "", lengths), graph.type, ["B", 2, 4, 16])
    exported = Exported("attention", graph.bytes(), "float16", graph.inputs)

    with pytest.raises(BuildError, match="an input would be ignored"):
        build(exported, Recipe("8.9", ({"B": Range(1, 2, 4)},)))


def test_bytes_that_are_no_graph_are_refused():
    with pytest.raises(BuildError, match="broken cannot be read"):
        build(Exported("broken", b"nothing of the kind", "float16", {}), Recipe("8.9", ()))


def test_a_profile_that_leaves_an_axis_open_is_refused():
    with pytest.raises(ProfileError, match="no range for the axis B"):
        build(graphs.step(tiny_model(), CAPACITY, "float16"), Recipe("8.9", ({"T": T},)))


def test_the_key_holds_the_version_that_builds():
    trt = tensorrt()
    exported = graphs.prefill(tiny_model(), CAPACITY, "float16")
    recipe = Recipe("current", ({"B": Range(1, 1, 1), "T": T},))

    assert builder_name(trt).split()[0] in ("tensorrt", "tensorrt_rtx")
    assert plan_key(exported, recipe, "H200") != plan_key(exported, recipe, "L4")
    fixed = Recipe("8.9", recipe.profiles)
    assert plan_key(exported, fixed, "H200") == plan_key(exported, fixed, "L4")

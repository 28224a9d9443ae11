import hashlib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tiny_chattts import tiny_model, write_directory
from voxgate.synth.chattts import layout
from voxgate.synth.chattts.directory import read_manifest
from voxgate.synth.chattts.errors import DeviceError, WeightsError
from voxgate.synth.chattts.plans import PlanCache
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.workshop import PLANS, Order, build_engines, gpu_name, import_directory, verify

cudart: Any = import_module("cuda.bindings.runtime")
ORDER = Order(target="8.9", slots=2, capacity=48)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_directory(tmp_path / "chattts")


def sums(folder: Path) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in layout.CHECKSUMS}


def test_an_import_verifies_measures_and_leaves_a_manifest(folder):
    told: list[str] = []

    manifest = import_directory(folder, TINY, told.append, sums(folder))

    assert read_manifest(folder) == manifest
    assert manifest.curve[TINY.context_steps] > 80
    assert manifest.look_ahead.least <= manifest.look_ahead.most <= TINY.context_steps
    assert told[1] == "voices: chattts"


def test_an_import_of_other_files_says_which_and_leaves_no_manifest(folder):
    (folder / layout.VOCOS).unlink()
    with pytest.raises(WeightsError) as caught:
        import_directory(folder, TINY, print)

    assert "Vocos.safetensors is missing" in caught.value.problems
    assert len(caught.value.problems) == len(layout.CHECKSUMS)
    with pytest.raises(WeightsError, match="has not been imported"):
        read_manifest(folder)


def test_engines_are_built_once_and_found_again(folder):
    import_directory(folder, TINY, print, sums(folder))
    told: list[str] = []

    built = build_engines(folder, tiny_model(), ORDER, told.append)
    again = build_engines(folder, tiny_model(), ORDER, told.append)

    assert [each.graph for each in built] == ["prefill", "step", "vocoder"]
    assert again == built
    assert told[3:] == ["prefill: built already", "step: built already", "vocoder: built already"]


def test_quantized_engines_are_others(folder):
    whole = build_engines(folder, tiny_model(), ORDER, print)
    quantized = build_engines(folder, tiny_model(), Order("8.9", slots=2, capacity=48, int8=True), print)

    same = {each.graph for each in whole if each.key in {other.key for other in quantized}}
    assert same == {"vocoder"}


def test_damage_is_found(folder):
    import_directory(folder, TINY, print, sums(folder))
    (built, *_) = build_engines(folder, tiny_model(), ORDER, print)
    assert verify(folder, print) == []

    (folder / PLANS / f"{built.key}.plan").write_bytes(b"cut short")
    (folder / layout.EMBED).write_bytes(b"cut short")
    problems = verify(folder, print)
    assert problems[0].startswith("Embed.safetensors has changed")
    assert problems[1] == f"prefill ({built.key}) is damaged: build it again"
    assert PlanCache(folder / PLANS).get(built.key) is None


def test_without_a_gpu_there_is_none_to_name():
    if cudart.cudaGetDeviceCount()[0].value == 0:
        assert gpu_name()
    else:
        with pytest.raises(DeviceError, match="no GPU"):
            gpu_name()

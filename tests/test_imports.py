"""Who may import whom. The tables below are the rule; a part that is missing in them may import nothing of ours."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tree import ROOT, modules, parse

# What each part may import of the others, besides itself. Parts that share a type have it passed in.
MAY_IMPORT = {
    "admission": set(),
    "codecs": set(),
    "synth": set(),
    "client": set(),
    "gateway": {"admission", "codecs", "synth"},
    "loadtest": {"client"},
    "__main__.py": {"gateway"},
    "__init__.py": set(),
}
# Single files that may import more than their part: what they join exists nowhere else.
ALSO_MAY_IMPORT = {
    "client/decode.py": {"codecs"},
    "gateway/cli/say.py": {"client"},
    "gateway/cli/voices.py": {"client"},
    "gateway/cli/bench.py": {"client"},
    "gateway/cli/bench_afternoon.py": {"client"},
    "gateway/cli/bench_capacity.py": {"client", "loadtest"},
    "gateway/cli/loadtest.py": {"client", "loadtest"},
    "gateway/cli/quality/speaking.py": {"client"},
    "gateway/cli/bench_quality.py": {"client"},
    "gateway/cli/quality/joined.py": {"client"},
    "gateway/cli/quality/understood.py": {"client"},
}
# Drivers of models, devices and stores, and the file that knows each; an engine may be two.
DRIVEN_BY = {
    "cuda": {"synth/chattts/cuda.py"},
    "gevent": {"loadtest/locustfile.py"},
    "hibari": {
        "gateway/cli/bench_afternoon.py",
        "synth/engines/hibari.py",
        "synth/engines/pronunciation.py",
        "synth/engines/waveform.py",
    },
    "lameenc": {"codecs/mp3.py"},
    "locust": {"loadtest/locustfile.py"},
    "onnx": {"synth/chattts/onnx_build.py"},
    "onnxruntime": {"synth/engines/hibari.py"},
    "opuslib_next": {"codecs/opus.py"},
    "prometheus_client": {"gateway/metrics.py"},
    "pynvml": {"admission/vram.py"},
    "ray": set(),
    "safetensors": {"synth/chattts/weights.py"},
    "redis": {"synth/cache/redis.py"},
    "soundfile": {"codecs/sndfile.py"},
    "soxr": {"codecs/resample.py"},
    # By name alone, because it is one of three modules: trt_build.py.
    "tensorrt": set(),
    "tensorrt_rtx": set(),
    "tokenizers": {"synth/chattts/prompt.py"},
    "torch": {
        # The model: each file is one part of its computation.
        "synth/chattts/dvae.py",
        "synth/chattts/llama.py",
        "synth/chattts/sampler.py",
        "synth/chattts/vocoder.py",
        "synth/chattts/weights.py",
        # What runs it.
        "synth/chattts/calibration.py",
        "synth/chattts/core.py",
        "synth/chattts/device.py",
        "synth/chattts/lookahead.py",
        "synth/chattts/replay.py",
        "synth/chattts/renderer.py",
        "synth/chattts/stepper.py",
        "synth/chattts/trt_core.py",
        "synth/chattts/workshop.py",
    },
}


def imported(module: Path) -> Iterator[tuple[str, ...]]:
    """Every import of a module, wherever it stands in it, as a dotted path in parts; ours begin with "voxgate"."""
    package = ("voxgate", *module.parent.parts)
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            path = (*base, *(node.module.split(".") if node.module else ()))
            yield from ((*path, alias.name) for alias in node.names)


@pytest.mark.parametrize("module", modules(), ids=str)
def test_a_part_imports_only_what_its_row_allows(module):
    part = module.parts[0]
    allowed = MAY_IMPORT[part] | ALSO_MAY_IMPORT.get(str(module), set()) | {part}
    parts = {path[1] for path in imported(module) if path[0] == "voxgate" and path[1] in MAY_IMPORT}

    assert parts - allowed == set()


@pytest.mark.parametrize("module", modules(), ids=str)
def test_siblings_are_imported_relatively(module):
    absolute = [node for node in ast.walk(parse(module)) if isinstance(node, ast.ImportFrom) and not node.level]

    assert [node.module for node in absolute if (node.module or "").split(".")[0] == "voxgate"] == []


@pytest.mark.parametrize("driver", DRIVEN_BY)
def test_one_file_knows_each_driver(driver):
    importers = {str(module) for module in modules() if driver in {path[0] for path in imported(module)}}

    assert importers <= DRIVEN_BY[driver]


@pytest.mark.parametrize("name", sorted({*ALSO_MAY_IMPORT, *(file for files in DRIVEN_BY.values() for file in files)}))
def test_the_tables_name_files_that_exist(name):
    assert (ROOT / name).is_file()


@pytest.mark.parametrize(
    ("entry", "never_loaded"),
    [
        ("voxgate", {"numpy", "starlette", "websockets"}),
        ("voxgate.gateway.app", {"hibari", "onnxruntime", "redis", "torch"}),
        ("voxgate.gateway.cli", {"hibari", "onnxruntime", "torch"}),
        ("voxgate.client", {"hibari", "onnxruntime", "scipy", "starlette", "uvicorn", "voxgate.gateway"}),
    ],
)
def test_importing_loads_nothing_heavy(entry, never_loaded):
    program = f"import sys, {entry}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/")

    assert never_loaded & set(loaded.stdout.split()) == set()

"""Binding, aliasing, profiles and cancellation, on a stand-in for TensorRT whose surface is held against the real."""

import inspect
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fakes import trt_on_host as host
from tiny_chattts import CPU, tiny_model
from voxgate.synth.chattts import graphs
from voxgate.synth.chattts.cuda import Cuda, view
from voxgate.synth.chattts.errors import DeviceError, OutOfMemory, ProfileError
from voxgate.synth.chattts.graphs import Exported
from voxgate.synth.chattts.llama import Llama
from voxgate.synth.chattts.plans import Profile, Range, Recipe, buckets
from voxgate.synth.chattts.sampler import RECENT, Sampling, sample
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.trt_run import Binding, Program, Submission
from voxgate.synth.chattts.uniforms import ATTEMPTS

real: Any = import_module("tensorrt_rtx_bindings")
runtime: Any = import_module("cuda.bindings.runtime")
CAPACITY = 32
ROWS = 3
FLOAT, WHOLE = np.dtype(np.float32), np.dtype(np.int64)
CACHE = (TINY.heads, CAPACITY, TINY.head_dim)


class Bench:
    """A device, and arrays on it."""

    def __init__(self) -> None:
        self.api = host.HostCuda()
        self.cuda = Cuda(self.api)
        self.log = SimpleNamespace(messages=[])
        self.trt = host.module(self.api)

    def program(self, exported: Exported, profiles: tuple[Profile, ...]) -> Program:
        recipe = Recipe("8.9", profiles)
        shapes = [recipe.shapes(exported, profile) for profile in profiles]
        return Program(self.trt, self.log, host.plan_of(exported.onnx, exported.inputs, shapes))

    def put(self, values: Any, dtype: np.dtype[Any]) -> Binding:
        array = np.ascontiguousarray(values, dtype)
        address, pinned = self.cuda.allocate(array.nbytes), self.cuda.pinned(array.nbytes)
        view(pinned, array.shape, dtype)[...] = array
        self.cuda.upload(address, pinned, array.nbytes)
        return Binding(address, array.shape)

    def get(self, binding: Binding, dtype: np.dtype[Any]) -> np.ndarray:
        size = int(np.prod(binding.shape)) * dtype.itemsize
        pinned = self.cuda.pinned(size)
        self.cuda.download(pinned, binding.address, size)
        self.cuda.settle()
        return view(pinned, binding.shape, dtype).copy()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def step_bindings(bench: Bench, caches: dict[str, Binding], x: Any, position: Any, uniforms: Any) -> dict[str, Binding]:
    rows = len(position)
    cut = {name: Binding(each.address, (rows, *CACHE)) for name, each in caches.items()}
    return {
        "x": bench.put(x, FLOAT),
        "position": bench.put(position, WHOLE),
        "steps": bench.put(np.ones(rows), WHOLE),
        "recent": bench.put(np.full((rows, RECENT, TINY.codebooks), -1), WHOLE),
        "uniforms": bench.put(uniforms, FLOAT),
        "settings": bench.put([Sampling().row()] * rows, FLOAT),
        "hidden": bench.put(np.zeros((rows, TINY.hidden)), FLOAT),
        "codes": bench.put(np.zeros((rows, TINY.codebooks)), WHOLE),
        "next": bench.put(np.zeros((rows, TINY.hidden)), FLOAT),
        **cut,
        **{f"new_{name}": each for name, each in cut.items()},
    }


def caches(bench: Bench) -> dict[str, Binding]:
    names = [f"{part}_{n}" for n in range(TINY.layers) for part in ("key", "value")]
    return {name: bench.put(np.zeros((ROWS, *CACHE)), FLOAT) for name in names}


def test_slots_are_filled_and_stepped_in_place_as_torch_does(bench):
    """A prompt into the row of its slot, by address; then all rows at once, over the same memory."""
    llama = Llama(tiny_model(), CAPACITY, CPU, torch.float32)
    generator = torch.Generator().manual_seed(0)
    prefill = bench.program(
        graphs.prefill(tiny_model(), CAPACITY, "float32"), ({"B": Range(1, 1, 1), "T": Range(1, 8, 16)},)
    )
    step = bench.program(graphs.step(tiny_model(), CAPACITY, "float32"), buckets(4))
    held = caches(bench)
    kept = torch.zeros(TINY.layers, 2, ROWS, *CACHE)
    row_bytes = int(np.prod(CACHE)) * 4
    for slot, length in enumerate((4, 9, 2)):
        prompt = torch.randn(1, length, TINY.hidden, generator=generator)
        llama.prefill(prompt, torch.tensor([slot]), kept)
        row = {name: Binding(each.address + slot * row_bytes, (1, *CACHE)) for name, each in held.items()}
        given = {"x": bench.put(prompt, FLOAT), "start": bench.put([0], WHOLE)}
        prefill.submit(bench.cuda, {**given, **row, **{f"new_{name}": each for name, each in row.items()}}).wait()

    x = torch.randn(ROWS, TINY.hidden, generator=generator)
    settings, recent = torch.tensor([Sampling().row()] * ROWS), torch.full((ROWS, RECENT, TINY.codebooks), -1)
    for n in range(4):
        position = torch.tensor([4, 9, 2]) + n
        uniforms = torch.rand(ROWS, ATTEMPTS, TINY.codebooks, generator=generator)
        hidden = llama.step(x, position, kept, CAPACITY)
        codes = sample(llama.scores(hidden), recent, uniforms, settings, torch.ones(ROWS, dtype=torch.int64))
        bound = step_bindings(bench, held, x, position, uniforms)
        step.submit(bench.cuda, bound).wait()

        assert np.allclose(bench.get(bound["hidden"], FLOAT), hidden.numpy(), atol=1e-4)
        assert bench.get(bound["codes"], WHOLE).tolist() == codes.tolist()
        x = llama.embed_codes(codes)
    bench.cuda.close()
    assert bench.api.memory == {}


def test_the_narrowest_profile_that_fits_is_taken(bench):
    step = bench.program(graphs.step(tiny_model(), CAPACITY, "float32"), buckets(20))

    def chosen(rows: int) -> int:
        sizes = graphs.step(tiny_model(), CAPACITY, "float32").inputs
        return step.profile({name: tuple(rows if s == "B" else int(s) for s in size) for name, size in sizes.items()})

    assert [chosen(rows) for rows in (1, 2, 3, 4, 8, 20)] == [0, 1, 1, 2, 3, 4]
    with pytest.raises(ProfileError, match="no profile of the engine takes"):
        chosen(21)


def test_a_batch_over_every_profile_is_refused(bench):
    step = bench.program(graphs.step(tiny_model(), CAPACITY, "float32"), buckets(2))
    zeros = np.zeros((ROWS, TINY.hidden)), np.zeros(ROWS), np.zeros((ROWS, ATTEMPTS, TINY.codebooks))

    with pytest.raises(ProfileError, match="no profile"):
        step.submit(bench.cuda, step_bindings(bench, caches(bench), *zeros))


def test_a_cache_that_is_not_written_in_place_is_refused(bench):
    step = bench.program(graphs.step(tiny_model(), CAPACITY, "float32"), buckets(4))
    zeros = np.zeros((2, TINY.hidden)), np.zeros(2), np.zeros((2, ATTEMPTS, TINY.codebooks))
    bound = step_bindings(bench, caches(bench), *zeros)

    with pytest.raises(ProfileError, match="new_key_1 must lie where key_1 does"):
        step.submit(bench.cuda, {**bound, "new_key_1": bound["new_key_0"]})
    with pytest.raises(ProfileError, match="missing: \\['codes'\\], unknown: \\['cods'\\]"):
        step.submit(bench.cuda, {"cods" if name == "codes" else name: each for name, each in bound.items()})


def vocoder_run(bench: Bench, done: list[str]) -> tuple[Submission, Binding]:
    program = bench.program(graphs.vocoder(tiny_model(), "float32"), buckets(2, T=Range(2, 4, 8)))
    states = torch.randn(1, 4, TINY.hidden, generator=torch.Generator().manual_seed(4))
    bound = {
        "hidden": bench.put(states, FLOAT),
        "lengths": bench.put([4], WHOLE),
        "sound": bench.put(np.zeros((1, 4 * TINY.samples_per_step)), FLOAT),
    }
    return program.submit(bench.cuda, bound, release=lambda: done.append("released")), bound["sound"]


def test_memory_is_held_until_the_device_has_passed_it(bench):
    done: list[str] = []
    submission, sound = vocoder_run(bench, done)
    assert not submission.reap()
    assert done == []

    submission.wait()
    assert done == ["released"]
    assert submission.reap()
    assert bench.get(sound, FLOAT).any()


def test_what_was_cancelled_is_computed_and_then_let_go_without_waiting(bench):
    done: list[str] = []
    submission, _ = vocoder_run(bench, done)
    submission.cancel()
    assert submission.cancelled
    assert not submission.reap()

    bench.cuda.settle()
    assert submission.reap()
    assert submission.reap()
    assert done == ["released"]


def test_an_engine_of_another_device_is_refused(bench):
    with pytest.raises(DeviceError, match="another device or version of TensorRT: not a plan"):
        Program(bench.trt, bench.log, b"\0" * 8 + b"not a graph")


def test_too_little_memory_is_an_error_of_its_own(bench):
    with pytest.raises(OutOfMemory):
        bench.cuda.allocate(1 << 40)


# --- the stand-in has the real one's surface ------------------------------------------------------------------------


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


CALLS = [name for name in vars(host.HostCuda) if name.startswith("cuda") and name[4].isupper()]


@pytest.mark.parametrize("name", CALLS)
def test_the_cuda_calls_are_those_of_cuda_python(name):
    ours, theirs = getattr(host.HostCuda, name), getattr(runtime, name)
    if name == "cudaMemcpyKind":
        assert {each.name: each.value for each in host.cudaMemcpyKind} == {
            each.name: int(getattr(theirs, each.name)) for each in host.cudaMemcpyKind
        }
    else:
        assert parameters(ours) == parameters(theirs)


def test_the_cuda_errors_are_those_of_cuda_python():
    assert {each.name: each.value for each in host.cudaError_t} == {
        each.name: int(getattr(runtime.cudaError_t, each.name)) for each in host.cudaError_t
    }
    assert runtime.cudaStreamNonBlocking == 1
    assert runtime.cudaEventDisableTiming == 2


@pytest.mark.parametrize("kind", [host.IExecutionContext, host.ICudaEngine, host.Runtime])
def test_the_calls_are_those_of_tensorrt(kind):
    """pybind writes signatures into docstrings; of overloads one must be ours."""
    theirs = getattr(real, kind.__name__)
    for name, ours in vars(kind).items():
        if name.startswith("_") or name == "check" or not callable(ours):
            continue
        lines = [line for line in (getattr(theirs, name).__doc__ or "").splitlines() if f"{name}(self" in line]
        given = parameters(ours)
        assert any(all(f"{each}:" in line for each in given) and line.count("self") for line in lines), name
    for name in ("num_io_tensors", "num_optimization_profiles"):
        assert hasattr(real.ICudaEngine, name)
    assert {mode.name for mode in host.TensorIOMode} <= set(real.TensorIOMode.__members__)

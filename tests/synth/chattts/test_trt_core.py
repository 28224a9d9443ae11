"""The whole engine on TensorRT's path, over the stand-in: what is heard is what torch says."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fakes import trt_on_host as host
from tiny_chattts import CPU, SLOTS, alike, run, segment, tiny_engine, tiny_model, write_directory
from voxgate.synth.chattts.engine import ChatTTSEngine, make
from voxgate.synth.chattts.errors import ProfileError
from voxgate.synth.chattts.plans import Recipe
from voxgate.synth.chattts.sampler import Sampling
from voxgate.synth.chattts.trt_core import Programs, TensorRtVocoder
from voxgate.synth.chattts.trt_run import Program
from voxgate.synth.chattts.vocoder import Vocoder
from voxgate.synth.chattts.workshop import Order, exports
from voxgate.synth.engine import Setup, Window
from voxgate.synth.segment import Style

CAPACITY = 200
TEXTS = ["hello there", "你好", "a b c d e f g", "yes", "no, not at all", "z"]


class AtOnce(list[Callable[[], object]]):
    """What a stream is asked for, done when it is asked: torch on the CPU waits for no stream."""

    def append(self, work: Callable[[], object], /) -> None:
        work()


def programs(slots: int = SLOTS) -> Programs:
    api = host.HostCuda(foreign=True)
    _, stream = api.cudaStreamCreateWithFlags(1)
    api.streams[stream].pending = AtOnce()
    trt, log, loaded = host.module(api), SimpleNamespace(messages=[]), {}
    for exported, profiles in exports(tiny_model(), Order("8.9", "float32", slots, CAPACITY)):
        recipe = Recipe("8.9", profiles)
        shapes = [recipe.shapes(exported, profile) for profile in profiles]
        loaded[exported.name] = Program(trt, log, host.plan_of(exported.onnx, exported.inputs, shapes))
    return Programs(**loaded, stream=lambda: stream)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_directory(tmp_path_factory.mktemp("weights") / "chattts")


def warmed(folder: Path, loaded: Programs | None, sampling: Sampling | None = None) -> ChatTTSEngine:
    engine = tiny_engine(folder, loaded, sampling=sampling or Sampling(temperature=0.7))
    engine.warm()
    return engine


@pytest.fixture(scope="module")
def torch_engine(folder: Path) -> ChatTTSEngine:
    return warmed(folder, None)


@pytest.fixture(scope="module")
def trt_engine(folder: Path) -> ChatTTSEngine:
    return warmed(folder, programs())


def codes_of(engine: ChatTTSEngine, slot: int, steps: int) -> list[list[int]]:
    return engine._stepper.codes[slot, :steps].tolist()


def test_more_segments_than_slots_are_heard_as_torch_says_them(torch_engine, trt_engine):
    """Slots join as others leave, at positions of their own."""
    expected, heard = run(torch_engine, TEXTS), run(trt_engine, TEXTS)

    assert all(len(sound) > 1000 for sound in heard)
    assert all(alike(one, other) for one, other in zip(expected, heard, strict=True))
    assert not alike(heard[0], heard[2])


def test_codes_are_torchs_while_slots_are_held_cancelled_and_loaded_again(torch_engine, trt_engine):
    told = []
    for engine in (torch_engine, trt_engine):
        for slot, text in enumerate(("hello there", "a b c d e f g", "not at all")):
            engine.prefill(slot, segment(text), Style("one", seed=slot))
        rows = [(0, 1, 2)] * 3 + [(0, 2)] * 4 + [(0, 1, 2)] * 2  # slot 1 is held for a while
        for row in rows:
            engine.step(row)
        engine.release(2)  # cancelled in mid-speech
        engine.prefill(2, segment("yes indeed"), Style("other", seed=7))
        for _ in range(5):
            engine.step((0, 1, 2))
        told.append([codes_of(engine, 0, 12), codes_of(engine, 1, 8), codes_of(engine, 2, 4)])
        for slot in range(3):
            engine.release(slot)

    assert told[0] == told[1]
    assert len({str(each) for each in told[1]}) == 3


def test_greedy_codes_are_torchs_too(folder):
    told = []
    for loaded in (None, programs()):
        engine = warmed(folder, loaded, sampling=Sampling(temperature=0))
        engine.prefill(1, segment("hello there"), Style("one"))
        for _ in range(10):
            engine.step((1,))
        told.append(codes_of(engine, 1, 10))
    assert told[0] == told[1]


def test_a_window_is_decoded_as_the_torch_vocoder_does_however_short_it_is():
    vocoder = TensorRtVocoder(programs(), tiny_model().shape, torch.float32)
    expected = Vocoder(tiny_model(), CPU, torch.float32)
    for steps in (1, 2, 31):
        states = torch.randn(3, steps, tiny_model().shape.hidden, generator=torch.Generator().manual_seed(steps))
        lengths = torch.tensor([steps, max(1, steps - 1), 1])
        assert torch.allclose(vocoder(states, lengths), expected(states, lengths), atol=1e-4)


@pytest.mark.parametrize("slots", [1, 3, 5])
def test_every_size_that_may_be_needed_has_a_profile(folder, slots):
    """Numbers of slots between powers of two, too: a GPU's renderer rounds its batches up."""
    loaded = programs(slots)
    engine = tiny_engine(folder, loaded, slots)
    engine.warm()
    vocoder = TensorRtVocoder(loaded, tiny_model().shape, torch.float32)
    for rows in engine._renderer._rows:
        states = torch.ones(rows, 64, tiny_model().shape.hidden)
        assert len(vocoder(states, torch.full((rows,), 64))) == rows


def test_a_batch_that_no_engine_was_built_for_is_refused(folder):
    engine = tiny_engine(folder, programs(slots=2))  # it has four slots
    with pytest.raises(ProfileError, match="no profile"):
        engine.warm()


def test_sound_of_a_window_reaches_the_listener_in_order(trt_engine):
    trt_engine.prefill(0, segment("hello there"), Style("one"))
    for _ in range(12):
        trt_engine.step((0,))
    first = trt_engine.decode([Window(0, 0, 4, 12, False)])[0]
    trt_engine.release(0)
    assert np.abs(first).max() > 0


def test_tensorrt_without_a_gpu_is_refused_at_the_start(folder):
    with pytest.raises(ValueError, match="needs a GPU: set `device`"):
        make(Setup("chattts", options={"folder": str(folder), "runtime": "tensorrt"}))
    with pytest.raises(ValueError, match="runtime 'cuda' is none of torch, tensorrt"):
        make(Setup("chattts", options={"folder": str(folder), "runtime": "cuda"}))
    with pytest.raises(ValueError, match="int8 is for the runtime tensorrt"):
        make(Setup("chattts", options={"folder": str(folder), "int8": True}))

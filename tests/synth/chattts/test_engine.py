from pathlib import Path

import numpy as np
import pytest
import torch

from tiny_chattts import alike, run, segment, tiny_engine, write_directory
from voxgate.synth.chattts.directory import Manifest, stamp, write_manifest
from voxgate.synth.chattts.engine import ChatTTSEngine, make
from voxgate.synth.chattts.errors import DeviceError, TextTooLong, WeightsError
from voxgate.synth.chattts.lookahead import LookAhead
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.engine import Ended, PoolUse, Setup, Window
from voxgate.synth.segment import Style

TEXTS = ["hello there", "你好", "a b c d e f g", "yes", "no, not at all", "z"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_directory(tmp_path_factory.mktemp("weights") / "chattts")


@pytest.fixture(scope="module")
def engine(folder: Path) -> ChatTTSEngine:
    engine = tiny_engine(folder)
    engine.warm()
    return engine


def test_segments_spoken_together_are_heard_as_alone(engine):
    together = run(engine, TEXTS)
    alone = [run(engine, [text], [n])[0] for n, text in enumerate(TEXTS)]

    assert all(len(sound) > 1000 for sound in together)
    assert all(alike(one, other) for one, other in zip(together, alone, strict=True))
    assert not alike(together[0], together[2])


def test_speech_is_the_decode_of_the_whole(engine):
    """One segment with all of its look-ahead: what is heard in chunks is the sound of all hidden states at once."""
    engine.prefill(0, segment("hello there"), Style("one"))
    steps, ended = 0, None
    while ended is None:
        ended = engine.step([0]).get(0)
        steps += 1
    whole = ended.steps
    windows = [Window(0, begin, min(begin + 7, whole), whole, begin + 7 >= whole) for begin in range(0, whole, 7)]
    chunks = [engine.decode([window])[0] for window in windows]
    (again,) = engine.decode([Window(0, 0, ended.steps, ended.steps, True)])
    engine.release(0)

    assert steps - 1 <= ended.steps <= steps
    heard = np.concatenate(chunks).astype(int)
    assert len(heard) > ended.steps * TINY.samples_per_step * 0.8
    assert alike(heard, again)


def test_it_declares_what_it_measured(engine):
    info = engine.info

    assert info.stepwise
    assert [voice.id for voice in info.voices] == ["one", "other"]
    assert info.voices[0].scripts == ("Latin", "Han")
    assert info.steps.samples == TINY.samples_per_step
    assert 0 < info.steps.step_s < 1
    assert 0 < info.steps.decode_s < 1
    assert (info.steps.least_ahead, info.steps.most_ahead) == (TINY.context_steps, TINY.context_steps)


def test_nothing_to_speak_ends_at_once_and_without_a_sound(engine):
    engine.prefill(1, segment("..."), Style("one"))

    assert engine.step([1]) == {1: Ended(0)}
    engine.release(1)


def test_voice_and_seed_are_heard(engine):
    def spoken(style: Style) -> bytes:
        engine.prefill(0, segment("hello there"), style)
        for _ in range(12):
            engine.step([0])
        sound = engine.decode([Window(0, 0, 5, 12, False)])[0]
        engine.release(0)
        return sound.tobytes()

    sounds = [spoken(style) for style in (Style("one"), Style("other"), Style("one", seed=1), Style("one", 2.0))]
    assert len(set(sounds)) == 4
    assert spoken(Style("one")) == sounds[0]


@pytest.mark.parametrize(
    ("style", "problem"), [(Style("nobody"), "unknown voice 'nobody'"), (Style("one", speed=9.0), "speed 9.0")]
)
def test_what_it_cannot_speak_is_refused(engine, style, problem):
    with pytest.raises(ValueError, match=problem):
        engine.prefill(2, segment("hello"), style)
    engine.release(2)


def test_a_text_beyond_a_slot_is_refused(engine):
    with pytest.raises(TextTooLong, match="tokens of text leave"):
        engine.prefill(2, segment("hello " * 60), Style("one"))
    engine.release(2)


def test_a_speech_that_falls_silent_is_ended(engine):
    engine.prefill(0, segment("hello there " * 2), Style("one"))
    engine._renderer._ring[0].zero_()
    for _ in range(5):
        engine.step([0])
    speech = engine._speeches[0]
    speech.watch._silent = 3 * 24_000 + 1
    engine._finish(Window(0, 0, 2, 5, False), np.zeros(32, np.float32))

    assert engine.step([0]) == {0: Ended(2)}
    engine.release(0)


def test_the_pool_says_how_much_of_it_nobody_holds(engine):
    total = engine.pool().reserved_bytes
    assert engine.pool() == PoolUse(total, total)

    engine.prefill(3, segment("hello"), Style("one"))
    assert engine.pool() == PoolUse(total, total * 3 // 4)
    engine.release(3)


def options_of(folder: Path, **options: object) -> Setup:
    return Setup("chattts", options={"folder": str(folder), **options})


def test_a_setup_that_makes_no_sense_says_so(folder):
    with pytest.raises(ValueError, match="no such options: volume"):
        make(options_of(folder, volume=11))
    with pytest.raises(ValueError, match="folder"):
        make(Setup("chattts"))
    with pytest.raises(ValueError, match="top_k 0"):
        make(options_of(folder, top_k=0))
    with pytest.raises(WeightsError, match="has not been imported"):
        make(options_of(folder))


def test_an_imported_directory_of_other_sizes_is_named_tensor_by_tensor(folder):
    write_manifest(folder, Manifest(stamp(folder), LookAhead(3, 52), {}))
    with pytest.raises(WeightsError) as caught:
        make(options_of(folder))

    assert "gpt/config.json: hidden_size is 32, not 768" in caught.value.problems


def test_a_device_that_is_not_there_is_told_before_the_weights_are_read(folder):
    """Where there is one, the weights of other sizes are what is wrong."""
    write_manifest(folder, Manifest(stamp(folder), LookAhead(3, 52), {}))

    with pytest.raises(WeightsError if torch.cuda.is_available() else DeviceError):
        make(Setup("chattts", device="GPU-1", options={"folder": str(folder)}))

"""ChatTTS at a size for tests: the structure of the published model, weights that mean nothing, a toy tokenizer."""

import functools
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from voxgate.synth.chattts import layout
from voxgate.synth.chattts.device import Device
from voxgate.synth.chattts.engine import ChatTTSEngine, Options
from voxgate.synth.chattts.lookahead import LookAhead
from voxgate.synth.chattts.prompt import Prompter
from voxgate.synth.chattts.sampler import Sampling
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.trt_core import Programs
from voxgate.synth.chattts.weights import Model, made_up
from voxgate.synth.ramp import ramp
from voxgate.synth.runner import Runner
from voxgate.synth.segment import Boundary, Segment, Style

CPU = torch.device("cpu")
SLOTS = 4
FADE = 120  # samples
SPEAKERS = {"one": np.ones(TINY.hidden, np.float32), "other": np.linspace(-1, 1, TINY.hidden, dtype=np.float32)}
torch.set_num_threads(1)


@functools.cache
def tiny_model() -> Model:
    return made_up(TINY, seed=1)


def write_directory(folder: Path, *, without: tuple[str, ...] = ()) -> Path:
    """A directory as an operator would have downloaded it."""
    shape = TINY
    (folder / "gpt").mkdir(parents=True)
    (folder / "tokenizer").mkdir()
    config = {
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "rms_norm_eps": shape.rms_eps,
    }
    (folder / layout.CONFIG).write_text(json.dumps(config))
    write_tokenizer(folder / layout.TOKENIZER)
    for file, tensors in tiny_model().files.items():
        save_file({name: tensor.half() for name, tensor in tensors.items()}, folder / file)
    for name in without:
        (folder / name).unlink()
    return folder


def write_tokenizer(path: Path) -> None:
    """Single letters and a few Han characters, and the control tokens, in a vocabulary of the tiny size."""
    controls = ["[Stts]", "[Ptts]", "[spk_emb]", "[empty_spk]", "[uv_break]", "[v_break]", "[lbreak]", "[laugh]"]
    controls += [f"[speed_{n}]" for n in range(10)]
    letters = [*"abcdefghijklmnopqrstuvwxyz,.，。、一二三四五六七八九十百零点你好"]
    pieces = ["[UNK]", *letters, *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
    pieces += [f"[unused{n}]" for n in range(TINY.text_vocabulary - len(pieces) - len(controls))]
    vocabulary = {piece: n for n, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(controls)
    tokenizer.save(str(path))


def tiny_engine(folder: Path, programs: Programs | None = None, slots: int = SLOTS, **options: object) -> ChatTTSEngine:
    return ChatTTSEngine(
        tiny_model(),
        Prompter.read(folder, TINY.text_vocabulary),
        SPEAKERS,
        Options(str(folder), **{"capacity": 200, "sampling": Sampling(temperature=0.7), **options}),  # type: ignore[arg-type]
        LookAhead(TINY.context_steps, TINY.context_steps),
        device=Device(CPU, torch.float32),
        slots=slots,
        revision="1",
        widths=(SLOTS,) if slots == SLOTS else None,
        programs=programs,
    )


def segment(text: str, before: Boundary = Boundary.START, after: Boundary = Boundary.END) -> Segment:
    return Segment(0, text, 0, len(text), before, after)


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """The same sound but for rounding, and but for where exactly in its leading silence it was cut."""
    length = min(len(one), len(other)) - 2 * FADE
    return abs(len(one) - len(other)) <= FADE and int(np.abs(one[-length:].astype(int) - other[-length:]).max()) <= 2


def run(engine: ChatTTSEngine, texts: list[str], seeds: list[int] | None = None) -> list[np.ndarray]:
    """What is heard of each text when all are spoken through the runner that a worker has."""
    info = engine.info
    assert info.steps is not None
    runner = Runner(info.max_slots, info.steps.most_steps, info.sample_rate, ramp(info.steps, info.sample_rate))
    for job, text in enumerate(texts):
        runner.add(job, segment(text), Style("one", seed=seeds[job] if seeds else job), 0.0)
    heard: list[list[np.ndarray]] = [[] for _ in texts]
    while runner.jobs or runner.leaving:
        turn = runner.turn(0.0)
        for slot in turn.releases:
            engine.release(slot)
        for join in turn.joins:
            engine.prefill(join.slot, join.segment, join.style)
        if not turn.rows:
            continue
        stepped = runner.stepped(turn, engine.step([slot for slot, _ in turn.rows]), 0.001)
        assert stepped.failed == []
        due = [chunk for chunk in stepped.chunks if chunk.window.end > chunk.window.begin]
        sounds = dict(zip([chunk.job for chunk in due], engine.decode([chunk.window for chunk in due]), strict=True))
        for chunk in stepped.chunks:
            sound = sounds.get(chunk.job, np.zeros(0, np.int16))
            heard[chunk.job].append(sound)
            runner.emitted(chunk, len(sound), 0.0)
    return [np.concatenate(each) for each in heard]

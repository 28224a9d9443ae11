"""ChatTTS at a size for tests: the structure of the published model, weights that mean nothing, a toy tokenizer."""

import functools
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from voxgate.synth.chattts import layout
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.weights import Model, made_up

CPU = torch.device("cpu")
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

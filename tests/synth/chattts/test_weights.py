import hashlib
import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from tiny_chattts import tiny_model, write_directory
from voxgate.synth.chattts import layout
from voxgate.synth.chattts.errors import WeightsError
from voxgate.synth.chattts.shape import TINY, TRUE
from voxgate.synth.chattts.weights import check_files, load, made_up


@pytest.fixture
def folder(tmp_path):
    return write_directory(tmp_path / "chattts")


def problems(folder, **options) -> list[str]:
    with pytest.raises(WeightsError) as caught:
        load(folder, TINY, **options)
    return caught.value.problems


def change(folder, file: str, changed: dict[str, torch.Tensor | None]) -> None:
    tensors = {**load_file(folder / file), **changed}
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, folder / file)


def test_a_directory_is_read_as_it_was_written(folder):
    model = load(folder, TINY, with_dvae=True)

    for file, tensors in tiny_model().files.items():
        assert model[file].keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert torch.equal(model[file][name], tensor.half().float())


def test_the_dvae_is_not_needed_to_speak(folder):
    (folder / layout.DVAE).unlink()

    load(folder, TINY)
    assert problems(folder, with_dvae=True) == ["DVAE.safetensors is missing"]


def test_every_problem_is_named_at_once(folder):
    (folder / layout.VOCOS).unlink()
    (folder / layout.DECODER).write_bytes(b"<html>not found</html>" * 10)
    change(folder, layout.GPT, {"norm.weight": None, "layers.0.mlp.up_proj.weight": torch.zeros(3, 4)})
    change(folder, layout.EMBED, {"emb_text.weight": torch.full((128, 32), torch.nan)})

    found = problems(folder)

    assert "Vocos.safetensors is missing" in found
    assert any(problem.startswith("Decoder.safetensors cannot be read") for problem in found)
    assert "gpt/model.safetensors: the tensor norm.weight is missing" in found
    assert "gpt/model.safetensors: the tensor layers.0.mlp.up_proj.weight has the shape [3, 4], not [64, 32]" in found
    assert "Embed.safetensors: the tensor emb_text.weight holds numbers that are none" in found
    assert len(found) == 5


def test_integers_are_no_weights(folder):
    change(folder, layout.GPT, {"norm.weight": torch.zeros(32, dtype=torch.int32)})

    assert problems(folder) == [
        "gpt/model.safetensors: the tensor norm.weight holds torch.int32, not floating-point numbers"
    ]


def test_the_transformer_may_be_under_a_prefix_and_a_coefficient_in_another_layout(folder):
    stored = load_file(folder / layout.GPT)
    save_file({f"model.{name}": tensor for name, tensor in stored.items()}, folder / layout.GPT)
    change(folder, layout.DECODER, {"coef": torch.ones(TINY.mels)})

    assert load(folder, TINY)[layout.DECODER]["coef"].shape == (1, TINY.mels, 1)


def test_the_config_gives_epsilon_and_theta_and_must_fit(folder):
    config = json.loads((folder / layout.CONFIG).read_text())
    (folder / layout.CONFIG).write_text(json.dumps({**config, "rms_norm_eps": 1e-6, "rope_theta": 5e4}))
    assert load(folder, TINY).shape == replace(TINY, rms_eps=1e-6, rope_theta=5e4)

    (folder / layout.CONFIG).write_text(json.dumps({**config, "num_hidden_layers": 20}))
    assert problems(folder)[0] == "gpt/config.json: num_hidden_layers is 20, not 2"

    (folder / layout.CONFIG).write_text("[]")
    assert problems(folder)[0].startswith("gpt/config.json cannot be read")


def test_files_are_held_against_their_checksums(folder):
    assert len(check_files(folder)) == 7

    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in layout.CHECKSUMS}
    assert check_files(folder, sums) == []

    (folder / layout.EMBED).write_bytes(b"cut short")
    (folder / layout.DVAE).unlink()
    (folder / layout.TOKENIZER).unlink()
    assert [problem.split(":")[0] for problem in check_files(folder, sums)] == [
        "Embed.safetensors is not the published file",
        "tokenizer/tokenizer.json is missing",
    ]


def test_made_up_weights_are_the_same_for_a_seed_and_have_the_published_sizes():
    again = made_up(TINY, seed=1)
    assert all(torch.equal(tiny_model()[layout.GPT][name], tensor) for name, tensor in again[layout.GPT].items())

    sizes = {
        file: sum(torch.Size(size).numel() for size in layout.tensors(file, TRUE).values())
        for file in (layout.GPT, layout.DECODER, layout.VOCOS)
    }
    assert sizes == {layout.GPT: 188_774_400 + 768, layout.DECODER: 25_920_740, layout.VOCOS: 13_531_650}

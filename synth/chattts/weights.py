"""The weights of ChatTTS: read from the directory an operator downloaded them to, or made up by a seed.

Says of every file and tensor that is not as it should be what is wrong with it. Knows no computation: what comes out
are tensors under the names they have in their file.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from . import layout
from .errors import WeightsError
from .shape import Shape

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Model:
    """All tensors of the model by file, float32, and the sizes they have."""

    shape: Shape
    files: Mapping[str, Weights]

    def __getitem__(self, file: str) -> Weights:
        return self.files[file]


def check_files(folder: Path, checksums: Mapping[str, str] = layout.CHECKSUMS) -> list[str]:
    """What is wrong with the files of `folder`, one line each: missing, or other content than was published."""
    problems = []
    for name, wanted in checksums.items():
        path = folder / name
        if not path.is_file():
            if name in layout.NEEDED:
                problems.append(f"{name} is missing")
            continue
        found = _sha256(path)
        if found != wanted:
            problems.append(f"{name} is not the published file: its sha256 is {found}, not {wanted}")
    return problems


def load(folder: Path, shape: Shape, *, with_dvae: bool = False) -> Model:
    """Read the model. Raises `WeightsError` with all that is missing or of another shape or kind."""
    problems: list[str] = []
    shape = _read_config(folder / layout.CONFIG, shape, problems)
    wanted = (layout.GPT, layout.EMBED, layout.DECODER, layout.VOCOS, *((layout.DVAE,) if with_dvae else ()))
    files = {name: _read_file(folder, name, shape, problems) for name in wanted}
    if problems:
        raise WeightsError(problems)
    return Model(shape, files)


def made_up(shape: Shape, seed: int) -> Model:
    """Weights that mean nothing but compute like real ones: every layer keeps its signal at a sane size."""
    generator = torch.Generator().manual_seed(seed)
    names = (layout.GPT, layout.EMBED, layout.DECODER, layout.VOCOS, layout.DVAE)
    files = {
        file: {name: _random(name, size, generator) for name, size in layout.tensors(file, shape).items()}
        for file in names
    }
    return Model(shape, files)


def folded_head(embed: Weights, codebook: int) -> Tensor:
    """W = g * v / |v| of each row: the weight norm, computed once."""
    norm = f"head_code.{codebook}.parametrizations.weight.original"
    direction = embed[f"{norm}1"].double()
    return (embed[f"{norm}0"].double() * direction / direction.norm(dim=1, keepdim=True)).float()


# --- reading --------------------------------------------------------------------------------------------------------


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_CONFIG_NAMES = {
    "hidden_size": "hidden",
    "intermediate_size": "intermediate",
    "num_attention_heads": "heads",
    "num_hidden_layers": "layers",
}


def _read_config(path: Path, shape: Shape, problems: list[str]) -> Shape:
    try:
        config = json.loads(path.read_text())
        eps, theta = float(config.get("rms_norm_eps", shape.rms_eps)), float(config.get("rope_theta", shape.rope_theta))
        found = {name: int(config[name]) for name in _CONFIG_NAMES if name in config}
    except FileNotFoundError:
        problems.append(f"{layout.CONFIG} is missing")
        return shape
    except (OSError, ValueError, TypeError, AttributeError) as error:
        problems.append(f"{layout.CONFIG} cannot be read: {error}")
        return shape
    for name, value in found.items():
        wanted = getattr(shape, _CONFIG_NAMES[name])
        if value != wanted:
            problems.append(f"{layout.CONFIG}: {name} is {value}, not {wanted}")
    return replace(shape, rms_eps=eps, rope_theta=theta)


def _read_file(folder: Path, file: str, shape: Shape, problems: list[str]) -> Weights:
    wanted, found = layout.tensors(file, shape), {}
    try:
        with safe_open(folder / file, framework="pt") as stored:
            names = {name.removeprefix("model."): name for name in stored.keys()}  # noqa: SIM118
            for name, size in wanted.items():
                if name not in names:
                    problems.append(f"{file}: the tensor {name} is missing")
                    continue
                tensor = stored.get_tensor(names[name])
                if tensor.shape != size and tensor.numel() == math.prod(size):
                    tensor = tensor.reshape(size)
                if problem := _problem(tensor, size):
                    problems.append(f"{file}: the tensor {name} {problem}")
                found[name] = tensor.float()
    except FileNotFoundError:
        problems.append(f"{file} is missing")
    except (SafetensorError, OSError) as error:
        problems.append(f"{file} cannot be read: {error}")
    return found


def _problem(tensor: Tensor, size: tuple[int, ...]) -> str:
    if tuple(tensor.shape) != size:
        return f"has the shape {list(tensor.shape)}, not {list(size)}"
    if not tensor.is_floating_point():
        return f"holds {tensor.dtype}, not floating-point numbers"
    if not torch.isfinite(tensor).all():
        return "holds numbers that are none"
    return ""


# --- making up ------------------------------------------------------------------------------------------------------


def _random(name: str, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    drawn = torch.randn(size, generator=generator)
    last = name.rsplit(".", 1)[-1]
    if name == "coef":
        return 1 + 0.1 * drawn
    if "norm" in name and "parametrizations" not in name:
        return 1 + 0.1 * drawn if last == "weight" else 0.1 * drawn
    if last == "gamma" or (last == "weight" and len(size) == 1):  # the per-channel scale of a block
        return 0.3 * drawn
    if last == "bias":
        return 0.1 * drawn
    if last == "original0":
        return 2 + 0.1 * drawn.abs()
    if last == "original1" or name.startswith("emb_"):
        return drawn if last == "original1" else 0.5 * drawn
    return drawn / math.sqrt(math.prod(size[1:]))

"""The operator's directory of weights and voices, and what its import found out about it.

    DIR/gpt/… Embed.safetensors …   as downloaded
    DIR/speakers/NAME.txt           a speaker string: the voice NAME
    DIR/speaker-statistics.txt      for random voices
    DIR/voxgate.json                written by `voxgate engine import`: what was verified and measured

Knows no tensors.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from . import layout
from .errors import SpeakerError, WeightsError
from .lookahead import LookAhead
from .speaker import from_string, random_speaker, read_statistics

MANIFEST = "voxgate.json"
SPEAKERS = "speakers"
STATISTICS = "speaker-statistics.txt"
DEFAULT = "chattts"  # the voice without a speaker
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an import found. `files`: size in bytes and modification time in ns of each."""

    files: dict[str, tuple[int, int]]
    look_ahead: LookAhead
    curve: dict[int, float]  # dB, by steps of look-ahead

    @property
    def revision(self) -> str:
        """Changes with the files and with what was chosen for them."""
        sizes = {name: size for name, (size, _) in sorted(self.files.items())}
        return hashlib.sha256(json.dumps([sizes, asdict(self.look_ahead)]).encode()).hexdigest()[:12]


def stamp(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of the model's files that are there."""
    there = [(name, (folder / name).stat()) for name in layout.CHECKSUMS if (folder / name).is_file()]
    return {name: (status.st_size, status.st_mtime_ns) for name, status in there}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest), indent=1) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Raises `WeightsError` for a directory that was not imported, or whose files have changed since."""
    again = f"run `voxgate engine import chattts {folder}`"
    try:
        stored = json.loads((folder / MANIFEST).read_text())
        manifest = Manifest(
            {name: (int(size), int(time)) for name, (size, time) in stored["files"].items()},
            LookAhead(**stored["look_ahead"]),
            {int(ahead): float(level) for ahead, level in stored["curve"].items()},
        )
    except FileNotFoundError:
        raise WeightsError([f"{folder} has not been imported: {again}"]) from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise WeightsError([f"{folder / MANIFEST} cannot be read ({error}): {again}"]) from error
    found = stamp(folder)
    missing = [f"{name} is missing" for name in layout.NEEDED if name not in found]
    changed = [
        f"{name} has changed since it was imported: {again}"
        for name, status in found.items()
        if manifest.files.get(name, status) != status
    ]
    if problems := missing + changed:
        raise WeightsError(problems)
    return manifest


def voices(folder: Path, width: int, random: tuple[int, ...] = ()) -> dict[str, NDArray[np.float32] | None]:
    """The speakers by the names of their voices; None speaks as the model likes. Raises `SpeakerError`."""
    found: dict[str, NDArray[np.float32] | None] = {}
    for path in sorted((folder / SPEAKERS).glob("*.txt")):
        if not _NAME.fullmatch(path.stem):
            raise SpeakerError(f"{path}: the name of a voice is lower-case letters, digits, - and _")
        try:
            found[path.stem] = from_string(path.read_text(), width)
        except (SpeakerError, OSError, UnicodeError) as error:
            raise SpeakerError(f"{path}: {error}") from error
    if random:
        path = folder / STATISTICS
        if not path.is_file():
            raise SpeakerError(f"random voices need {path}: see docs/gpu.md")
        deviation, mean = read_statistics(path.read_text(), width)
        found |= {f"{DEFAULT}-{seed}": random_speaker(seed, deviation, mean) for seed in random}
    return found or {DEFAULT: None}

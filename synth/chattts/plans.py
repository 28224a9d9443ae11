"""What a TensorRT engine is built for, and the folder where built ones are kept.

An engine (a "plan" on disk) fits one graph, one device, one version of TensorRT and the sizes of its profiles; the key
is made of all of them, so that nothing stale is ever found. Knows no TensorRT.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from .errors import ProfileError
from .graphs import Exported

CURRENT = "current"  # the GPU at hand


@dataclass(frozen=True, slots=True)
class Range:
    """The sizes an open axis may have, and the one to be fastest for."""

    least: int
    best: int
    most: int

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.best <= self.most:
            raise ProfileError(f"{self.least}, {self.best}, {self.most} are no sizes from least to most")


Profile = Mapping[str, Range]  # by the letter of the axis


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to build one graph. `target`: a compute capability like "8.9", or `CURRENT`."""

    target: str
    profiles: tuple[Profile, ...]
    workspace_bytes: int = 2 << 30

    def shapes(self, exported: Exported, profile: Profile) -> dict[str, tuple[tuple[int, ...], ...]]:
        """(least, best, most) shape of every input. Raises `ProfileError` for an axis without a range."""
        found = {}
        for name, size in exported.inputs.items():
            if missing := {axis for axis in size if isinstance(axis, str)} - profile.keys():
                raise ProfileError(f"{exported.name}: no range for the axis {', '.join(sorted(missing))} of {name}")
            kinds = ("least", "best", "most")
            found[name] = tuple(
                tuple(getattr(profile[axis], kind) if isinstance(axis, str) else axis for axis in size)
                for kind in kinds
            )
        return found


def buckets(most: int, axis: str = "B", **others: Range) -> tuple[Profile, ...]:
    """A profile for each doubling of the batch: a step of 3 rows must not be planned for 256."""
    profiles: list[Profile] = []
    least = 1
    while least <= most:
        up_to = min(2 * least - 1 if least > 1 else 1, most)
        profiles.append({axis: Range(least, up_to, up_to), **others})
        least = up_to + 1
    return tuple(profiles)


def key(exported: Exported, recipe: Recipe, builder: str) -> str:
    """Of all that decides what is built; `builder` is TensorRT's name and version, and the device's."""
    parts = {
        "graph": hashlib.sha256(exported.onnx).hexdigest(),
        "target": recipe.target,
        "profiles": [{axis: asdict(each) for axis, each in sorted(one.items())} for one in recipe.profiles],
        "workspace": recipe.workspace_bytes,
        "builder": builder,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Kept:
    """A built engine in the cache and what is known of it."""

    key: str
    graph: str
    precision: str
    target: str
    builder: str
    bytes: int
    sha256: str
    profiles: list[dict[str, list[int]]]


class PlanCache:
    """Engines in a folder: KEY.plan and KEY.json."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> bytes | None:
        """The engine of this key, None where there is none or it is damaged."""
        kept = self._read(self._folder / f"{name}.json")
        try:
            plan = (self._folder / f"{name}.plan").read_bytes()
        except FileNotFoundError:
            return None
        return plan if kept is not None and hashlib.sha256(plan).hexdigest() == kept.sha256 else None

    def put(self, name: str, plan: bytes, exported: Exported, recipe: Recipe, builder: str) -> Kept:
        profiles = [{axis: [r.least, r.best, r.most] for axis, r in one.items()} for one in recipe.profiles]
        digest = hashlib.sha256(plan).hexdigest()
        kept = Kept(name, exported.name, exported.precision, recipe.target, builder, len(plan), digest, profiles)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write(f"{name}.plan", plan)
        self._write(f"{name}.json", json.dumps(asdict(kept), indent=1).encode())
        return kept

    def kept(self) -> list[Kept]:
        """All that can be read."""
        found = [self._read(path) for path in sorted(self._folder.glob("*.json"))]
        return [each for each in found if each is not None]

    def _read(self, path: Path) -> Kept | None:
        try:
            return Kept(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _write(self, name: str, data: bytes) -> None:
        """Whole or not at all: two builds may run at once."""
        partial = self._folder / f".{name}.{os.getpid()}"
        partial.write_bytes(data)
        partial.replace(self._folder / name)

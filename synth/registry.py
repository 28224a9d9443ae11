"""Which engines there are and how one is made: the bundled ones by name, an operator's own as `module:callable`.

The gateway reads names here; only a worker makes an engine, because that loads models and their libraries.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

from .engine import Engine, EngineInfo, Setup

FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Bundled:
    """An engine that comes with voxgate. What it has no use for is refused in its settings."""

    factory: str
    takes: frozenset[str] = frozenset()  # of "device", "slots" and "options"


BUNDLED = {"hibari": Bundled(f"{__package__}.engines.hibari:make")}
DEFAULT = "hibari"


class EngineUnavailable(RuntimeError):
    """The engine cannot be made here; the message says why."""


def make(setup: Setup) -> Engine:
    """The engine of this setup, not warmed. Raises `EngineUnavailable`."""
    module, _, attribute = setup.factory.partition(":")
    try:
        factory: Callable[[Setup], Engine] = getattr(import_module(module), attribute)
        engine = factory(setup)
    except Exception as problem:
        raise EngineUnavailable(f"{setup.factory}: {type(problem).__name__}: {problem}") from problem
    if not isinstance(getattr(engine, "info", None), EngineInfo):
        raise EngineUnavailable(f"{setup.factory} gave {type(engine).__name__}, which is no engine: it has no `info`")
    return engine


def named(info: EngineInfo, setup: Setup) -> EngineInfo:
    """`info` under the name the operator gave the engine; what it calls itself stays part of its revision.

    Raises `EngineUnavailable` for one that contradicts itself or its setup.
    """
    name = setup.name
    if not info.voices:
        raise EngineUnavailable(f"the engine {info.name!r} has no voice")
    if info.stepwise != (info.steps is not None):
        raise EngineUnavailable(f"the engine {info.name!r} must declare `steps` if it is stepwise, and only then")
    if setup.slots and not info.stepwise:
        raise EngineUnavailable(f"the engine {info.name!r} is not stepwise: it has no use for slots")
    if info.max_slots < 1:
        raise EngineUnavailable(f"the engine {info.name!r} has {info.max_slots} slots")
    if any(voice.sample_rate != info.sample_rate for voice in info.voices):
        raise EngineUnavailable(f"the voices of {info.name!r} must have its sample rate, {info.sample_rate}")
    revision = info.revision if info.name == name else f"{info.name}/{info.revision}"
    voices = tuple(replace(voice, engine=name) for voice in info.voices)
    return replace(info, name=name, revision=revision, voices=voices)

"""The contract between the worker process and the engine it runs.

An engine is made in its worker by a factory (registry.py) and called from one thread. It is of one of two kinds:
whole-segment (`SegmentEngine`: one call, one segment) or stepwise (`StepEngine`: autoregressive, rows of a batch that
join and leave between steps). What it knows of a segment is in segment.py; it knows no utterance and no socket.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .segment import Segment, Style
from .speech import Speech


@dataclass(frozen=True, slots=True)
class Setup:
    """What the factory of an engine is given: a line of the setting `engines`.

    `device` is the one the engine is bound to, by NVML UUID ("GPU-…" or "MIG-…"); the worker sees no other one
    (CUDA_VISIBLE_DEVICES is set before the engine is imported), so the engine uses the first it finds. "": the CPU.
    `slots`: how many rows a stepwise engine is to hold; 0 leaves it to the engine. `options` are the operator's own;
    a factory refuses what it does not know with a `ValueError` that names it.
    """

    name: str
    factory: str = ""  # "module:callable"
    device: str = ""
    slots: int = 0
    options: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice as `ready` and `/v1/voices` announce it."""

    id: str
    language: str  # BCP 47
    engine: str  # the name it runs under; the worker fills it in
    tier: str  # "realtime" or "quality"
    sample_rate: int  # Hz, the engine's own
    scripts: tuple[str, ...] = ("Latin",)  # Unicode scripts it can speak; other letters are blanked before it


@dataclass(frozen=True, slots=True)
class Steps:
    """What a stepwise engine declares of its steps, measured by its `warm`.

    `step_s` and `decode_s` decide how soon a listener hears the first chunk (ramp.py), so both are for a batch that is
    full: declared too low, the first seconds of a stream stutter when the machine is.
    """

    samples: int  # of sound that one step makes, at the engine's rate
    step_s: float  # one call of `step` with every slot
    decode_s: float  # one call of `decode` with a window of every slot
    least_ahead: int = 0  # steps that must be known behind a window for the least bearable sound at its end …
    most_ahead: int = 0  # … and those that make it as good as it gets
    most_steps: int = 2048  # of one segment: what its slot has room for
    pool_bytes: int = 0  # device memory reserved for slots once and for all, used or not


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine declares of itself. Read after `warm`."""

    name: str
    revision: str  # of model and code: whatever changes the sound changes it
    sample_rate: int  # Hz
    voices: tuple[Voice, ...]
    max_slots: int  # segments computed at once
    stepwise: bool  # autoregressive with slots and KV cache; False: one call per segment
    deterministic: bool  # same text, style and seed give the same samples
    steps: Steps | None = None  # of a stepwise engine


class SegmentEngine(Protocol):
    """A whole-segment engine: one call, one segment of at most about 7 s of speech."""

    info: EngineInfo

    def warm(self) -> None:
        """Run every code path once, so that the first caller waits no longer than the thousandth."""
        ...

    def synthesize(self, segment: Segment, style: Style) -> Speech:
        """Sound at `info.sample_rate`, joins already trimmed for `segment.before` and `segment.after`; and its words'
        times where the engine has them.

        Raises `ValueError` for a voice or text it cannot speak; anything else counts as a broken engine.
        """
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """The segment in a slot is complete: it has `steps` steps of sound.

    An end token is a step without sound and is not counted. It may be told late (codes are read back from the device
    while the next step runs), by no more steps than `Steps.least_ahead`. With `failure` the segment cannot be spoken
    after all, and `failure` says why: nothing more of it is decoded, and the engine itself is well.
    """

    steps: int
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """Steps `begin` to `end` of the segment in `slot`, to be made into sound.

    All steps before `known` have been computed: `known - end` is what there is of look-ahead, none in the `last` window
    (which ends the segment and may be empty; an empty one is not decoded). Windows of a segment follow one another
    without a gap.
    """

    slot: int
    begin: int
    end: int
    known: int
    last: bool


@dataclass(frozen=True, slots=True)
class PoolUse:
    """Device memory of the slots: reserved, and of that what no slot holds just now (it counts as free)."""

    reserved_bytes: int = 0
    idle_bytes: int = 0


class StepEngine(Protocol):
    """A stepwise engine: `info.max_slots` rows, numbered from 0, of which any set may be computed together.

    The calls come in this order, round after round (runner.py decides which slots, stepwise.py makes the calls):

        release(slot) …     rows whose segment has ended, failed or was cancelled, at whatever step that was
        prefill(slot) …     segments that join; a slot is free, and released since it was last used
        step(slots)         once, for every row that has to go on: neither all that are taken nor always the same
        decode(windows)     once, when rows have enough steps for a chunk of sound

    A row's result depends on its segment, style and seed alone, never on its neighbours, its slot number, the width of
    the batch or on rounds it was left out of (per-row lengths; random numbers by seed and step).

    `prefill` raises `ValueError` for a text or voice it cannot speak; any other exception of it costs this segment and
    counts as a failure of the engine. An exception of any other call ends the worker, because what it has done to the
    other rows cannot be known: those of its segments fail, and it is started anew.
    """

    info: EngineInfo

    def warm(self) -> None:
        """Run every code path once, at every width it will have, and measure; `info.steps` is read after it."""
        ...

    def prefill(self, slot: int, segment: Segment, style: Style) -> None:
        """Load a segment into a free slot, so that the next `step` may compute its first step of sound."""
        ...

    def step(self, slots: Sequence[int]) -> Mapping[int, Ended]:
        """One more step for each of these slots (ascending, at least one); those whose segment is complete."""
        ...

    def decode(self, windows: Sequence[Window]) -> Sequence[NDArray[np.int16]]:
        """Mono PCM of each window, at `info.sample_rate`, at most one window of each slot.

        That is `end - begin` times `Steps.samples`, less what the joins take: the engine trims silence at the
        segment's two ends as `segment.before` and `segment.after` ask (joins.py), and may hold samples back from one
        window to the next. What the windows of a segment give, joined, is its sound: no fade between them.
        """
        ...

    def release(self, slot: int) -> None:
        """Forget what is in the slot, if anything (its `prefill` may have raised); it may be used again at once."""
        ...

    def pool(self) -> PoolUse:
        """How the memory of the slots is used now. Called often: no waiting for the device."""
        ...


Engine = SegmentEngine | StepEngine

"""The contract between the worker process and the engine it runs."""

from dataclasses import dataclass
from typing import Protocol

from .segment import Segment, Style
from .speech import Speech


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice as `ready` and `/v1/voices` announce it."""

    id: str
    language: str  # BCP 47
    engine: str
    tier: str  # "realtime" or "quality"
    sample_rate: int  # Hz, the engine's own
    scripts: tuple[str, ...] = ("Latin",)  # Unicode scripts it can speak; other letters are blanked before it


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine declares of itself."""

    name: str
    revision: str  # of model and code: whatever changes the sound changes it
    sample_rate: int  # Hz
    voices: tuple[Voice, ...]
    max_slots: int  # utterances computed at once
    stepwise: bool  # autoregressive with slots and KV cache; False: one call per segment
    deterministic: bool  # same text, style and seed give the same samples


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

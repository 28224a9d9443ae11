"""All engines of a server as one place to be spoken by: each utterance goes to the engine whose voice it asks for.

Owns which voice is whose. Each engine has its own workers, order of work, costs and forecast (synthesizer.py); nothing
of one waits for another.
"""

import asyncio
from collections.abc import Iterable, Mapping

from .cache.levels import Levels
from .engine import EngineInfo, Voice
from .segment import Segment, Style
from .synthesizer import Listener, Synthesizer


class VoiceClaimed(ValueError):
    """Two engines have a voice of the same name."""


class Synthesis:
    """The `synthesizers` in their order: the first voice of the first one is the default."""

    def __init__(self, synthesizers: Iterable[Synthesizer], caches: Levels | None = None) -> None:
        """`caches`: of all of them, whose keys tell them apart."""
        self.engines: Mapping[str, Synthesizer] = {each.name: each for each in synthesizers}
        self.caches = caches or Levels()
        self.voices: tuple[Voice, ...] = ()  # of all engines, as soon as every one has warmed
        self._by_voice: dict[str, Synthesizer] = {}
        self._by_utterance: dict[int, Synthesizer] = {}

    # --- life ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start all workers and return: `ready` turns true when every engine has warmed."""
        for engine in self.engines.values():
            await engine.start()

    async def wait_ready(self) -> None:
        """Raises `WorkersUnavailable` when an engine cannot be loaded, `VoiceClaimed` when two have the same voice."""
        await asyncio.gather(*(engine.wait_ready() for engine in self.engines.values()))
        by_voice: dict[str, Synthesizer] = {}
        for engine in self.engines.values():
            for voice in engine.voices:
                if other := by_voice.get(voice.id):
                    raise VoiceClaimed(f"engines {other.name} and {engine.name} both have a voice {voice.id!r}")
                by_voice[voice.id] = engine
        self._by_voice = by_voice
        self.voices = tuple(voice for engine in self.engines.values() for voice in engine.voices)

    async def close(self) -> None:
        """End the workers; listeners hear nothing more."""
        self._by_utterance.clear()
        for engine in self.engines.values():
            await engine.close()

    @property
    def ready(self) -> bool:
        """Every engine has warmed, and at least one can speak now: one that fails later leaves the others be."""
        return bool(self.voices) and any(engine.ready for engine in self.engines.values())

    def engine_of(self, voice: str) -> Synthesizer:
        """`KeyError` for a voice that nobody has."""
        return self._by_voice[voice]

    def info_of(self, voice: str) -> EngineInfo:
        """What the engine of this voice declares. `KeyError` for a voice that nobody has."""
        info = self._by_voice[voice].info
        assert info is not None
        return info

    @property
    def backlog(self) -> int:
        """Segments that nobody has begun to speak, all engines together."""
        return sum(engine.backlog for engine in self.engines.values())

    def predicted_wait(self, engine: str, characters: int, now: float) -> float:
        """Seconds until this engine can compute a newcomer's first segment without harm to others."""
        return self.engines[engine].predicted_wait(characters, now)

    def is_cached(self, segment: Segment, style: Style) -> bool:
        """Whether a segment is in this process's memory, phrase pool included."""
        engine = self._by_voice.get(style.voice)
        return engine is not None and engine.is_cached(segment, style)

    # --- utterances ---------------------------------------------------------------------------------------------

    def open(self, utterance: int, style: Style, listener: Listener, *, crowding: bool = False) -> None:
        """Begin an utterance of one voice; `close_utterance` must follow. `KeyError` for a voice that nobody has."""
        engine = self._by_voice[style.voice]
        engine.open(utterance, style, listener, crowding=crowding)
        self._by_utterance[utterance] = engine

    def speak(self, utterance: int, segment: Segment) -> None:
        if engine := self._by_utterance.get(utterance):
            engine.speak(utterance, segment)

    def cover(self, utterance: int, until: float) -> None:
        """The listener has audio up to the instant `until`, what is generated and not sent yet included."""
        if engine := self._by_utterance.get(utterance):
            engine.cover(utterance, until)

    def hold(self, utterance: int) -> None:
        """Skip the utterance until `release`."""
        if engine := self._by_utterance.get(utterance):
            engine.hold(utterance)

    def release(self, utterance: int) -> None:
        if engine := self._by_utterance.get(utterance):
            engine.release(utterance)

    def close_utterance(self, utterance: int) -> None:
        """Drop what is pending; what a worker has in hand is cut short or will be thrown away."""
        if engine := self._by_utterance.pop(utterance, None):
            engine.close_utterance(utterance)

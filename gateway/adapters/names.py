"""Voices by the names that bots written for other services carry.

An unmodified bot asks for a voice of its provider, and gives up for good where that is refused; so every name means
somebody here: whom the setting `voice_names` says, a voice of ours that is called so, or the default.
"""

import logging
from collections.abc import Callable, Iterable

from ...synth.engine import Voice

Resolve = Callable[[str | None], str | None]  # a client's name for a voice -> our id, None: the default

logger = logging.getLogger("voxgate.adapters")

REPORTED = 256  # unknown names that are written into the log, once each

# What the clients of OpenAI offer to choose from; those of pipecat refuse any other before they ask.
OPENAI = (
    *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer"),
    "verse",
)


class BadNames(ValueError):
    """An entry of `voice_names` is not of the form `name=voice`."""


class VoiceNames:
    """Of one process. `entries`: `name=voice` each. Raises `BadNames`."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._voices: dict[str, str] = {}
        self._reported: set[str] = set()
        for entry in entries:
            name, equals, voice = (part.strip() for part in entry.partition("="))
            if not (name and equals and voice):
                raise BadNames(f"{entry!r} is not of the form name=voice")
            self._voices[name] = voice

    @property
    def mapped(self) -> tuple[str, ...]:
        """The names that are given to somebody."""
        return tuple(self._voices)

    def resolve(self, name: str | None, voices: Iterable[Voice]) -> str | None:
        """The id of the voice meant by `name`; None for the default."""
        if name is None:
            return None
        known = {voice.id for voice in voices}
        wanted = self._voices.get(name, name)
        if wanted in known:
            return wanted
        unmapped = name not in OPENAI or wanted != name
        if known and unmapped and name not in self._reported and len(self._reported) < REPORTED:
            self._reported.add(name)
            logger.warning("no voice %r here: the default speaks for it (setting voice_names)", wanted[:80])
        return None

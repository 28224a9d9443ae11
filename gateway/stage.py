"""The seams of a session: what it asks of synthesis, encoding and admission, and nothing else of them.

The connection (connection.py) implements them over the real parts; tests over scripted ones. Every call returns at
once. What comes back comes through the session's own methods: `audio`, `failed`, `encoded`.
"""

from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..admission.answer import Permit, Refusal, Waiting
from ..codecs.packetizer import Format
from ..synth.engine import Voice
from ..synth.segment import Segment, Style
from .wire import EngineState


class Track(Protocol):
    """The encoder of one context: PCM in, packets back in order through `Session.encoded`."""

    def push(self, pcm: NDArray[np.int16]) -> None:
        """Encode more; answered by one `encoded`."""
        ...

    def finish(self) -> None:
        """Pad and drain; answered by one `encoded` that states the length."""
        ...

    def close(self) -> None:
        """Forget the rest: nothing more is answered."""
        ...


class Part(Enum):
    """What the wait of a first audio is made of, in the order of its way."""

    ADMISSION = "admission"  # its text is there -> it has its permit
    SYNTHESIS = "synthesis"  # -> its sound is there: waiting for an engine, and computing
    ENCODING = "encoding"  # -> its first packet is there
    SENDING = "sending"  # -> that is handed to the socket


class Stage(Protocol):
    """Where a session's utterances are spoken."""

    @property
    def voices(self) -> tuple[Voice, ...]:
        """What can speak, the default first: that of a context that names neither voice nor tier."""
        ...

    def engines(self) -> dict[str, EngineState]:
        """How each engine stands with newcomers, by its name."""
        ...

    def realtime_only(self, voice: Voice) -> bool:
        """Whether there is no time for this voice of the quality tier just now."""
        ...

    def cheaper_opus(self, voice: Voice) -> bool:
        """Whether a context of this voice that begins now is to cost less CPU."""
        ...

    def new_id(self) -> int:
        """A number never used before in this process, for an utterance or a track."""
        ...

    def pronounce(self, segment: Segment, voice: Voice) -> Segment:
        """The segment as the operator wants its words pronounced."""
        ...

    def open_context(self) -> Refusal | None:
        """Count one more context; None where it may be."""
        ...

    def close_context(self) -> None:
        """One that was counted has ended."""
        ...

    def take_characters(self, count: int) -> Refusal | None:
        """Count so many characters of text; None where they may be spoken."""
        ...

    def admit(
        self, ticket: int, segment: Segment, voice: Voice, style: Style, *, newcomer: bool, max_wait_s: float
    ) -> Permit | Refusal | Waiting:
        """Leave to speak one utterance, of which `segment` is the first; a waiting one is answered by
        `Session.admitted` under its ticket, which is the context's key."""
        ...

    def withdraw(self, ticket: int) -> None:
        """What waits under this ticket is not wanted any more."""
        ...

    def heard_first(self, permit: Permit, wait_s: float, held_up_s: float) -> None:
        """The first audio of an utterance goes out, so long after its text came, and so long after it was there."""
        ...

    def took(self, part: Part, seconds: float) -> None:
        """So much of the wait just told was for this."""
        ...

    def ran_dry(self, permit: Permit, seconds: float) -> None:
        """A listener was owed audio for so long and had none; not told where it was slow to take what was there."""
        ...

    def track(self, key: int, form: Format, source_rate: int) -> Track:
        """An encoder whose packets come back under `key`."""
        ...

    def open(self, utterance: int, style: Style, *, crowding: bool) -> None:
        """Begin an utterance; from here its audio or its failure comes back. `crowding`: others are served first."""
        ...

    def speak(self, utterance: int, segment: Segment) -> None:
        """One more segment, spoken after those before."""
        ...

    def cover(self, utterance: int, until: float) -> None:
        """The listener has audio up to this instant, what is generated and not yet sent included."""
        ...

    def hold(self, utterance: int) -> None:
        """Do not generate: nobody takes what is there."""
        ...

    def release(self, utterance: int) -> None:
        """Generate again."""
        ...

    def close_utterance(self, utterance: int) -> None:
        """Finished or cancelled: pending segments are dropped, output in flight is thrown away."""
        ...

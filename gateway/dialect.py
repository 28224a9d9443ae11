"""The seam between the session and the wires spoken over it: what a client says becomes calls, events become messages.

The native wire (native.py) and every adapter (adapters/) implement `Dialect`. A dialect knows the shape of its
messages and which of them means what; what may happen when, and all of the work, is the session's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..codecs.packetizer import Packet
from . import wire

if TYPE_CHECKING:
    from .context import Context


@dataclass(frozen=True, slots=True)
class Close:
    """Behind what was said before it, the socket is closed with this code."""

    code: int


Item = str | bytes | Close  # what goes onto the wire: a text message, a binary one, or the end


@dataclass(frozen=True, slots=True)
class Reply:
    """Among the calls of a client's message: what is answered to it at once, whatever the session does."""

    item: Item


Call = wire.AnyClientMessage | Reply


@dataclass(frozen=True, slots=True)
class Spoken:
    """Text that the audio from `begin` to `end` (seconds of the context) says, told ahead of that audio.

    `text` is `[start, start + len(text))` of the context's text, in code points; `words` lie in it.
    """

    context: str
    begin: float
    end: float
    text: str
    start: int
    words: tuple[tuple[str, float, float, int], ...]  # as in `wire.Words`
    estimated: bool


Event = wire.AnyServerMessage | Spoken


class Dialect(Protocol):
    """One for each connection; calls come on the event loop."""

    protocol: str  # what it is called, for the metrics
    codecs: tuple[str, ...]  # that a start may ask for
    later: list[Call]  # calls that an event has set free; the session takes them away when it has said it

    def hear(self, message: str) -> Iterable[Call]:
        """What one text message of the client asks for, in order. Raises `wire.BadMessage`."""
        ...

    def say(self, event: Event, out: list[Item]) -> None:
        """Appends what tells the client of `event`; nothing, where this wire has no word for it."""
        ...

    def audio(self, context: "Context", packets: list[Packet], out: list[Item]) -> None:
        """Appends the messages that carry the next packets of a context."""
        ...

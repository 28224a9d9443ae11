"""What is kept of a context that ended, for the minute in which its listener may still say how much was heard.

Far smaller than the context: one connection keeps hundreds.
"""

from dataclasses import dataclass

from . import wire
from .pacer import Pacer
from .timeline import Timeline


@dataclass(slots=True)
class Record:
    """`text` is all of it as it was sent, `sent` and `heard` count samples at `sample_rate` (Hz)."""

    name: str
    ended_at: float
    text: str
    sent: int
    sample_rate: int
    timeline: Timeline
    heard: int | Pacer  # fixed, or still to be read off the play-out clock

    def report(self, samples: int) -> None:
        """The listener says how much of the context it has heard."""
        self.heard = min(samples, self.sent)

    def heard_at(self, now: float) -> int:
        if isinstance(self.heard, Pacer):
            return min(self.sent, int(self.heard.heard_s(now) * self.sample_rate + 0.5))
        return self.heard

    def cancelled(self, now: float) -> wire.Cancelled:
        """What the client is told of a context that was cut short."""
        heard = self.heard_at(now)
        offset = self.timeline.text_offset_at(heard / self.sample_rate)
        return wire.Cancelled(self.name, sent=self.sent, heard=heard, text=self.text[:offset])

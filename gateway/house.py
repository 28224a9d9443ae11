"""What all connections of a process share: where speech comes from, who encodes it, who may have any.

Asks admission on behalf of the connections, and passes its answers on to those that wait.
"""

import asyncio
import itertools
import math
import time
from collections.abc import Callable
from typing import Protocol

from ..admission.answer import Ask, Permit, Refusal, Waiting
from ..admission.controller import Controller
from ..admission.vram import Reading
from ..synth.segment import Segment, Style
from ..synth.synthesis import Synthesis
from ..synth.text.lexicon import Lexicon
from .encoding import Encoders
from .stage import Part

clock = time.monotonic


class Waiter(Protocol):
    """Whoever asked for a permit and was told to wait."""

    def admitted(self, ticket: int, answer: Permit | Refusal) -> None:
        """The answer; called on the event loop, speaks at once when it is a permit."""
        ...


class Connected(Protocol):
    """A connection, as the metrics see it."""

    @property
    def unsent_bytes(self) -> int: ...


class House:
    """One per process, alive as long as the event loop."""

    def __init__(self, synthesizer: Synthesis, encoders: Encoders, controller: Controller) -> None:
        self.synthesizer = synthesizer
        self.encoders = encoders
        self.controller = controller
        self.lexicon = Lexicon()
        self.underruns = 0
        self.underrun_s = 0.0
        self.on_first_audio: list[Callable[[Permit, float, str], None]] = []  # and over which wire
        self.on_took: list[Callable[[Part, float], None]] = []
        self.on_queued: list[Callable[[float], None]] = []  # of those that waited for a permit and got it: how long
        self.connections: set[Connected] = set()
        self.devices: dict[str, Reading] = {}  # GPU memory, by UUID
        self._ids = itertools.count(1)
        self._waiters: dict[int, tuple[Waiter, float]] = {}  # and since when
        self._timer: asyncio.TimerHandle | None = None

    def new_id(self) -> int:
        """A number never used before in this process."""
        return next(self._ids)

    def admit(self, waiter: Waiter, ask: Ask) -> Permit | Refusal | Waiting:
        """The answer to `ask`, or its promise: then `waiter` is called."""
        answer = self.controller.admit(ask, clock(), backlog=self.synthesizer.backlog)
        if isinstance(answer, Waiting):
            self._waiters[ask.ticket] = waiter, clock()
            self._look_again()
        return answer

    def withdraw(self, ticket: int) -> None:
        """What waits under this ticket is not wanted any more."""
        if self._waiters.pop(ticket, None) is not None:
            self.controller.withdraw(ticket)

    def heard_first(self, permit: Permit, wait_s: float, held_up_s: float, protocol: str) -> None:
        """The first audio of an utterance goes out over a wire, so long after its text, so long after it was there."""
        self.controller.first_audio(permit, wait_s, clock(), held_up_s=held_up_s)
        for observe in self.on_first_audio:
            observe(permit, wait_s, protocol)

    def took(self, part: Part, seconds: float) -> None:
        """So much of the wait for a first audio was for this."""
        for observe in self.on_took:
            observe(part, seconds)

    def ran_dry(self, permit: Permit, seconds: float) -> None:
        """A listener was owed audio for so long and had none; not told where it was slow to take what was there."""
        self.underruns += 1
        self.underrun_s += seconds
        self.controller.underrun(permit, clock())

    def is_cached(self, segment: Segment, style: Style) -> bool:
        """Whether a segment can be had without an engine."""
        return self.synthesizer.is_cached(segment, style)

    def close(self) -> None:
        """Nobody is answered any more."""
        for ticket in tuple(self._waiters):
            self.withdraw(ticket)
        if self._timer is not None:
            self._timer.cancel()

    def _look_again(self) -> None:
        if self._timer is None:
            now = clock()
            if (wake_at := self.controller.wake_at(now)) != math.inf:
                self._timer = asyncio.get_running_loop().call_later(wake_at - now, self._answer_waiting)

    def _answer_waiting(self) -> None:
        self._timer = None
        try:
            while answered := self.controller.next(clock()):
                ticket, answer = answered
                waiter, since = self._waiters.pop(ticket)
                if isinstance(answer, Permit):
                    for observe in self.on_queued:
                        observe(clock() - since)
                waiter.admitted(ticket, answer)
        finally:  # one that breaks is its own loss: the rest are answered at the next look
            self._look_again()

"""What a modelled house speaks and encodes with: the bundled voice's workers, a stepwise engine on a GPU, libopus.

Engines have the width that admission leaves them, break when told to, and take the time that was measured of the real
ones (DESIGN: 6.5 ms of a core per second of audio; first segments at normal priority, the bulk at nice 15).
"""

import math
import random
from collections import deque
from collections.abc import Callable
from typing import Protocol

from sim.machine import Clock, Cores

NORMAL, NICE_15 = 1024.0, 36.0  # weights of sched(7)
SPEECH_S = 0.0065  # of a core, per second of audio
NOISE = 0.25  # of the logarithm of a cost
STEPWISE_RTF = 0.02
BREAKS_AFTER_S = 0.02
BITE_S = 0.06  # of a segment, encoded before the rest

Room = tuple[bool | None, ...]  # what it can take now: urgent segments, others (False), any (None)


class Engine(Protocol):
    broken: bool

    def room(self, width: int | None) -> Room:
        """`width`: slots that may be occupied."""
        ...

    def speak(self, sounds_s: float, urgent: bool, done: Callable[[bool], None]) -> None:
        """`urgent`: its listener has heard nothing yet and crowds nobody. `done` is told if it came to anything."""
        ...


class Workers:
    """As many as cores at nice 15, and as many express ones for urgent segments."""

    def __init__(self, clock: Clock, cores: Cores, chance: random.Random, bulk: int = 2, express: int = 2) -> None:
        self.broken = False
        self._clock, self._cores, self._chance = clock, cores, chance
        self._bulk, self._express = bulk, express

    def room(self, width: int | None) -> Room:
        return (True,) * (self._express > 0) + (False,) * (self._bulk > 0)

    def speak(self, sounds_s: float, urgent: bool, done: Callable[[bool], None]) -> None:
        self._free(urgent, -1)

        def end(spoken: bool) -> None:
            self._free(urgent, 1)
            done(spoken)

        if self.broken:
            self._clock.after(BREAKS_AFTER_S, lambda: end(False))
        else:
            cost_s = SPEECH_S * sounds_s * math.exp(self._chance.gauss(0, NOISE))
            self._cores.run(cost_s, NORMAL if urgent else NICE_15, lambda: end(True))

    def _free(self, urgent: bool, count: int) -> None:
        if urgent:
            self._express += count
        else:
            self._bulk += count


class Batch:
    """A stepwise engine: so many slots, no CPU to speak of. Its memory is told by `slots`."""

    def __init__(self, clock: Clock, cores: Cores, chance: random.Random) -> None:
        self.broken = False
        self.slots = 0  # occupied
        self._clock, self._chance = clock, chance

    def room(self, width: int | None) -> Room:
        return (None,) if width is None or self.slots < width else ()

    def speak(self, sounds_s: float, urgent: bool, done: Callable[[bool], None]) -> None:
        self.slots += 1

        def end(spoken: bool) -> None:
            self.slots -= 1
            done(spoken)

        if self.broken:
            self._clock.after(BREAKS_AFTER_S, lambda: end(False))
        else:
            took_s = STEPWISE_RTF * sounds_s * math.exp(self._chance.gauss(0, NOISE))
            self._clock.after(took_s, lambda: end(True))


class Encoders:
    """Threads at normal priority, in the order of asking."""

    def __init__(self, cores: Cores, threads: int, cost_s: float) -> None:
        self._cores, self._idle, self._cost_s = cores, threads, cost_s
        self._queue: deque[tuple[float, Callable[[], None], Callable[[], None]]] = deque()

    def encode(self, sounds_s: float, bitten: Callable[[], None], done: Callable[[], None]) -> None:
        """`bitten` when the first of it is encoded, `done` when all is."""
        self._queue.append((sounds_s, bitten, done))
        self._next()

    def _next(self) -> None:
        if not self._queue or not self._idle:
            return
        self._idle -= 1
        sounds_s, bitten, done = self._queue.popleft()

        def rest() -> None:
            bitten()
            self._cores.run(max(0.0, sounds_s - BITE_S) * self._cost_s, NORMAL, end)

        def end() -> None:
            self._idle += 1
            done()
            self._next()

        self._cores.run(BITE_S * self._cost_s, NORMAL, rest)

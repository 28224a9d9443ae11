"""What a run will do and when, worked out from its settings and a seed alone. Pure: no clock, no sockets.

Open loop: arrivals are a Poisson process that cares nothing for how the server is doing. Closed: a number of
listeners, each asking for its next utterance when it has heard the last one out.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .corpus import Text, TextMaker

DEFAULT_MIX = (("short", 30.0), ("medium", 50.0), ("long", 20.0))
_BARGE_IN_SECONDS = (0.3, 3.0)  # of listening, before the listener interrupts


@dataclass(frozen=True, slots=True)
class Load:
    """Exactly one of `rate` and `streams` is set. Times are seconds, shares 0 to 1."""

    rate: float | None = None  # utterances per second once the ramp is over
    streams: int | None = None
    ramp: float = 5.0
    duration: float = 60.0  # of the plateau, after the ramp
    think: float = 0.0  # mean of the pause between hearing one utterance out and asking for the next
    mix: tuple[tuple[str, float], ...] = DEFAULT_MIX  # kind of text and weight
    tokens_per_second: float = 0.0  # 0: text is sent whole
    slow_readers: float = 0.0
    barge_ins: float = 0.0
    seed: int = 0
    part: int = 0  # a process does part `part` of `parts`; rate and streams are those of the whole
    parts: int = 1

    @property
    def until(self) -> float:
        """When nothing new begins any more, from the begin of the run."""
        return self.ramp + self.duration

    def split(self, parts: int) -> list["Load"]:
        """The same load as `parts` that together are it."""
        return [replace(self, part=part, parts=parts) for part in range(parts)]


@dataclass(frozen=True, slots=True)
class Planned:
    """One utterance before it happens."""

    text: Text
    slow: bool = False  # reads its audio at half the pace it should
    barge_in_after: float | None = None  # seconds of listening
    think: float = 0.0  # seconds of pause behind it


class Script:
    """The utterances of one listener, or of all arrivals: an endless sequence that depends on the seed alone."""

    def __init__(self, load: Load, number: int | None = None) -> None:
        """`number`: of the stream in the whole load; None for the arrivals of this part."""
        of = load.parts if load.streams is None else load.streams
        own = load.part if number is None else number
        self._load = load
        self._random = random.Random(f"script {load.seed} {own}")
        self._texts = TextMaker(load.seed, own, of)
        self._kinds, self._weights = zip(*load.mix, strict=True)

    def next(self) -> Planned:
        draw = self._random.random
        kind = self._random.choices(self._kinds, self._weights)[0]
        slow, barging = draw() < self._load.slow_readers, draw() < self._load.barge_ins
        after = self._random.uniform(*_BARGE_IN_SECONDS)
        pause = -math.log(1.0 - draw()) * self._load.think
        return Planned(self._texts.make(kind), slow, after if barging else None, pause)


def arrivals(load: Load) -> Iterator[float]:
    """Open loop: instants from the begin of the run, at a rate that rises in a line over the ramp, then holds."""
    assert load.rate is not None
    steps = random.Random(f"arrivals {load.seed} {load.part}")
    rate = load.rate / load.parts
    expected, while_rising = 0.0, rate * load.ramp / 2
    while True:
        expected += steps.expovariate(1.0)  # a Poisson process of rate 1, bent to ours by the inverse of its integral
        if expected < while_rising:
            at = math.sqrt(2 * load.ramp * expected / rate)
        else:
            at = load.ramp + (expected - while_rising) / rate
        if at >= load.until:
            return
        yield at


def stream_starts(load: Load) -> list[tuple[int, float]]:
    """Closed: the streams of this part by number, and when each begins, evenly over the ramp; parts take turns."""
    assert load.streams is not None
    return [(number, load.ramp * number / load.streams) for number in range(load.part, load.streams, load.parts)]

"""How long the chunks of a stepwise engine are: short ones first, longer ones as far as the listener's lead allows.

Pure arithmetic over what the engine declares. A chunk is made of `new` steps and needs `ahead` more behind it, which
make the sound at its end. While chunk k plays, chunk k + 1 must become ready:

    new[k] * audio per step >= (new[k+1] + ahead[k+1] - ahead[k]) * step time + decode time + jitter

Long chunks cost less (fewer decodes), much look-ahead sounds better; both make the first sound late, so they grow.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from .engine import Steps

JITTER_S = 0.02  # how late a chunk may come for reasons outside the engine
MOST_CHUNK_S = 0.5  # longer ones spare hardly any decodes, and what is generated of a cancelled stream is lost


@dataclass(frozen=True, slots=True)
class Rung:
    """One length of chunk, in steps."""

    new: int
    ahead: int


@dataclass(frozen=True, slots=True)
class Ramp:
    """The lengths that chunks have in turn; the last one stays."""

    rungs: tuple[Rung, ...]
    sustained: bool  # False: the engine at full width is slower than speech, and no ramp keeps a stream from gaps
    flattened: bool  # it grows more slowly than by doubling, because the engine leaves too little time
    audio_s: float  # per step
    step_s: float
    slack_s: float  # decode time and jitter

    def needed_lead(self, now: Rung, then: Rung, step_s: float) -> float:
        """Seconds of audio in hand that it takes to follow a chunk like `now` with one like `then`, when steps take
        `step_s` just now: more than was declared, if the machine is busy with something else."""
        return (then.new + then.ahead - now.ahead) * max(step_s, self.step_s) + self.slack_s


def ramp(steps: Steps, sample_rate: int, jitter_s: float = JITTER_S) -> Ramp:
    """The steepest that satisfies the rule above from its first chunk on; raises nothing: see `sustained`."""
    audio_s = steps.samples / sample_rate
    slack_s = steps.decode_s + jitter_s
    most = max(1, int(MOST_CHUNK_S / audio_s))
    # One step more than it takes to go on alike, or a ramp that holds could never grow.
    first = _first(audio_s, steps.step_s, slack_s, 1, most) or _first(audio_s, steps.step_s, slack_s, 0, most)
    if first is None:
        return Ramp((Rung(most, steps.most_ahead),), False, True, audio_s, steps.step_s, slack_s)
    rungs, flattened = [Rung(first, steps.least_ahead)], False
    while following := _following(rungs[-1], steps, audio_s, slack_s, most):
        wanted = next(_wanted(rungs[-1], steps, most))
        flattened = flattened or following != wanted
        rungs.append(following)
    flattened = flattened or rungs[-1] != Rung(max(most, first), steps.most_ahead)
    return Ramp(tuple(rungs), True, flattened, audio_s, steps.step_s, slack_s)


def _first(audio_s: float, step_s: float, slack_s: float, spare: int, most: int) -> int | None:
    """The shortest chunk whose sound lasts for another one of its kind and `spare` steps."""
    return next((new for new in range(1, most + 1) if new * audio_s >= (new + spare) * step_s + slack_s), None)


def _following(rung: Rung, steps: Steps, audio_s: float, slack_s: float, most: int) -> Rung | None:
    """The best that may follow; None where nothing longer may."""
    for then in _wanted(rung, steps, most):
        if rung.new * audio_s >= (then.new + then.ahead - rung.ahead) * steps.step_s + slack_s:
            return then
    return None


def _wanted(rung: Rung, steps: Steps, most: int) -> Iterator[Rung]:
    """What could follow, the best first: look-ahead before length, because that is heard."""
    longest, furthest = min(2 * rung.new, most), min(rung.ahead + rung.new, steps.most_ahead)
    for ahead in range(furthest, rung.ahead - 1, -1):
        for new in range(longest, rung.new - 1, -1):
            if (new, ahead) != (rung.new, rung.ahead):
                yield Rung(new, ahead)

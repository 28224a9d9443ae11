"""How long a newcomer must wait so that nobody who listens already runs dry for it.

Pure: a feasibility test of earliest-deadline-first scheduling (J. R. Jackson, 1955; Liu and Layland, 1973) over the
next segments of all listeners. Knows neither scheduler nor engines, only deadlines and measured costs.
"""

from collections.abc import Iterable

MARGIN_S = 0.35  # kept between a segment's predicted end and the instant its listener runs dry
LATE_SHARE = 0.2  # of what its listener has in hand that a segment may take all the same, where that is little
FIRST_COST_S = 0.0006  # per character, until something has been measured
LEFT_SHARE = 0.03  # of a core that an ordinary job keeps beside an urgent one: nice 15 beside nice 0 (sched(7))
WEIGHT = 0.02  # of a new measurement in the running mean: a moment's trouble is not what everything will cost


class Cost:
    """What a segment takes of a core: seconds per character, a running mean of what it took.

    Express workers come on top of one worker for each core, and go first. While more jobs run than there are cores,
    each is slowed down by the others: of every second it has its share only. Taken by the second, or by equal shares, a
    burst of first segments would make everything look dearer or cheaper than it is, and newcomers would be refused, or
    let in, for it.
    """

    def __init__(self, cores: int) -> None:
        self.per_character_s = FIRST_COST_S
        self._cores = cores
        self._running: dict[int, tuple[bool, float, float]] = {}  # job -> urgent; when it began, and `_shared_s` then
        self._shared_s = {True: 0.0, False: 0.0}  # what an urgent job, and another, that had always run would have had
        self._counted_at = 0.0

    def begin(self, job: int, now: float, *, urgent: bool = False) -> None:
        """A worker has begun with it, an express one if it is `urgent`."""
        self._count(now)
        self._running[job] = urgent, now, self._shared_s[urgent]

    def end(self, job: int, now: float, *, characters: int = 0, compute_s: float = 0.0) -> None:
        """It is done, `compute_s` by the worker's watch; or it came to nothing."""
        self._count(now)
        urgent, begun_at, shared_s = self._running.pop(job)
        if characters > 0:
            share = (self._shared_s[urgent] - shared_s) / (now - begun_at) if now > begun_at else 1.0
            self.per_character_s += WEIGHT * (share * compute_s / characters - self.per_character_s)

    def of(self, characters: int) -> float:
        """Seconds."""
        return characters * self.per_character_s

    def _count(self, now: float) -> None:
        passed_s, self._counted_at = now - self._counted_at, now
        urgent = sum(each for each, *_ in self._running.values())
        others = len(self._running) - urgent
        left = max(self._cores - urgent, LEFT_SHARE * self._cores)
        self._shared_s[True] += passed_s * min(1.0, self._cores / max(urgent, 1))
        self._shared_s[False] += passed_s * min(1.0, left / max(others, 1))


def predicted_wait(
    due: Iterable[tuple[float, float]], *, own_s: float, running_s: float, workers: int, now: float
) -> float:
    """Seconds until a first segment of `own_s` can be computed at once without harm.

    `due`: for each listener whose next segment waits, the instant it runs dry (-inf: it has heard nothing yet) and what
    that segment costs. `running_s`: what the workers still have in hand.
    """
    work, wait = running_s + own_s, 0.0
    for dry_at, cost_s in sorted(due):
        work += cost_s
        if dry_at == float("-inf"):
            wait = (work - own_s) / workers
        else:
            wait = max(wait, work / workers - _allowed(dry_at - now))
    return wait


def _allowed(left_s: float) -> float:
    """How late a segment may be that is needed in `left_s`. A share of it where that is little: who has just begun, or
    is dry already, must not shut the door to everybody, and is the first to be served anyway."""
    return max(left_s - MARGIN_S, left_s * LATE_SHARE, 0.0)

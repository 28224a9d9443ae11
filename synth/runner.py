"""The slots of a stepwise engine: who joins, who is stepped, whose chunk is due, who leaves.

Pure: instants come in as `now`, the engine is called by others (stepwise.py). A round is

    turn(now)                slots to release, segments that join, rows to step
    stepped(turn, ended)     chunks that are due
    emitted(chunk, samples)  whether somebody still wants it

and messages from the gateway may come in between any two. What comes back is checked against its *owner*, the job it
was computed for, never against the slot number: by then the slot may be someone else's.

    waiting -> taken -> leaving -> free        a slot is leaving until the engine has released it
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from .engine import Ended, Window
from .ramp import Ramp
from .segment import Segment, Style

TARGET_LEAD_S = 4.0  # a listener with so much audio in hand is not computed for, while nobody waits for its slot
WEIGHT = 0.2  # of a new measurement in the running mean of what a step takes
JOINS = 4  # segments that join in one round: each prefill delays everybody's step


@dataclass(frozen=True, slots=True)
class Join:
    """A segment to be loaded into a slot."""

    slot: int
    job: int
    segment: Segment
    style: Style


@dataclass(frozen=True, slots=True)
class Turn:
    """What the engine is to do now. `rows`: (slot, job), ascending."""

    releases: tuple[int, ...] = ()
    joins: tuple[Join, ...] = ()
    rows: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.releases or self.joins or self.rows)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A window of a job's sound that is due, and the engine time it has taken since the one before."""

    job: int
    window: Window
    compute_s: float


@dataclass(slots=True, eq=False)
class _Row:
    """One segment on its way."""

    job: int
    segment: Segment
    style: Style
    covered_until: float  # the instant its listener runs dry, as far as is known here
    held: bool = False
    slot: int = -1  # none yet
    steps: int = 0  # computed
    emitted: int = 0  # of those, made into sound
    end: int | None = None  # how many there are, once that is known
    rung: int = 0
    compute_s: float = 0.0


@dataclass(slots=True)
class Stepped:
    """What came of a round."""

    chunks: list[Chunk] = field(default_factory=list[Chunk])
    failed: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])  # jobs, and why


class Runner:
    """The slot table of one engine. Unknown jobs are ignored: they have ended or were cancelled meanwhile."""

    def __init__(self, slots: int, most_steps: int, sample_rate: int, ramp: Ramp) -> None:
        self._most_steps = most_steps
        self._sample_rate = sample_rate
        self._ramp = ramp
        self._table: list[_Row | None] = [None] * slots
        self._free = list(range(slots))[::-1]
        self._leaving: list[int] = []
        self._waiting: deque[_Row] = deque()
        self._rows: dict[int, _Row] = {}  # by job, those that wait included
        self._step_s = ramp.step_s  # as of late, all else that a round takes included
        self.width = slots

    @property
    def jobs(self) -> int:
        """Segments that have not ended, those that wait for a slot included."""
        return len(self._rows)

    @property
    def free(self) -> int:
        """Slots that nothing is in, those that must be released first excluded."""
        return len(self._free)

    @property
    def leaving(self) -> int:
        """Slots that the engine has to release."""
        return len(self._leaving)

    @property
    def taken(self) -> int:
        """Slots with a segment in them."""
        return len(self._table) - len(self._free) - len(self._leaving)

    # --- what the gateway says --------------------------------------------------------------------------------------

    def add(self, job: int, segment: Segment, style: Style, covered_until: float) -> None:
        """One more segment; it joins at the next turn that has a slot for it. `ValueError` for a job that is here."""
        if job in self._rows:
            raise ValueError(f"job {job} is here already")
        self._rows[job] = row = _Row(job, segment, style, covered_until)
        self._waiting.append(row)

    def cancel(self, job: int) -> None:
        """Nothing more of it is wanted: its slot is released by the next turn."""
        if row := self._rows.get(job):
            self._retire(row)

    def hold(self, job: int) -> None:
        """Do not step it until `unhold`."""
        if row := self._rows.get(job):
            row.held = True

    def unhold(self, job: int) -> None:
        if row := self._rows.get(job):
            row.held = False

    def cover(self, job: int, until: float) -> None:
        """Its listener has audio up to the instant `until`."""
        if row := self._rows.get(job):
            row.covered_until = until

    def narrow(self, width: int) -> None:
        """Only so many slots may be taken by what joins from now on; who is in one stays."""
        self.width = max(1, min(width, len(self._table)))

    # --- a round ----------------------------------------------------------------------------------------------------

    def turn(self, now: float) -> Turn:
        """What to do at `now`. The slots it releases are free from here on, and may be among those it fills."""
        releases, self._leaving = tuple(self._leaving), []
        self._free += releases
        joins = tuple(self._joins())
        rows = tuple(
            (slot, row.job) for slot, row in enumerate(self._table) if row is not None and self._runnable(row, now)
        )
        return Turn(releases, joins, rows)

    def stepped(self, turn: Turn, ended: Mapping[int, Ended], took_s: float = 0.0) -> Stepped:
        """`turn.rows` have been stepped, in `took_s` together; `ended`: what the engine said, by slot."""
        result = Stepped()
        if turn.rows:
            self._step_s += WEIGHT * (took_s - self._step_s)
        for slot, job in turn.rows:
            row = self._owner(slot, job)
            if row is None:
                continue
            row.steps += 1
            row.compute_s += took_s / len(turn.rows)
            if ending := ended.get(slot):
                if ending.failure:
                    result.failed.append((job, ending.failure))
                    self._retire(row)
                    continue
                row.end = max(row.emitted, min(ending.steps, row.steps))
            elif row.steps >= self._most_steps:
                row.end = row.steps
            if window := self._due(row):
                result.chunks.append(Chunk(job, window, row.compute_s))
                row.emitted = window.end
                row.compute_s = 0.0
        return result

    def emitted(self, chunk: Chunk, samples: int, now: float) -> bool:
        """`samples` of sound came of the chunk; whether it is still wanted."""
        row = self._owner(chunk.window.slot, chunk.job)
        if row is None:
            return False
        row.covered_until = max(row.covered_until, now) + samples / self._sample_rate
        if chunk.window.last:
            self._retire(row)
        else:
            self._climb(row, now)
        return True

    def drop(self, job: int) -> bool:
        """The engine could not load it; whether anybody is to be told."""
        row = self._rows.get(job)
        if row is not None:
            self._retire(row)
        return row is not None

    def wake_at(self, now: float) -> float:
        """When the next turn has something to do, if nothing is said meanwhile: `now`, later or never (inf)."""
        if self._leaving or (self._waiting and self._free and self.taken < self.width):
            return now
        at = math.inf
        for row in self._table:
            if row is None or row.held or row.end is not None:
                continue
            if self._runnable(row, now):
                return now
            at = min(at, row.covered_until - TARGET_LEAD_S)
        return at

    # --- its parts --------------------------------------------------------------------------------------------------

    def _joins(self) -> list[Join]:
        joins: list[Join] = []
        while self._waiting and self._free and self.taken < self.width and len(joins) < JOINS:
            row = min(self._waiting, key=lambda each: each.covered_until)  # the first of those with no audio yet
            self._waiting.remove(row)
            row.slot = self._free.pop()
            self._table[row.slot] = row
            joins.append(Join(row.slot, row.job, row.segment, row.style))
        return joins

    def _runnable(self, row: _Row, now: float) -> bool:
        """A lead that is long enough frees the engine's time for others; while someone waits for a slot, it is worth
        more to be done with this one."""
        if row.held or row.end is not None:
            return False
        return bool(self._waiting) or row.covered_until - now < TARGET_LEAD_S

    def _due(self, row: _Row) -> Window | None:
        if row.end is not None:
            return Window(row.slot, row.emitted, row.end, row.end, True)
        rung = self._ramp.rungs[row.rung]
        if row.steps - rung.ahead - row.emitted < rung.new:
            return None
        return Window(row.slot, row.emitted, row.steps - rung.ahead, row.steps, False)

    def _climb(self, row: _Row, now: float) -> None:
        """A longer chunk next, if the listener's lead lasts until it is there."""
        if row.rung + 1 < len(self._ramp.rungs):
            current, longer = self._ramp.rungs[row.rung : row.rung + 2]
            row.rung += row.covered_until - now >= self._ramp.needed_lead(current, longer, self._step_s)

    def _owner(self, slot: int, job: int) -> _Row | None:
        row = self._table[slot]
        return row if row is not None and row.job == job else None

    def _retire(self, row: _Row) -> None:
        del self._rows[row.job]
        if row.slot < 0:
            self._waiting.remove(row)
        else:
            self._table[row.slot] = None
            self._leaving.append(row.slot)

"""Time and computing power that are only counted: minutes of a busy machine pass in seconds.

Knows events and CPU work. Knows nothing of speech.
"""

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass


class Clock:
    """Virtual seconds; what is due at one instant happens in the order it was asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()

    def at(self, instant: float, call: Callable[[], object]) -> None:
        heapq.heappush(self._due, (max(instant, self.now), next(self._order), call))

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        self.at(self.now + seconds, call)

    def every(self, seconds: float, call: Callable[[], None]) -> None:
        def again() -> None:
            call()
            self.after(seconds, again)

        self.after(seconds, again)

    def run(self, until: float) -> None:
        while self._due and self._due[0][0] <= until:
            self.now, _, call = heapq.heappop(self._due)
            call()
        self.now = until


@dataclass(slots=True, eq=False)
class _Task:
    left_s: float
    weight: float
    done: Callable[[], None]
    rate: float = 0.0


class Cores:
    """A fair scheduler over some cores: a task has its weight's share of them and one core at most (sched(7))."""

    def __init__(self, clock: Clock, cores: float) -> None:
        self._clock = clock
        self._cores = cores
        self._taken = 0.0  # by what is not counted task by task
        self._tasks: list[_Task] = []
        self._counted_at = 0.0
        self._version = 0

    def run(self, work_s: float, weight: float, done: Callable[[], None]) -> None:
        """`done` is called when `work_s` seconds of a core have been spent on it."""
        self._count()
        self._tasks.append(_Task(work_s, weight, done))
        self._plan()

    def take(self, cores: float) -> None:
        """So much is used by what goes before every task."""
        self._count()
        self._taken = cores
        self._plan()

    def _count(self) -> None:
        passed = self._clock.now - self._counted_at
        for task in self._tasks:
            task.left_s -= task.rate * passed
        self._counted_at = self._clock.now

    def _plan(self) -> None:
        free, tasks = max(0.02, self._cores - self._taken), sorted(self._tasks, key=lambda task: -task.weight)
        weights = sum(task.weight for task in tasks)
        first = math.inf
        for task in tasks:
            task.rate = min(1.0, free * task.weight / weights)
            free, weights = free - task.rate, weights - task.weight
            first = min(first, task.left_s / max(task.rate, 1e-9))
        self._version += 1
        if tasks:
            version = self._version
            self._clock.after(max(0.0, first), lambda: self._end(version))

    def _end(self, version: int) -> None:
        if version != self._version:
            return
        self._count()
        ended = [task for task in self._tasks if task.left_s <= 1e-9]
        self._tasks = [task for task in self._tasks if task.left_s > 1e-9]
        self._plan()
        for task in ended:
            task.done()

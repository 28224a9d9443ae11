"""How many utterances of one engine may be spoken at once: additive increase, multiplicative decrease.

Pure; learns from first-audio waits of utterances that were served, and from underruns. Never from how long an utterance
lasted, nor from cancelled ones, which are simply not told.
"""

import math
from dataclasses import dataclass

SLOW_SHARE = 0.05  # of the waits of a window that may exceed the target
PRESSED = 0.9  # the share of the limit in use from which it may grow


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Bounds and pace. A wrong one raises `ValueError` by name."""

    initial: float = 200.0
    floor: float = 10.0
    ceiling: float = 400.0
    target_s: float = 0.15
    backoff: float = 0.9
    growth_per_s: float = 2.0
    window_s: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.floor <= self.initial <= self.ceiling:
            raise ValueError(
                "bounds of the concurrency limit must be 1 <= floor <= initial <= ceiling, not floor "
                f"{self.floor:g}, initial {self.initial:g}, ceiling {self.ceiling:g}"
            )
        for name in ("target_s", "growth_per_s", "window_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be over 0 and finite, not {getattr(self, name):g}")
        if not 0.1 <= self.backoff < 1:
            raise ValueError(f"backoff must be at least 0.1 and under 1, not {self.backoff:g}")


class AdaptiveLimit:
    """At the end of each window: limit <- limit x backoff if over 5 % of its waits, and more than one, exceeded the
    target; else limit <- limit + growth x window if the limit was in use. limit <- limit x backoff at once when two
    listeners ran dry in a window, once in a window. One alone, slow or dry, says nothing of the house.

    The waits are those from the permit on. What a newcomer waits for its permit is made by this limit: fed with that, a
    full house would lower its limit, wait longer, and lower it again.

    What an operator sees: with room to spare it stands still, however long; at the machine's limit it saws, a tenth
    down and slowly up again; after a slow phase it comes back at `growth_per_s`, if there are those who need it.

    Limitations: what is measured is the wait of newcomers. Where the engine puts them before everyone else, they are
    the last to feel an overload; the underruns of those who listen already tell it then.
    """

    def __init__(self, settings: LimitSettings) -> None:
        self.settings = settings
        self.current = settings.initial
        self._began_at: float | None = None  # of the window
        self._decreased_at = self._dry_at = float("-inf")
        self._waits = self._slow = 0
        self._pressed = False

    def sample(self, wait_s: float, in_flight: int, now: float) -> None:
        """From permit to first audio of one that was served, and how many were being spoken then."""
        if self._began_at is None:
            self._began_at = now
        elif now - self._began_at >= 2 * self.settings.window_s:
            self._waits = self._slow = 0  # of a quiet time: too long ago to be added up with this one
        self._waits += 1
        self._slow += wait_s > self.settings.target_s
        self._pressed |= in_flight >= PRESSED * self.current
        if now - self._began_at >= self.settings.window_s:
            if self._slow > max(1, SLOW_SHARE * self._waits):
                self.overload(now)
            elif self._pressed and now - self._decreased_at >= self.settings.window_s:
                # One window's worth, however long ago it began: a limit nobody asked of for a minute does not jump.
                self.current = min(
                    self.settings.ceiling, self.current + self.settings.growth_per_s * self.settings.window_s
                )
            self._began_at, self._waits, self._slow, self._pressed = now, 0, 0, False

    def underrun(self, now: float) -> None:
        """A listener ran dry; the caller counts one listener once."""
        if now - self._dry_at < self.settings.window_s:
            self.overload(now)
        self._dry_at = now

    def overload(self, now: float) -> None:
        """Listeners ran dry, or too many waited too long: one decrease for one congestion, not for each sign of it."""
        if now - self._decreased_at >= self.settings.window_s:
            self.current = max(self.settings.floor, self.current * self.settings.backoff)
            self._decreased_at = now

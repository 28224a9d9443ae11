"""The two ends of a segment that comes in pieces: silence trimmed as its boundaries want, without waiting for all.

What joins.py does to a whole signal. Silence before the first sound is held back until it is known how much of it
there is; behind a sound, as much as the boundary keeps passes at once, and the rest waits for the next sound or the
end.
"""

import numpy as np

from .. import joins
from ..joins import FADE_S, Signal, Silence


class Edges:
    """Of one segment, at the speaking rate `pace`."""

    def __init__(self, rate: int, lead: Silence, tail: Silence, pace: float) -> None:
        self._rate = rate
        self._lead, self._tail = lead.at(pace), tail.at(pace)
        self._begun = False
        self._held = np.zeros(0, np.float32)
        self._passed = 0  # samples of silence given out since the last sound

    def push(self, sound: Signal, *, last: bool) -> Signal:
        """What can be heard of all there is so far and has not been given out."""
        self._held = np.concatenate([self._held, sound])
        pieces = [] if self._begun else self._begin(last)
        if self._begun:
            pieces.append(self._go_on(last))
        return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)

    def _begin(self, last: bool) -> list[Signal]:
        span = joins.audible(self._held, self._rate)
        if span is None and not last:
            if self._lead.most < float("inf"):
                keep = round((self._lead.most + joins.WINDOW_S) * self._rate)
                self._held = self._held[max(len(self._held) - keep, 0) :]
            return []
        self._begun = True
        first = span[0] if span else 0
        cut = max(0, first - int(min(self._lead.most * self._rate, first)))
        pad = max(0, round(self._lead.least * self._rate) - first) if span else 0
        self._held = self._held[cut:].copy()
        if cut or pad:
            joins.fade_in(self._held, self._rate)
        return [np.zeros(pad, np.float32)]

    def _go_on(self, last: bool) -> Signal:
        span = joins.audible(self._held, self._rate)
        quiet_from = span[1] if span else 0  # behind the last sound
        if span:
            self._passed = 0
        silent = self._passed + len(self._held) - quiet_from
        if last:
            return self._end(silent)
        if self._tail.most == float("inf"):
            give = len(self._held)
        else:
            allowed = quiet_from + max(0, round((self._tail.least - FADE_S) * self._rate) - self._passed)
            # A sound that reaches the very end may be over: then it is faded out.
            give = max(0, min(allowed, len(self._held) - round(FADE_S * self._rate)))
        out, self._held = self._held[:give], self._held[give:]
        self._passed += max(0, give - quiet_from)
        return out

    def _end(self, silent: int) -> Signal:
        most = self._tail.most * self._rate
        cut = min(max(0, silent - int(min(most, silent))), len(self._held))
        pad = max(0, round(self._tail.least * self._rate) - silent)
        out, self._held = self._held[: len(self._held) - cut].copy(), self._held[:0]
        if cut or pad:
            joins.fade_out(out, self._rate)
        return np.concatenate([out, np.zeros(pad, np.float32)])

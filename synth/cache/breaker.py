"""Stops asking a store that does not answer, and finds out by single attempts whether it does again.

    closed      every attempt is made; `FAILURES` in a row open it
    open        none is made until the dwell is over, then one: the probe
    half-open   the probe is out; it closes the breaker, or opens it again for twice the dwell

Pure: `now` is passed in. A probe always resolves: one of which nothing was heard for a dwell counts as failed. What is
heard of attempts made before the breaker last changed its state changes nothing.
"""

FAILURES = 5
DWELL_S = 0.5, 30.0  # the first, doubled by every failed probe up to the last


class Breaker:
    def __init__(self) -> None:
        self._failures = 0
        self._round = 0  # attempts of earlier rounds are no longer listened to
        self._dwell_s = DWELL_S[0]
        self._closed = True
        self._next_at = 0.0  # when the next probe may go out, while it is not closed

    @property
    def closed(self) -> bool:
        return self._closed

    def attempt(self, now: float) -> int | None:
        """Leave to ask once, to be given back to `succeeded` or `failed`; None: do not ask."""
        if self._closed:
            return self._round
        if now < self._next_at:
            return None
        self._round += 1
        self._next_at = now + self._dwell_s
        return self._round

    def succeeded(self, attempt: int) -> None:
        if attempt == self._round:
            self._failures = 0
            self._dwell_s = DWELL_S[0]
            self._closed = True

    def failed(self, attempt: int, now: float) -> None:
        if attempt != self._round:
            return
        if self._closed:
            self._failures += 1
            if self._failures < FAILURES:
                return
            self._closed = False
            self._failures = 0
        else:
            self._dwell_s = min(2 * self._dwell_s, DWELL_S[1])
        self._round += 1
        self._next_at = now + self._dwell_s

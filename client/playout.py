"""What a listener would have heard, worked out from when audio arrived. Pure: knows no sockets, no codecs, no clock.

Playing begins with the first message and runs in real time; it stops where the next sample is not there yet, and goes
on when it comes. Every stop is an underrun, also one whose reason was that there was no text yet: `feed` returns its
length, so that a caller who knows better can keep its own books.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class PlayoutClock:
    """Instants are monotonic seconds; samples are at the context's output rate (`Started.sample_rate`)."""

    sample_rate: int
    asked_at: float  # when the text had been sent: what the time to first audio counts from
    tolerance: float = 0.001  # a message later than its sample by less than this was in time for any sound card
    first_at: float | None = None
    underruns: int = 0
    underrun_seconds: float = 0.0
    largest_gap: float = 0.0  # the longest single underrun, seconds
    lowest_lead: float = float("inf")  # seconds of audio in hand when a message came, the first message left out

    @property
    def time_to_first_audio(self) -> float | None:
        return None if self.first_at is None else self.first_at - self.asked_at

    def feed(self, start: int, received_at: float) -> float:
        """Audio that begins at sample `start` came. Returns the underrun it ended, in seconds (0 when in time)."""
        if self.first_at is None:
            self.first_at = received_at
            return 0.0
        lead = start / self.sample_rate - self.position(received_at)
        self.lowest_lead = min(self.lowest_lead, lead)
        if lead >= -self.tolerance:
            return 0.0
        gap = -lead
        self.underruns += 1
        self.underrun_seconds += gap
        self.largest_gap = max(self.largest_gap, gap)
        return gap

    def position(self, now: float) -> float:
        """Seconds of the context a listener who never ran dry again would have heard at `now`."""
        return 0.0 if self.first_at is None else now - self.first_at - self.underrun_seconds

    def heard(self, received: int, now: float) -> int:
        """Samples heard at `now` when `received` samples have come."""
        return min(received, max(0, round(self.position(now) * self.sample_rate)))

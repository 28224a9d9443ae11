"""When may how much audio go out? Keeps the listener's play-out clock of one context.

Knows seconds and instants only: no packets, no sockets, no clock of its own. The listener is assumed to start playing
with the first packet and to play at real time; what it reports of itself (`played`) corrects that.
"""

from dataclasses import dataclass

SLACK_S = 0.02
_NEVER = float("-inf")


@dataclass(slots=True)
class Underruns:
    """Times the listener ran dry while we owed it speech."""

    count: int = 0
    seconds: float = 0.0


class Pacer:
    """Bounds the lead: seconds of audio the listener has in hand.

    The first audio goes out at once; then never more than `lead_s` ahead of the play-out clock. The clock is re-based
    whenever the lead reaches zero, so that silence earns no credit for a burst. To spare wake-ups, a full listener is
    topped up only when `quantum_s` of room has opened. Whatever lead was agreed, one packet may follow the one that is
    playing up to `SLACK_S` before that ends: with none in hand every late wake-up would be heard.
    """

    def __init__(self, lead_s: float) -> None:
        self.lead_s = lead_s
        self.quantum_s = min(lead_s / 3, 0.75)
        self.sent_s = 0.0
        self.underruns = Underruns()
        self._until = _NEVER
        self._filling = True

    @property
    def started(self) -> bool:
        """Whether any audio has been sent."""
        return self._until != _NEVER

    @property
    def until(self) -> float:
        """The instant at which the listener's audio runs out; -inf before the first audio."""
        return self._until

    def lead(self, now: float) -> float:
        """Seconds of audio the listener has in hand."""
        return max(0.0, self._until - now)

    def heard_s(self, now: float) -> float:
        """Seconds of the context the listener has played, by the play-out clock."""
        return self.sent_s - self.lead(now)

    def may_send(self, now: float, duration: float, ahead_s: float = 0.0) -> bool:
        """Whether a packet of `duration` seconds may go out now, after `ahead_s` that `sent` has not been told of."""
        until = self._until
        lead = (until - now if until > now else 0.0) + ahead_s
        if not self._filling and lead <= max(self.lead_s - self.quantum_s, SLACK_S):
            self._filling = True
        if lead > self.lead_s - duration + 1e-9 and lead > SLACK_S + 1e-9:
            self._filling = False
        return self._filling

    def opens_at(self, duration: float) -> float:
        """The instant at which a packet of `duration` that may not go now may be asked for again."""
        room = max(self.lead_s - duration, SLACK_S)  # the most lead at which it may still go out
        return self._until - (room if self._filling else min(max(self.lead_s - self.quantum_s, SLACK_S), room))

    def sent(self, now: float, duration: float, owed_since: float) -> None:
        """`duration` seconds went out. `owed_since`: when the speech they carry was first asked of us."""
        if now <= self._until:
            self._until += duration
        else:
            dry = now - max(self._until, owed_since)
            if self.started and dry > 0:
                self.underruns.count += 1
                self.underruns.seconds += dry
            self._until = now + duration
        self.sent_s += duration

    def played(self, now: float, seconds: float) -> None:
        """The listener says it has played `seconds` of the context: a slower listener than assumed slows the pace."""
        if self.started:
            self._until = max(self._until, now + max(0.0, self.sent_s - seconds))

"""The answer to "may this start?": a permit, a refusal or a place among those that wait, decided at once.

Pure: no sockets, no engines, no clock (`now` comes in, monotonic seconds). Composes the parts of this folder; the whole
decision is `Controller.admit`. What happened is told to it: first audio, underruns, engine failures, memory.

A newcomer is given leave when its first segment can be computed without letting anyone run dry who listens already
(`Forecast`), and while the number of those being spoken is under the limit. Whoever must wait waits here, not in the
scheduler, where it would go before everyone else.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .answer import Ask, Outcome, Permit, Reason, Refusal, Waiting
from .breaker import BreakerSettings, Probe, Refused
from .limit import LimitSettings
from .line import Line
from .queue import QueueSettings
from .quotas import Exceeded, Quotas

Forecast = Callable[[Ask, float], float]  # seconds until the engine could begin without harm to those it serves

START_WITHIN_S = 0.02  # a wait this short is had in the engine's own queue
MODEST_START_WITHIN_S = 0.08
LOOK_AGAIN_S = 0.01  # how often a forecast is asked again for those that wait
SAFETY = 1.5  # waits are predicted in the mean; one that is refused after waiting is worse served than one refused now
RESERVE = 0.1  # the share of a limit that only accounts under their fair share may use
HEADROOM_CHARACTERS = 800  # of first segments that an account over its equal share must leave time for
CONTINUES_WITHIN_S = (
    2.0  # what a listener in mid-conversation waits rather than be refused; newcomers say for themselves
)
CROWD = 1.5  # equal shares over which an account's first segments let all others' go before
MODEST = 0.5  # equal shares under which an account does not suffer for the crowd that others send
SHORTEST_RETRY_S = 0.5
ONE_LISTENER_S = 2.0  # in which one utterance's underruns count once


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the whole process, and the rules of each engine's line."""

    connections: int = 4096
    utterances: int = 400  # spoken at once, all engines together
    segments: int = 4000  # waiting for an engine, all utterances together
    limit: LimitSettings = field(default_factory=LimitSettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    queue: QueueSettings = field(default_factory=QueueSettings)


class Controller:
    """One per gateway process. `draining` refuses everything new."""

    def __init__(self, limits: Limits, *, quotas: Quotas | None = None, forecast: Forecast | None = None) -> None:
        self.limits = limits
        self.quotas = quotas or Quotas()
        self.draining = False
        self.lines: dict[str, Line] = {}
        self.connections = 0
        self.utterances = 0
        self.refusals = dict.fromkeys(Reason, 0)
        self._forecast = forecast or (lambda ask, now: 0.0)

    def line(self, engine: str, now: float, *, max_slots: int | None = None) -> Line:
        """The line of an engine; made when it is first named."""
        if engine not in self.lines:
            self.lines[engine] = Line(
                engine,
                breaker=self.limits.breaker,
                limit=self.limits.limit,
                queue=self.limits.queue,
                max_slots=max_slots,
                now=now,
            )
        return self.lines[engine]

    # --- connections -----------------------------------------------------------------------------------------------

    def connect(self, account: str, now: float, *, although_full: bool = False) -> Permit | Refusal:
        """A place for one more connection; with `although_full` also where there is none for what it may want."""
        if self.draining:
            return self._refuse(Reason.DRAINING, "the server is shutting down", 5.0)
        if self.connections >= self.limits.connections:
            return self._refuse(Reason.CONNECTIONS, "the server has as many connections as it may", 2.0)
        if not although_full and self.is_full(now):
            return self._refuse_connection(now)
        if (refusal := self._refuse_by_quota(self.quotas.connect(account, now))) is not None:
            return refusal
        self.connections += 1
        return Permit(lambda _permit, _outcome, now: self._disconnect(account, now))

    def _disconnect(self, account: str, now: float) -> None:
        self.connections -= 1
        self.quotas.disconnect(account, now)

    # --- quotas of an account --------------------------------------------------------------------------------------

    def open_context(self, account: str, now: float) -> Refusal | None:
        """Counts one more context; a refusal where the account has as many as it may."""
        return self._refuse_by_quota(self.quotas.open_context(account, now))

    def close_context(self, account: str, now: float) -> None:
        self.quotas.close_context(account, now)

    def take_characters(self, account: str, count: int, now: float) -> Refusal | None:
        """Takes so many characters out of the account's minute."""
        return self._refuse_by_quota(self.quotas.characters(account, count, now))

    # --- utterances ------------------------------------------------------------------------------------------------

    def admit(self, ask: Ask, now: float, *, backlog: int = 0) -> Permit | Refusal | Waiting:
        """Leave to speak one utterance. `backlog`: segments that wait for an engine now, all utterances together.

        Quota and limit come before the breaker, because asking a breaker that is half open spends its probe.
        """
        line = self.line(ask.engine, now)
        line.breaker.advance(now)
        if self.draining and ask.newcomer:
            return self._refuse(Reason.DRAINING, "the server is shutting down", 5.0)
        if backlog >= self.limits.segments:
            return self._refuse(Reason.SEGMENTS, "too many segments wait for an engine", 1.0)
        before = self._waiting_of(ask.account) if ask.newcomer else 0
        if (refusal := self._refuse_by_quota(self.quotas.may_speak(ask.account, now, waiting=before))) is not None:
            return refusal
        if not ask.newcomer:
            return self._continue(line, ask, now)
        wait = self._predicted_wait(line, ask, now)
        if not ask.cached:  # says nothing of the engine
            line.breaker.predicted(wait, now)
        if wait > self._start_within(line, ask):
            if line.breaker.would_refuse(now):
                return self._refuse_by_breaker(line, now)
            modest = line.share_of(ask.account) < MODEST
            if (reason := line.room.verdict(wait * SAFETY, ask.max_wait_s, now, patient=modest)) is not None:
                return self._refuse_for_wait(line, reason, wait)
            return self._wait(line, ask, line.room.allowed_wait(ask.max_wait_s, now, patient=modest), now)
        return self._ask_breaker(line, ask, now)

    def _continue(self, line: Line, ask: Ask, now: float) -> Permit | Refusal | Waiting:
        """A listener in mid-conversation goes before all newcomers, may use a tenth beyond each limit and asks no
        breaker; but it waits, too, rather than let others run dry."""
        if self.utterances >= _beyond(self.limits.utterances):
            return self._refuse(Reason.UTTERANCES, "as many utterances are being spoken as may be", 1.0)
        if self._may_continue(line, ask, now):
            return self._permit(line, ask, now)
        if len(line.room) >= line.room.settings.waiting:
            return self._refuse_for_wait(line, Reason.QUEUE.value, 1.0)
        return self._wait(line, ask, max(ask.max_wait_s, CONTINUES_WITHIN_S), now)

    def _may_continue(self, line: Line, ask: Ask, now: float) -> bool:
        has_room = line.active < _beyond(line.limit.current) and self.utterances < _beyond(self.limits.utterances)
        return has_room and self._engine_wait(line, ask, now) <= START_WITHIN_S

    def _wait(self, line: Line, ask: Ask, for_s: float, now: float) -> Waiting:
        line.wait(ask, for_s, now)
        return Waiting(ask.ticket)

    def _predicted_wait(self, line: Line, ask: Ask, now: float) -> float:
        """Seconds until this one could begin, those that wait before it included."""
        before = [each for each in line.asks.values() if line.rank(each) <= line.rank(ask)]
        ahead = len(before)
        has_room = self._has_room(line, ask.account)
        if ask.cached and has_room:
            return 0.0
        wait = self._engine_wait(line, ask, now, ahead=sum(each.characters for each in before if not each.cached))
        if not has_room:
            return max(wait, (ahead + 1) * line.seconds_per_release(now))
        return max(wait, START_WITHIN_S) + LOOK_AGAIN_S * ahead if ahead else wait

    def _room(self, line: Line) -> int:
        """How many more may be spoken."""
        return min(math.floor(line.limit.current) - line.active, self.limits.utterances - self.utterances)

    def _has_room(self, line: Line, account: str) -> bool:
        """Whether one more may be spoken; the last tenth is for accounts that use less than their fair share."""
        room = self._room(line)
        if room <= 0:
            return False
        return room > line.limit.current * RESERVE or not line.is_over_fair_share(account)

    def _ask_breaker(self, line: Line, ask: Ask, now: float) -> Permit | Refusal:
        match line.breaker.ask(now):
            case Refused():
                return self._refuse_by_breaker(line, now)
            case Probe():
                return self._permit(line, ask, now, probe=True)
            case _:
                return self._permit(line, ask, now)

    def _permit(self, line: Line, ask: Ask, now: float, *, probe: bool = False) -> Permit:
        crowding = line.share_of(ask.account) > CROWD
        line.enter(ask, now)
        self.utterances += 1
        self.quotas.begin_utterance(ask.account, now)
        return Permit(self._released, ask, given_at=now, probe=probe, crowding=crowding)

    def _released(self, permit: Permit, outcome: Outcome, now: float) -> None:
        assert permit.ask is not None
        self.lines[permit.ask.engine].leave(permit, outcome, now)
        self.utterances -= 1
        self.quotas.end_utterance(permit.ask.account, now)

    # --- those that wait -------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Newcomers that wait for a permit."""
        return sum(len(line.asks) for line in self.lines.values())

    def _waiting_of(self, account: str) -> int:
        return sum(ask.account == account for line in self.lines.values() for ask in line.asks.values())

    def withdraw(self, ticket: int) -> None:
        """The client does not want it any more."""
        for line in self.lines.values():
            line.withdraw(ticket)

    def next(self, now: float) -> tuple[int, Permit | Refusal] | None:
        """The answer to one of those that wait, if one is due.

        One at a time: the forecast of the next one counts the segment of this one only when it has been handed over.
        """
        for line in self.lines.values():
            if not line.asks:
                continue
            if self.draining and (ask := next((each for each in line.asks.values() if each.newcomer), None)):
                line.withdraw(ask.ticket)
                return ask.ticket, self._refuse(Reason.DRAINING, "the server is shutting down", 5.0)
            if (ticket := line.room.expire(now)) is not None:
                line.withdraw(ticket)
                return ticket, self._refuse_for_wait(line, Reason.WAIT.value, line.seconds_per_release(now))
            if (answered := self._next_of(line, now)) is not None:
                return answered
        return None

    def _next_of(self, line: Line, now: float) -> tuple[int, Permit | Refusal] | None:
        """The first that can be answered: an account that must leave room to others does not hold them up, nor does an
        engine that is not free yet hold up cached speech."""
        shut = line.breaker.would_refuse(now)
        engine_is_free: bool | None = None  # for the first that needs it; who comes after it does not overtake it
        for ask in line.ranked():
            if not ask.newcomer:
                if engine_is_free is False and not ask.cached:
                    continue
                if self._may_continue(line, ask, now):
                    line.withdraw(ask.ticket)
                    return ask.ticket, self._permit(line, ask, now)
                engine_is_free = False
                continue
            if not shut and not self._has_room(line, ask.account):
                continue
            if not shut and not ask.cached:
                if engine_is_free is None:
                    engine_is_free = self._engine_wait(line, ask, now) <= self._start_within(line, ask)
                if not engine_is_free:
                    continue
            line.withdraw(ask.ticket)
            refusal = self._refuse_by_quota(self.quotas.may_speak(ask.account, now))
            return ask.ticket, refusal or self._ask_breaker(line, ask, now)
        return None

    def _engine_wait(self, line: Line, ask: Ask, now: float, ahead: int = 0) -> float:
        """`ahead`: characters of the first segments of those that go before it."""
        if ask.cached:
            return 0.0
        if line.share_of(ask.account) > 1:
            ahead += HEADROOM_CHARACTERS
        return self._forecast(replace(ask, characters=ask.characters + ahead), now)

    @staticmethod
    def _start_within(line: Line, ask: Ask) -> float:
        """Seconds of predicted wait that are had in the engine's queue. A modest account begins in the margin that is
        kept for all: the crowd that keeps the engine busy goes behind it there."""
        return MODEST_START_WITHIN_S if line.share_of(ask.account) < MODEST else START_WITHIN_S

    def wake_at(self, now: float) -> float:
        """When `next` should be asked again, if nothing happens before; inf when nobody waits."""
        if not self.waiting:
            return math.inf
        return now + LOOK_AGAIN_S

    # --- what happened ---------------------------------------------------------------------------------------------

    def first_audio(self, permit: Permit, wait_s: float, now: float, *, held_up_s: float = 0.0) -> None:
        """The first audio of an utterance has been handed to its socket, so long after its text. `held_up_s`: for so
        much of it the audio was there, and the socket was not: nothing that fewer listeners would change."""
        assert permit.ask is not None
        line = self.lines[permit.ask.engine]
        line.breaker.first_audio(wait_s - held_up_s, now)
        line.limit.sample(now - permit.given_at - held_up_s, line.active, now)
        line.resolve(permit, True, now)

    def underrun(self, permit: Permit, now: float) -> None:
        """A listener ran dry, and not for being slow to take what was there."""
        assert permit.ask is not None
        line = self.lines[permit.ask.engine]
        if now - permit.dry_at >= ONE_LISTENER_S:  # all it hears of a stutter is one sign of trouble
            permit.dry_at = now
            line.breaker.underrun(now)
            line.limit.underrun(now)

    def engine_failed(self, engine: str, now: float) -> None:
        """The engine broke, not one text."""
        self.line(engine, now).breaker.failure(now)

    def memory(self, engine: str, pressure: float | None, now: float) -> None:
        """Memory pressure of the device this engine is bound to; None: unknown."""
        self.line(engine, now).breaker.memory(pressure, now)

    def advance(self, now: float) -> None:
        """Lets time pass: dwells end, downgrades are taken and taken back."""
        for line in self.lines.values():
            line.breaker.advance(now)
            line.downgrades.advance(line.breaker.causes, now)

    def realtime_only(self, engine: str) -> bool:
        """Whether voices of the quality tier that this engine speaks give way to real-time ones."""
        return engine in self.lines and self.lines[engine].downgrades.realtime_only

    def cheaper_opus(self, engine: str) -> bool:
        return engine in self.lines and self.lines[engine].downgrades.cheaper_opus

    # --- how it stands ---------------------------------------------------------------------------------------------

    def is_full(self, now: float) -> bool:
        """Whether nobody who came now could be spoken to, by any engine."""
        return bool(self.lines) and all(self._is_full(line, now) for line in self.lines.values())

    def retry_after(self, now: float) -> float:
        """Seconds until some engine takes a newcomer: one of those being spoken has ended and those that wait are
        served, or its breaker lets one through."""
        waits = [
            line.breaker.retry_after(now)
            if line.breaker.would_refuse(now)
            else line.seconds_per_release(now) * (len(line.asks) + 1)
            for line in self.lines.values()
        ]
        return max(SHORTEST_RETRY_S, min(waits, default=0.0))

    # --- refusals --------------------------------------------------------------------------------------------------

    def _is_full(self, line: Line, now: float) -> bool:
        """Whether a newcomer would be turned away at once."""
        if line.breaker.would_refuse(now):
            return True
        if self._room(line) > 0:
            return False
        wait = (len(line.asks) + 1) * line.seconds_per_release(now)
        return wait > line.room.allowed_wait(self.limits.queue.usual_wait_s, now)

    def _refuse_for_wait(self, line: Line, reason: str, wait: float) -> Refusal:
        full = self._room(line) <= 0
        message = "as many utterances are being spoken as may be" if full else "it would not begin soon enough"
        return self._refuse(Reason.UTTERANCES if full else Reason(reason), message, max(SHORTEST_RETRY_S, wait))

    def _refuse_connection(self, now: float) -> Refusal:
        if all(line.breaker.would_refuse(now) for line in self.lines.values()):
            return self._refuse(Reason.BREAKER, "no engine takes anything new just now", self.retry_after(now))
        return self._refuse(Reason.UTTERANCES, "every voice is in use", self.retry_after(now))

    def _refuse_by_breaker(self, line: Line, now: float) -> Refusal:
        return self._refuse(Reason.BREAKER, f"{line.engine} takes nothing new just now", line.breaker.retry_after(now))

    def _refuse_by_quota(self, exceeded: Exceeded | None) -> Refusal | None:
        return None if exceeded is None else self._refuse(Reason.QUOTA, exceeded.message, exceeded.retry_after_s)

    def _refuse(self, reason: Reason, message: str, retry_after: float) -> Refusal:
        self.refusals[reason] += 1
        return Refusal(reason, message, math.ceil(retry_after * 1000) / 1000)  # never before there is room


def _beyond(limit: float) -> int:
    """What those in mid-conversation may use of it."""
    whole = math.floor(limit)
    return whole + max(1, round(whole * RESERVE))

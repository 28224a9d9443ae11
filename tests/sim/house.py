"""A house in virtual time: the real admission, scheduler and forecast between modelled engines and modelled listeners.

Owns what the gateway would do between them, and a record of every utterance. Listeners play in real time from their
first audio on; engines (engines.py) and encoders take CPU of the modelled machine (machine.py).
"""

import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sim.engines import Encoders, Engine, Workers
from sim.machine import Clock, Cores
from voxgate.admission.answer import Ask, Outcome, Permit, Reason, Refusal, Waiting
from voxgate.admission.controller import Controller, Limits
from voxgate.loadtest.corpus import TextMaker
from voxgate.synth.forecast import Cost, predicted_wait
from voxgate.synth.scheduler import Scheduler
from voxgate.synth.segment import Boundary, Segment

ENGINE = "modelled"
CHARACTERS_PER_S = 15.0  # of the bundled voice
PAUSE_S = 0.3  # behind a sentence
ENCODE_S = 0.0015  # CPU per second of audio: libopus
OVERHEAD_S = 0.0018  # CPU per second of audio that goes before everything: gateway and load tool
ON_THE_WAY_S = 0.006  # from the text's arrival and to the socket, all that is no engine and no encoder
TARGET_LEAD_S, AGREED_LEAD_S = 4.0, 2.0
SEGMENTS_AHEAD = 4
WATCH_S = 0.1
KINDS = {"short": 30, "medium": 50, "long": 20}


@dataclass(slots=True, eq=False)
class Utterance:
    """What became of one. Instants are None until they come."""

    number: int
    account: str
    asked_at: float
    audio_s: float
    permit_at: float | None = None
    first_at: float | None = None
    ended_at: float | None = None
    refused: Reason | None = None
    refused_at: float = math.inf
    dropped: bool = False
    dry: list[float] = field(default_factory=list)  # how long each time

    @property
    def wait_s(self) -> float:
        """From its text to its first audio."""
        return math.inf if self.first_at is None else self.first_at - self.asked_at


@dataclass(slots=True, eq=False)
class _Speaking:
    """The gateway's side of an utterance that has been asked for."""

    record: Utterance
    segments: deque[Segment]
    ended: Callable[[float], None]  # is told when its listener has heard it out
    refused: Callable[[float], None]  # … or when to come back
    permit: Permit | None = None
    until: float = -math.inf  # the listener has been given audio up to here
    segments_in_all: int = 0
    handed_over: int = 0
    encoded: int = 0
    unencoded_s: float = 0.0
    heard: bool = False  # some of it has been synthesized


@dataclass(frozen=True, slots=True)
class Sample:
    """How the house stood at an instant."""

    at: float
    active: int
    limit: float
    waiting: int
    state: str
    width: int | None
    pressure: float | None


class House:
    def __init__(
        self,
        *,
        seed: int = 0,
        limits: Limits | None = None,
        engine: Callable[[Clock, Cores, random.Random], Engine] = Workers,
        forecast: bool = True,
        cores: int = 2,
        max_slots: int | None = None,
    ) -> None:
        self.chance = random.Random(seed)
        self.clock = Clock()
        self.cores = Cores(self.clock, cores)
        self.engine = engine(self.clock, self.cores, self.chance)
        self.encoders = Encoders(self.cores, threads=cores, cost_s=ENCODE_S)
        self.scheduler = Scheduler(TARGET_LEAD_S)
        self._workers = max_slots or cores
        self.cost = Cost(self._workers)
        self.controller = Controller(limits or Limits(), forecast=self._predicted_wait if forecast else None)
        self.line = self.controller.line(ENGINE, 0.0, max_slots=max_slots)
        self.utterances: list[Utterance] = []
        self.samples: list[Sample] = []
        self.pressure: Callable[[float], float | None] = lambda now: None
        self._seed = seed
        self._numbers = itertools.count(1)
        self._running: dict[int, Segment] = {}
        self._speaking: dict[int, _Speaking] = {}
        self._waiting: dict[int, _Speaking] = {}
        self._looks_at: float | None = None
        self.clock.every(WATCH_S, self._watch)

    def run(self, until: float) -> None:
        self.clock.run(until)

    # --- who comes -------------------------------------------------------------------------------------------------

    def listeners(self, count: int, *, ramp_s: float, account: str = "", first_at: float = 0.0) -> None:
        """Closed: each asks for its next utterance when it has heard the last one out, and comes back when told."""
        for number in range(count):
            self._listener(f"{account} {number}", account, first_at + ramp_s * number / count)

    def _listener(self, name: str, account: str, begins_at: float) -> None:
        texts = TextMaker(self._text_seed(name))

        def ask() -> None:
            self.ask(
                self.text(texts),
                account=account,
                ended=lambda heard_out_at: self.clock.at(heard_out_at, ask),
                refused=lambda after: self.clock.after(after, ask),
            )

        self.clock.at(begins_at, ask)

    def arrivals(
        self,
        per_s: float,
        *,
        begin: float,
        end: float,
        account: str = "",
        patience_s: Callable[[], float] = lambda: math.inf,
    ) -> None:
        """Open: they come whatever the house does, and do not come back."""
        texts, at = TextMaker(self._text_seed(f"arrivals {begin} {account}")), begin
        while (at := at + self.chance.expovariate(per_s)) < end:
            self.clock.at(at, lambda: self.ask(self.text(texts), account=account, patience_s=patience_s()))

    def crowd(self, count: int, *, begin: float, within_s: float, newcomers: bool = True) -> None:
        """All within so many seconds."""
        texts = TextMaker(self._text_seed(f"crowd {begin}"))
        for _ in range(count):
            at = begin + self.chance.uniform(0, within_s)
            self.clock.at(at, lambda: self.ask(self.text(texts), newcomer=newcomers))

    def _text_seed(self, name: str) -> int:
        return random.Random(f"{self._seed} {name}").randrange(1 << 30)

    def text(self, texts: TextMaker) -> list[Segment]:
        """One text, cut as the segmenter would."""
        made = texts.make(self.chance.choices(list(KINDS), list(KINDS.values()))[0])
        cuts = itertools.pairwise((0, *made.pieces))
        return [
            Segment(index, made.text[begin:end], begin, end, Boundary.SENTENCE, Boundary.SENTENCE)
            for index, (begin, end) in enumerate(cuts)
        ]

    # --- the gateway -----------------------------------------------------------------------------------------------

    def ask(
        self,
        segments: Sequence[Segment],
        *,
        account: str = "",
        newcomer: bool = True,
        max_wait_s: float = 0.2,
        patience_s: float = math.inf,
        ended: Callable[[float], None] = lambda heard_out_at: None,
        refused: Callable[[float], None] = lambda after: None,
    ) -> Utterance:
        now, number = self.clock.now, next(self._numbers)
        record = Utterance(number, account, now, sum(audio_s(segment) for segment in segments))
        self.utterances.append(record)
        speaking = _Speaking(record, deque(segments), ended, refused, segments_in_all=len(segments))
        ask = Ask(number, ENGINE, account, newcomer=newcomer, characters=len(segments[0].text), max_wait_s=max_wait_s)
        answer = self.controller.admit(ask, now, backlog=self.scheduler.backlog)
        if patience_s < math.inf:
            self.clock.after(patience_s, lambda: self._hang_up(speaking))
        if isinstance(answer, Waiting):
            self._waiting[number] = speaking
            self._look_later()
        else:
            self._answered(speaking, answer)
        return record

    def _hang_up(self, speaking: _Speaking) -> None:
        """Who has heard nothing yet does not want it any more."""
        record = speaking.record
        if self._waiting.pop(record.number, None) is not None:
            self.controller.withdraw(record.number)
        elif speaking.permit is not None and record.first_at is None:
            self._end(speaking, Outcome.CANCELLED)

    def _look_later(self) -> None:
        if self._looks_at is None and (at := self.controller.wake_at(self.clock.now)) != math.inf:
            self._looks_at = at
            self.clock.at(at, self._look)

    def _look(self) -> None:
        self._looks_at = None
        while answered := self.controller.next(self.clock.now):
            self._answered(self._waiting.pop(answered[0]), answered[1])
        self._look_later()

    def _answered(self, speaking: _Speaking, answer: Permit | Refusal) -> None:
        now, record = self.clock.now, speaking.record
        if isinstance(answer, Refusal):
            record.refused, record.refused_at = answer.reason, now
            speaking.refused(answer.retry_after)
            return
        record.permit_at, speaking.permit = now, answer
        self._speaking[record.number] = speaking
        self.scheduler.add(record.number, crowding=answer.crowding)
        self._take_overhead()
        self._hand_over(speaking)

    def _hand_over(self, speaking: _Speaking) -> None:
        while speaking.segments and speaking.handed_over - speaking.encoded < SEGMENTS_AHEAD:
            speaking.handed_over += 1
            self.scheduler.push(speaking.record.number, speaking.segments.popleft())
        self._dispatch()

    def _dispatch(self) -> None:
        now = self.clock.now
        while (work := self._next(now)) is not None:
            number, segment = work
            self._run(self._speaking[number], segment)
        for urgent in self.engine.room(self.line.downgrades.width):
            if (at := self.scheduler.wake_at(now, urgent=urgent)) is not None:
                self.clock.at(at, self._dispatch)

    def _next(self, now: float) -> tuple[int, Segment] | None:
        works = (self.scheduler.next(now, urgent=each) for each in self.engine.room(self.line.downgrades.width))
        return next((work for work in works if work is not None), None)

    def _run(self, speaking: _Speaking, segment: Segment) -> None:
        job, began_at = next(self._numbers), self.clock.now
        self._running[job] = segment
        sounds_s = audio_s(segment) * self.chance.uniform(0.85, 1.15)

        def done(spoken: bool) -> None:
            del self._running[job]
            now = self.clock.now
            if spoken:
                self.cost.end(job, now, characters=len(segment.text), compute_s=now - began_at)
                self._spoken(speaking, sounds_s)
            else:
                self.cost.end(job, now)
                self._failed(speaking)
            self._dispatch()

        assert speaking.permit is not None
        urgent = not (speaking.heard or speaking.permit.crowding)
        self.cost.begin(job, began_at, urgent=urgent)
        self.engine.speak(sounds_s, urgent, done)

    def _spoken(self, speaking: _Speaking, sounds_s: float) -> None:
        if speaking.permit is None:
            return
        speaking.heard = True
        speaking.unencoded_s += sounds_s
        until = max(speaking.until, self.clock.now)
        self.scheduler.cover(speaking.record.number, until + speaking.unencoded_s)
        self.scheduler.done(speaking.record.number)
        self._dispatch()
        self.encoders.encode(sounds_s, lambda: self._first(speaking), lambda: self._encoded(speaking, sounds_s))

    def _failed(self, speaking: _Speaking) -> None:
        self.controller.engine_failed(ENGINE, self.clock.now)
        if speaking.permit is not None:
            speaking.record.dropped = True
            self._end(speaking, Outcome.DROPPED)
            speaking.ended(self.clock.now + 1.0)

    def _first(self, speaking: _Speaking) -> None:
        """The first packets of a segment leave before the rest of it is encoded."""
        if speaking.encoded or speaking.permit is None:
            return
        record = speaking.record
        record.first_at = self.clock.now + ON_THE_WAY_S
        speaking.until = self.clock.now
        self.controller.first_audio(speaking.permit, record.wait_s, self.clock.now)

    def _encoded(self, speaking: _Speaking, sounds_s: float) -> None:
        now = self.clock.now
        if speaking.permit is None:
            return
        if speaking.encoded and now > speaking.until:
            speaking.record.dry.append(now - speaking.until)
            self.controller.underrun(speaking.permit, now)
            speaking.until = now
        speaking.until += sounds_s
        speaking.unencoded_s -= sounds_s
        speaking.encoded += 1
        self.scheduler.cover(speaking.record.number, speaking.until + speaking.unencoded_s)
        if speaking.encoded < speaking.segments_in_all:
            self._hand_over(speaking)
        else:
            self.clock.at(speaking.until - AGREED_LEAD_S, lambda: self._sent(speaking))

    def _sent(self, speaking: _Speaking) -> None:
        self._end(speaking, Outcome.SERVED)
        speaking.ended(speaking.until)

    def _end(self, speaking: _Speaking, outcome: Outcome) -> None:
        assert speaking.permit is not None
        speaking.record.ended_at = self.clock.now
        speaking.permit.release(outcome, self.clock.now)
        speaking.permit = None
        self.scheduler.cancel(speaking.record.number)
        del self._speaking[speaking.record.number]
        self._take_overhead()

    def _take_overhead(self) -> None:
        self.cores.take(OVERHEAD_S * len(self._speaking))

    def _predicted_wait(self, ask: Ask, now: float) -> float:
        due = [(dry_at, self.cost.of(len(segment.text))) for dry_at, segment in self.scheduler.due()]
        running_s = sum(self.cost.of(len(segment.text)) for segment in self._running.values()) / 2
        return predicted_wait(
            due, own_s=self.cost.of(ask.characters), running_s=running_s, workers=self._workers, now=now
        )

    # --- what happens by itself, and what is seen of it ------------------------------------------------------------

    def _watch(self) -> None:
        now = self.clock.now
        pressure = self.pressure(now)
        if self.line.max_slots is not None:
            self.controller.memory(ENGINE, pressure, now)
        self.controller.advance(now)
        self._dispatch()
        self.samples.append(
            Sample(
                at=now,
                active=self.line.active,
                limit=self.line.limit.current,
                waiting=self.controller.waiting,
                state=self.line.breaker.state.name.lower(),
                width=self.line.downgrades.width,
                pressure=pressure,
            )
        )

    def stalls(self, per_s: float) -> None:
        """Now and then the whole machine is somebody else's for 10 to 50 ms, as a shared one is."""

        def stall() -> None:
            self.cores.take(math.inf)
            self.clock.after(self.chance.uniform(0.01, 0.05), self._take_overhead)
            self.clock.after(self.chance.expovariate(per_s), stall)

        self.clock.after(self.chance.expovariate(per_s), stall)


def audio_s(segment: Segment) -> float:
    """How long it sounds, give or take."""
    return len(segment.text) / CHARACTERS_PER_S + PAUSE_S


# --- what became of them ----------------------------------------------------------------------------------------------


def between(utterances: Sequence[Utterance], begin: float, end: float) -> list[Utterance]:
    """Those that were asked for then."""
    return [each for each in utterances if begin <= each.asked_at < end]


def admitted(utterances: Sequence[Utterance]) -> list[Utterance]:
    return [each for each in utterances if each.permit_at is not None]


def refused_share(utterances: Sequence[Utterance]) -> float:
    return sum(each.refused is not None for each in utterances) / max(1, len(utterances))


def gapless_share(utterances: Sequence[Utterance]) -> float:
    """Of those that were admitted."""
    heard = admitted(utterances)
    return sum(not each.dry for each in heard) / max(1, len(heard))


def wait_s(utterances: Sequence[Utterance], share: float) -> float:
    """From text to first audio, of those that were heard."""
    waits = sorted(each.wait_s for each in utterances if each.first_at is not None)
    return waits[min(len(waits) - 1, math.ceil(share * len(waits)) - 1)] if waits else 0.0


def goodput(utterances: Sequence[Utterance], begin: float, end: float) -> float:
    """Seconds of audio a second that were heard then without a gap."""
    heard = 0.0
    for each in utterances:
        if each.first_at is not None and not each.dry and not each.dropped:
            heard += max(0.0, min(end, each.first_at + each.audio_s) - max(begin, each.first_at))
    return heard / (end - begin)

"""A stage for sessions that speaks when the test says so: real packets, real permits, scripted voice."""

import itertools
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from voxgate.admission.answer import Ask, Permit, Refusal, Waiting
from voxgate.admission.controller import Controller, Limits
from voxgate.codecs.packetizer import Format, Packetizer
from voxgate.gateway.session import Session
from voxgate.gateway.stage import Part
from voxgate.gateway.wire import EngineState
from voxgate.synth.engine import Voice
from voxgate.synth.segment import Segment, Style
from voxgate.synth.speech import Speech

RATE = 24000
HEART = Voice("heart", "en-US", "scripted", "realtime", RATE)
SECONDS_PER_WORD = 0.24  # a whole number of 20 ms frames


def spoken(segment: Segment) -> Speech:
    """What the scripted voice makes of a segment: a loud tone, 0.24 s for each word."""
    samples = int(len(segment.text.split()) * SECONDS_PER_WORD * RATE)
    return Speech((8000 * np.sin(np.arange(samples) * 2 * np.pi * 220 / RATE)).astype(np.int16))


@dataclass
class ScriptedTrack:
    """Encodes when asked to, in order, with the real packetizer."""

    key: int
    packetizer: Packetizer
    jobs: deque[NDArray[np.int16] | None] = field(default_factory=deque)
    closed: bool = False

    def push(self, pcm: NDArray[np.int16]) -> None:
        self.jobs.append(pcm)

    def finish(self) -> None:
        self.jobs.append(None)

    def close(self) -> None:
        self.closed = True
        self.jobs.clear()


class ScriptedStage:
    """Holds what it was asked for until `work` is called."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.voices: tuple[Voice, ...] = (HEART,)
        self.controller = Controller(limits or Limits(), forecast=lambda _ask, _now: self.forecast_s)
        self.forecast_s = 0.0  # until an engine could begin
        self.now = 0.0
        self.first_waits: list[float] = []
        self.held_up: list[float] = []  # of those, for a socket that took nothing
        self.parts: list[tuple[Part, float]] = []
        self.dry: list[float] = []
        self.hurried = False  # no time for the quality tier
        self.segments: deque[tuple[int, Segment]] = deque()
        self.open_utterances: dict[int, Style] = {}
        self.held: set[int] = set()
        self.covered: dict[int, float] = {}
        self.tracks: dict[int, ScriptedTrack] = {}
        self._ids = itertools.count(1)

    def engines(self) -> dict[str, EngineState]:
        return {"scripted": EngineState("normal", (), 0.0)}

    def realtime_only(self, voice: Voice) -> bool:
        return self.hurried

    def cheaper_opus(self, voice: Voice) -> bool:
        return self.hurried

    def new_id(self) -> int:
        return next(self._ids)

    def pronounce(self, segment: Segment, voice: Voice) -> Segment:
        return segment

    def open_context(self) -> Refusal | None:
        return self.controller.open_context("", self.now)

    def close_context(self) -> None:
        self.controller.close_context("", self.now)

    def take_characters(self, count: int) -> Refusal | None:
        return self.controller.take_characters("", count, self.now)

    def admit(
        self, ticket: int, segment: Segment, voice: Voice, style: Style, *, newcomer: bool, max_wait_s: float
    ) -> Permit | Refusal | Waiting:
        ask = Ask(ticket, voice.engine, newcomer=newcomer, characters=len(segment.text), max_wait_s=max_wait_s)
        return self.controller.admit(ask, self.now, backlog=len(self.segments))

    def withdraw(self, ticket: int) -> None:
        self.controller.withdraw(ticket)

    def heard_first(self, permit: Permit, wait_s: float, held_up_s: float) -> None:
        self.first_waits.append(wait_s)
        self.held_up.append(held_up_s)

    def took(self, part: Part, seconds: float) -> None:
        self.parts.append((part, seconds))

    def ran_dry(self, permit: Permit, seconds: float) -> None:
        self.dry.append(seconds)

    def track(self, key: int, form: Format, source_rate: int) -> ScriptedTrack:
        self.tracks[key] = ScriptedTrack(key, Packetizer(form, source_rate))
        return self.tracks[key]

    def open(self, utterance: int, style: Style, *, crowding: bool) -> None:
        assert utterance not in self.open_utterances
        self.open_utterances[utterance] = style

    def speak(self, utterance: int, segment: Segment) -> None:
        assert utterance in self.open_utterances
        self.segments.append((utterance, segment))

    def cover(self, utterance: int, until: float) -> None:
        assert utterance in self.open_utterances
        self.covered[utterance] = until

    def hold(self, utterance: int) -> None:
        assert utterance in self.open_utterances
        self.held.add(utterance)

    def release(self, utterance: int) -> None:
        self.held.remove(utterance)

    def close_utterance(self, utterance: int) -> None:
        del self.open_utterances[utterance]
        self.held.discard(utterance)
        self.segments = deque(pair for pair in self.segments if pair[0] != utterance)

    # --- the test's side -------------------------------------------------------------------------------------------

    def answer_waiting(self, session: Session, now: float) -> None:
        """Lets admission answer those whose wait is over."""
        self.now = now
        while answered := self.controller.next(now):
            session.admitted(*answered, now)

    def speak_one(self, session: Session, now: float) -> bool:
        """Speaks the oldest segment that is not held; False if there is none."""
        for pair in self.segments:
            if pair[0] not in self.held:
                self.segments.remove(pair)
                session.audio(*pair, spoken(pair[1]), now)
                return True
        return False

    def encode_one(self, session: Session, now: float) -> bool:
        """Does the oldest job of some track; False if there is none."""
        for track in self.tracks.values():
            if track.jobs:
                job = track.jobs.popleft()
                if job is None:
                    session.encoded(track.key, track.packetizer.finish(), track.packetizer.samples, now)
                else:
                    session.encoded(track.key, track.packetizer.push(job), None, now)
                return True
        return False

    def work(self, session: Session, now: float) -> bool:
        """Speaks and encodes until nothing is left to do; whether there was anything."""
        worked = False
        while self.encode_one(session, now) or self.speak_one(session, now):
            worked = True
        return worked

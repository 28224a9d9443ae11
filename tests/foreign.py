"""A session that speaks another service's wire, for tests: scripted voice, real packets, messages as they go out."""

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from scripted_stage import ScriptedStage
from voxgate.admission.controller import Limits as HouseLimits
from voxgate.gateway.adapters.names import VoiceNames
from voxgate.gateway.adapters.sockets import dialect_for
from voxgate.gateway.session import Defaults, Limits, Session


class Foreign:
    """One connection to `url`, a path with its query. Time passes only in `finish` and `listen`."""

    def __init__(self, url: str, limits: Limits | None = None, house: HouseLimits | None = None) -> None:
        path, query = urlsplit(url).path, dict(parse_qsl(urlsplit(url).query))
        self.stage = ScriptedStage(house)
        self.now = 0.0
        dialect = dialect_for(path, query, lambda name: VoiceNames([]).resolve(name, self.stage.voices))
        assert dialect is not None
        self.session = Session(self.stage, limits or Limits(), Defaults(), self.now, dialect)
        self.said: list[Any] = []
        self.poll()

    def hear(self, *messages: Mapping[str, Any]) -> None:
        """The client says so."""
        for message in messages:
            self.session.receive(json.dumps(message), self.now)

    def poll(self) -> bool:
        items = self.session.poll(self.now)
        self.said += [json.loads(item) if isinstance(item, str) else item for item in items]
        return bool(items)

    def work(self) -> None:
        """Speaks, encodes and sends what can be at this instant."""
        while self.poll() or self.stage.work(self.session, self.now):
            pass

    def listen(self, seconds: float) -> None:
        """Works for so long."""
        until = self.now + seconds
        while self.now < until:
            self.work()
            self.now = min(until, self.now + 0.05)
            self.stage.answer_waiting(self.session, self.now)
        self.work()

    def finish(self) -> None:
        """Works until nothing is left to do that a client would not wait minutes for."""
        self.work()
        while self.session.wake_at(self.now) < self.now + 60:
            self.now = max(self.now + 0.001, self.session.wake_at(self.now))
            self.stage.answer_waiting(self.session, self.now)
            self.work()

    def take(self) -> list[Any]:
        """What has been said since the last time."""
        said, self.said = self.said, []
        return said


def audio_of(message: object) -> bytes | None:
    """The audio that a message carries, wherever it has it."""
    if isinstance(message, bytes):
        return message
    if not isinstance(message, dict):
        return None
    data = message.get("data")
    coded = message.get("audio") or (data.get("audio") if isinstance(data, dict) else data)
    return base64.b64decode(coded) if coded else None


def sound(said: list[Any]) -> bytes:
    """All audio, joined."""
    return b"".join(audio_of(message) or b"" for message in said)


def others(said: list[Any]) -> list[Any]:
    """What is said besides audio."""
    return [message for message in said if audio_of(message) is None]

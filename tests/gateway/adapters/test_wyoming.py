import json
from typing import Any

import pytest

from scripted_stage import HEART, ScriptedStage
from voxgate.gateway.adapters.wyoming import Wyoming, framed
from voxgate.gateway.session import Defaults, Limits, Session

AUDIO = {"rate": 24000, "width": 2, "channels": 1}


class Talk:
    """One connection, its events as they are on the wire but for the framing."""

    def __init__(self) -> None:
        self.stage = ScriptedStage()
        dialect = Wyoming(lambda name: None, lambda: self.stage.voices)
        self.session = Session(self.stage, Limits(), Defaults(), 0.0, dialect)

    def hear(self, type: str, **data: Any) -> None:
        self.session.receive(json.dumps({"type": type, "data": data}), 0.0)

    def take(self) -> list[tuple[str, dict[str, Any], bytes]]:
        """Everything that comes of it, as (type, data, payload)."""
        parts = []
        while (items := self.session.poll(0.0)) or self.stage.work(self.session, 0.0):
            parts += items
        return [parsed(item) for item in parts]


def parsed(event: bytes) -> tuple[str, dict[str, Any], bytes]:
    line, _, rest = event.partition(b"\n")
    header = json.loads(line)
    at = header.get("data_length", 0)
    assert len(rest) == at + header.get("payload_length", 0)
    return header["type"], json.loads(rest[:at]) if at else {}, rest[at:]


def kinds(events: list[tuple[str, dict[str, Any], bytes]]) -> list[str]:
    """The types, runs of audio as one."""
    types = [type for type, _, _ in events]
    return [type for i, type in enumerate(types) if type != "audio-chunk" or types[i - 1] != type]


def samples(events: list[tuple[str, dict[str, Any], bytes]]) -> int:
    return len(b"".join(payload for _, _, payload in events)) // 2


def test_one_text_is_one_piece_of_audio():
    talk = Talk()
    talk.hear("synthesize", text="One two three.", voice={"name": "heart"})
    events = talk.take()

    assert kinds(events) == ["audio-start", "audio-chunk", "audio-stop"]
    assert {type: data for type, data, _ in events} == {"audio-start": AUDIO, "audio-chunk": AUDIO, "audio-stop": {}}
    assert samples(events) == 3 * 5760


def test_a_stream_is_spoken_while_it_comes_and_its_second_text_is_left_out():
    talk = Talk()
    talk.hear("synthesize-start", voice={"language": "en"})
    talk.hear("synthesize-chunk", text="One two three. ")
    talk.hear("synthesize-chunk", text="Four")
    assert samples(talk.take()) == 3 * 5760
    talk.hear("synthesize-chunk", text=" five.")
    talk.hear("synthesize", text="One two three. Four five.")
    talk.hear("synthesize-stop")
    events = talk.take()

    assert kinds(events) == ["audio-chunk", "audio-stop", "synthesize-stopped"]
    assert samples(events) == 2 * 5760


def test_a_text_of_nothing_is_a_stream_of_nothing():
    talk = Talk()
    talk.hear("synthesize-start")
    talk.hear("synthesize-chunk", text=" ")
    talk.hear("synthesize-stop")

    assert kinds(talk.take()) == ["audio-start", "audio-stop", "synthesize-stopped"]


def test_who_asks_is_told_the_voices():
    talk = Talk()
    talk.hear("describe")
    ((type, data, _),) = talk.take()
    (program,) = data["tts"]

    assert (type, program["supports_synthesize_streaming"]) == ("info", True)
    assert [(voice["name"], voice["languages"]) for voice in program["voices"]] == [("heart", [HEART.language])]


def test_a_fault_is_told_and_ends_the_stream():
    talk = Talk()
    talk.hear("synthesize-start")
    talk.hear("synthesize-chunk", text="语音" * 30)
    talk.hear("synthesize-stop")
    events = talk.take()

    assert kinds(events)[-2:] == ["error", "synthesize-stopped"]
    assert events[-2][1]["code"] == "unsupported_text"


@pytest.mark.parametrize("type", ["synthesize-stop", "synthesize-chunk", "transcribe"])
def test_what_belongs_to_nothing_is_ignored(type: str):
    talk = Talk()
    talk.hear(type, text="Hello.")

    assert talk.take() == []


def test_a_ping_is_answered():
    talk = Talk()
    talk.hear("ping", text="t1")

    assert talk.take() == [("pong", {"text": "t1"}, b"")]


def test_framing_has_no_lengths_of_nothing():
    assert framed("audio-stop", {}) == b'{"type":"audio-stop","version":"1.10.0"}\n'

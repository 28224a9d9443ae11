"""An utterance as the dialect of one HTTP request; what goes over real sockets is in test_openai.py."""

import msgspec
import pytest

from voxgate.gateway import wire
from voxgate.gateway.adapters.exchange import NAME, Raw, Utterance, refusal
from voxgate.gateway.dialect import Close, Item


def utterance() -> Utterance:
    return Utterance("openai", wire.Start(NAME, codec="wav"), "Hello.", Raw())


def said(dialect: Utterance, *events) -> list[Item]:
    out: list[Item] = []
    for event in events:
        dialect.say(event, out)
    return out


def test_the_request_is_the_whole_of_a_context():
    start, *rest = utterance().hear("")

    assert isinstance(start, wire.Start)
    assert (start.context, start.codec, start.lead_ms) == (NAME, "wav", float("inf"))
    assert rest == [wire.Text(NAME, "Hello."), wire.End(NAME)]


def test_what_is_started_says_what_the_body_is_and_done_ends_it():
    dialect = utterance()
    started = wire.Started(NAME, 1, "heart", "realtime", "wav", 24000, 1, 480, 0)

    assert said(dialect, started, wire.Done(NAME, 480)) == [b"", Close(1000)]
    assert (dialect.media_type, dialect.failure) == ("audio/wav", None)


@pytest.mark.parametrize("about", [msgspec.UNSET, NAME])
def test_a_fault_ends_it_and_the_first_one_is_told(about):
    dialect = utterance()
    fault = wire.Error("text_too_long", "too long", about=about)
    out = said(dialect, fault, wire.Error("idle", "idle", context=NAME), wire.Done(NAME, 0))

    assert out == [Close(1011), Close(1011)]
    assert dialect.failure == fault


def test_a_refusal_says_in_whole_seconds_when_to_come_back():
    answer = refusal(503, "overloaded", "full", 0.2, lambda status, code, message: f"{status} {code}".encode())

    assert (answer.status_code, answer.headers["retry-after"], answer.body) == (503, "1", b"503 overloaded")
    assert "retry-after" not in refusal(400, "bad_message", "?", None, lambda *_: b"").headers

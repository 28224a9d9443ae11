import httpx
import numpy as np
import pytest

from foreign import Foreign, others, sound
from voxgate.admission.controller import Limits as HouseLimits
from voxgate.admission.limit import LimitSettings

VOICE = {"mode": "id", "id": "heart"}


def ask(context: str, transcript: str, more: bool = True, encoding: str = "pcm_s16le", rate: int = 24000, **fields):
    form = {"container": "raw", "encoding": encoding, "sample_rate": rate}
    asked = {"context_id": context, "transcript": transcript, "continue": more, "voice": VOICE}
    return {**asked, "output_format": form, **fields}


def full_house() -> HouseLimits:
    return HouseLimits(utterances=1, limit=LimitSettings(initial=1, floor=1, ceiling=1))


def test_floats_are_the_same_speech():
    wire = Foreign("/tts/websocket")
    wire.hear(ask("a", "One two three.", more=False), ask("b", "One two three.", more=False, encoding="pcm_f32le"))
    wire.finish()
    said = wire.take()
    plain = np.frombuffer(sound([m for m in said if m["context_id"] == "a"]), "<i2")
    floats = np.frombuffer(sound([m for m in said if m["context_id"] == "b"]), "<f4")

    assert np.array_equal(plain, (floats * 32768).astype(np.int16))


def test_contexts_on_one_socket_are_independent_and_every_message_is_tagged():
    wire = Foreign("/tts/websocket")
    wire.hear(ask("a", "One two three. "), ask("b", "Four five.", more=False))
    wire.finish()
    said = wire.take()

    assert {message["context_id"] for message in said} == {"a", "b"}
    assert [m["context_id"] for m in others(said)] == ["b"]
    assert len(sound([m for m in said if m["context_id"] == "a"])) == 3 * 11520


@pytest.mark.parametrize(
    "fields",
    [{"encoding": "pcm_mulaw", "rate": 24000}, {"rate": 11025}, {"encoding": "aac"}],
)
def test_a_format_there_is_not_is_an_error_of_its_context_that_is_not_done(fields):
    wire = Foreign("/tts/websocket")
    wire.hear(ask("a", "One two.", more=False, **fields))
    (error,) = wire.take() if wire.poll() else []

    assert (error["type"], error["context_id"], error["done"], error["status_code"]) == ("error", "a", False, 400)


def test_a_turn_that_is_refused_for_load_is_told_and_has_a_little_silence():
    wire = Foreign("/tts/websocket", house=full_house())
    wire.hear(ask("a", "One two three four five six seven eight nine ten. "))
    wire.work()
    wire.take()
    wire.hear(ask("b", "Hello."))
    wire.listen(1.2)
    wire.hear(ask("b", "Still here."), ask("b", "", more=False))
    wire.listen(0.1)
    said = [message for message in wire.take() if message["context_id"] == "b"]

    assert [message["type"] for message in said] == ["error", "chunk", "done"]
    assert (said[0]["status_code"], said[0]["done"]) == (503, False)
    assert sound(said) == bytes(1920)


def test_an_id_that_has_ended_can_be_used_again():
    wire = Foreign("/tts/websocket")
    for _ in range(2):
        wire.hear(ask("a", "One two.", more=False))
        wire.finish()
        assert len(sound(said := wire.take())) == 2 * 11520
        assert others(said)[-1]["type"] == "done"


def test_whitespace_and_nothing_make_no_sound_and_no_error():
    wire = Foreign("/tts/websocket")
    wire.hear(ask("a", " ", max_buffer_delay_ms=0), ask("a", "", max_buffer_delay_ms=0), ask("a", " ", more=False))
    wire.finish()

    assert [message["type"] for message in wire.take()] == ["done"]


def test_what_is_no_message_of_this_wire_is_answered_nothing_that_would_break_its_clients():
    wire = Foreign("/tts/websocket")
    wire.session.receive("{", 0.0)
    wire.session.receive('{"context_id": 7}', 0.0)
    wire.session.receive_binary()
    wire.hear({"context_id": "x", "cancel": True})
    wire.finish()

    assert wire.take() == []


def test_the_http_twin_answers_raw_audio(server: str):
    asked = {"transcript": "Hello there.", "voice": VOICE, "model_id": "sonic-3"}
    form = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 16000}
    answer = httpx.post(f"{server}/tts/bytes", json={**asked, "output_format": form}, timeout=30)
    floats = httpx.post(
        f"{server}/tts/bytes", json={**asked, "output_format": {**form, "encoding": "pcm_f32le"}}, timeout=30
    )
    refused = httpx.post(f"{server}/tts/bytes", json={**asked, "output_format": {**form, "container": "ape"}})

    assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/pcm")
    assert len(floats.content) == 2 * len(answer.content) > 20_000
    assert (refused.status_code, refused.json()["error_code"]) == (400, "bad_message")

import httpx
import pytest

from foreign import Foreign, others, sound

SPEAK = "/v1/speak?model=aura&encoding=linear16&sample_rate=24000"
LONG = "One two three four five six seven eight nine ten. "


def speak(text: str) -> dict[str, str]:
    return {"type": "Speak", "text": text}


FLUSH, CLEAR = {"type": "Flush"}, {"type": "Clear"}


def open_wire() -> Foreign:
    wire = Foreign(SPEAK)
    wire.take()
    return wire


def test_after_a_clear_the_next_turn_is_whole_and_alone():
    wire = open_wire()
    wire.hear(speak(LONG), FLUSH, speak("Waiting. "), FLUSH)
    wire.listen(0.3)
    wire.take()
    wire.hear(CLEAR, speak("One two."), FLUSH)
    wire.finish()
    said = wire.take()

    assert [message["type"] for message in others(said)] == ["Cleared", "Flushed"]
    assert said[0] == {"type": "Cleared", "sequence_id": 0}
    assert len(sound(said)) == 2 * 11520


def test_a_turn_waits_until_the_one_before_it_has_been_sent():
    wire = open_wire()
    wire.hear(speak(LONG), FLUSH, speak("One two."), FLUSH)
    wire.listen(0.5)
    assert others(wire.take()) == []
    wire.finish()

    assert [message["sequence_id"] for message in others(wire.take())] == [0, 1]


def test_a_turn_that_is_refused_for_load_is_told_and_its_flush_is_answered():
    wire = open_wire()
    wire.stage.forecast_s = 30.0  # no engine will be free before
    wire.hear(speak("One two."), speak("Three. "))
    wire.listen(1.2)
    wire.hear(speak("Four. "), FLUSH)
    wire.finish()
    error, silence, flushed = wire.take()

    assert (error["type"], error["code"]) == ("Error", "OVERLOADED")
    assert silence == bytes(1920)
    assert flushed["type"] == "Flushed"
    wire.stage.forecast_s = 0.0
    wire.hear(speak("One two."), FLUSH)
    wire.finish()
    assert len(sound(wire.take())) == 2 * 11520


def test_what_waits_is_bounded():
    wire = open_wire()
    wire.hear(speak(LONG), FLUSH)
    for _ in range(30):
        wire.hear(speak("word " * 200))
    wire.work()

    assert {message["type"] for message in others(wire.take())} == {"Warning"}


@pytest.mark.parametrize("message", [{"type": "KeepAlive"}, {"type": "Speak", "text": ""}])
def test_what_asks_for_nothing_is_answered_nothing(message):
    wire = open_wire()
    wire.hear(message)
    wire.finish()

    assert wire.take() == []


def test_a_message_there_is_not_is_a_warning_and_one_that_cannot_be_read_an_error():
    wire = open_wire()
    wire.hear({"type": "Sing"})
    wire.session.receive("{", 0.0)
    wire.poll()

    assert [message["type"] for message in wire.take()] == ["Warning", "Error"]


def test_over_http_the_format_is_the_one_asked_for(server: str):
    def types(query: str) -> tuple[int, str]:
        answer = httpx.post(f"{server}/v1/speak?{query}", json={"text": "Hello there."}, timeout=30)
        return answer.status_code, answer.headers["content-type"]

    assert types("model=aura") == (200, "audio/mpeg")
    assert types("encoding=linear16&container=none&sample_rate=16000") == (200, "audio/pcm")
    assert types("encoding=linear16&container=wav") == (200, "audio/wav")
    assert types("encoding=aac")[0] == 400

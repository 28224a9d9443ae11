import pytest

from foreign import Foreign, others, sound

LONG = "One two three four five six seven eight nine ten. "


def config(**fields) -> dict:
    return {"type": "config", "data": {"sample_rate": 24000, "format": "pcm", "binary": True, **fields}}


def text(value: str) -> dict:
    return {"type": "text", "data": {"text": value}}


def events(said: list) -> list[str]:
    return [message["data"]["event_type"] if message["type"] == "event" else message["type"] for message in said]


def test_sentences_without_spaces_between_them_are_not_run_together():
    wire = Foreign("/tts/ws")
    wire.hear(config(), text("This is one."), text("This is two."), {"type": "flush"})
    wire.finish()

    assert len(sound(wire.take())) == 6 * 11520


def test_a_config_stops_what_is_still_spoken_before_it_is_accepted():
    wire = Foreign("/tts/ws")
    wire.hear(config(), text(LONG), {"type": "flush"})
    wire.listen(0.3)
    wire.take()
    wire.hear(config(), text("One two."), {"type": "flush"})
    wire.finish()
    said = wire.take()

    assert said[0]["data"]["event_type"] == "config_accepted"
    assert (events(others(said)), len(sound(said))) == (["config_accepted", "final"], 2 * 11520)


def test_audio_comes_in_json_where_that_is_asked_for():
    wire = Foreign("/tts/ws")
    wire.hear(config(binary=False, sample_rate=16000), text("One two."), {"type": "flush"})
    wire.finish()
    said = wire.take()

    assert {m["data"]["sample_rate"] for m in said if m["type"] == "audio"} == {16000}
    assert len(sound(said)) == 2 * 11520 * 2 // 3


def test_an_empty_turn_is_final():
    wire = Foreign("/tts/ws")
    wire.hear(config(), {"type": "flush"}, {"type": "flush"}, {"type": "cancel"}, {"type": "flush"})
    wire.finish()

    assert events(wire.take()) == ["config_accepted", "final"]


@pytest.mark.parametrize("fields", [{"format": "tape"}, {"sample_rate": 11025}, {"format": "mulaw"}])
def test_a_config_that_cannot_be_met_is_an_error(fields):
    wire = Foreign("/tts/ws")
    wire.hear(config(**fields))
    wire.poll()
    (error,) = wire.take()

    assert (error["type"], error["data"]["code"]) == ("error", "bad_message")

import itertools

import pytest

from foreign import Foreign, others, sound
from voxgate.admission.controller import Limits as HouseLimits
from voxgate.admission.limit import LimitSettings
from voxgate.gateway.dialect import Close
from voxgate.gateway.session import Limits

MULTI = "/v1/text-to-speech/v/multi-stream-input?output_format=pcm_24000&auto_mode=true"
SINGLE = "/v1/text-to-speech/v/stream-input?output_format=pcm_24000"
LONG = "One two three four five six seven eight nine ten. "


def turn(id: str, *texts: str) -> list[dict]:
    messages = [{"text": " ", "context_id": id}, *({"text": text, "context_id": id} for text in texts)]
    return [*messages, {"context_id": id, "flush": True}, {"context_id": id, "close_context": True}]


def words(said: list[dict], *, absolute: bool) -> list[tuple[str, int]]:
    """Words and when they begin, as the clients of each clock work it out."""
    clock, word, begin = 0, "", 0
    found = []
    for message in said:
        if not (aligned := message.get("alignment")):
            continue
        assert aligned == message["normalizedAlignment"]
        assert len({len(values) for values in aligned.values()}) == 1
        for character, start in zip(aligned["chars"], aligned["charStartTimesMs"], strict=True):
            if character.isspace():
                found += [(word, begin)] if word else []
                word = ""
            else:
                begin = begin if word else clock + start
                word += character
        if not absolute:
            clock += aligned["charStartTimesMs"][-1] + aligned["charDurationsMs"][-1]
    return [*found, (word, begin)] if word else found


@pytest.mark.parametrize("absolute", [False, True])
def test_words_come_whole_and_on_the_clock_of_the_client(absolute: bool):
    wire = Foreign(MULTI + ("&sync_alignment=true" if absolute else ""))
    wire.hear(*turn("a", "One two three.", "Four five six."))
    wire.finish()
    said = wire.take()
    told = words(said, absolute=absolute)

    assert [word for word, _ in told] == ["One", "two", "three.", "Four", "five", "six."]
    assert all(later - sooner > 100 for (_, sooner), (_, later) in itertools.pairwise(told))
    assert told[3][1] == pytest.approx(3 * 240, abs=20)


def test_a_flush_a_close_or_a_keepalive_for_what_never_began_opens_nothing():
    wire = Foreign(MULTI)
    wire.hear({"text": ""}, {"text": "", "context_id": "a"}, {"context_id": "a", "flush": True})
    wire.hear({"context_id": "a", "close_context": True})
    wire.finish()

    assert wire.take() == []
    assert wire.session.live == 0


def test_fifty_fast_interruptions_leave_the_socket_open_and_no_context_behind():
    wire = Foreign(MULTI, limits=Limits(contexts=5))
    for number in range(50):
        id = f"c{number}"
        wire.hear({"text": " ", "context_id": id}, {"text": LONG, "context_id": id})
        wire.listen(0.05)
        wire.hear({"context_id": id, "close_context": True})
    wire.finish()
    said = wire.take()

    assert [message["contextId"] for message in others(said)] == [f"c{number}" for number in range(50)]
    assert all(message["isFinal"] is True for message in others(said))
    assert wire.session.live == 0
    wire.hear(*turn("after", "One two."))
    wire.finish()
    assert len(sound(wire.take())) == 2 * 11520


def test_nothing_of_a_context_follows_its_end():
    wire = Foreign(MULTI)
    wire.hear(*turn("a", LONG * 3))
    wire.listen(0.3)
    wire.take()
    wire.hear({"context_id": "a", "close_context": True})
    wire.listen(3.0)

    assert wire.take() == [{"contextId": "a", "isFinal": True}]


def test_one_context_too_many_is_refused_alone():
    wire = Foreign(MULTI, limits=Limits(contexts=1))
    wire.hear({"text": " ", "context_id": "a"}, {"text": LONG, "context_id": "a"}, {"text": "Hi.", "context_id": "b"})
    wire.finish()
    said = wire.take()

    assert [m.get("error") for m in others(said) if m["contextId"] == "b"] == ["too_many_contexts", None]
    assert len(sound([m for m in said if m["contextId"] == "a"])) == 10 * 11520


def test_a_turn_that_is_refused_for_load_is_told_has_a_little_silence_and_is_final():
    house = HouseLimits(utterances=1, limit=LimitSettings(initial=1, floor=1, ceiling=1))
    wire = Foreign(MULTI, house=house)
    wire.hear({"text": " ", "context_id": "a"}, {"text": LONG, "context_id": "a"})
    wire.work()
    wire.take()
    wire.hear({"text": " ", "context_id": "b"}, {"text": "Hello.", "context_id": "b"})
    wire.listen(1.2)
    wire.hear({"text": "More.", "context_id": "b"}, {"context_id": "b", "flush": True})
    wire.hear({"context_id": "b", "close_context": True})
    wire.listen(0.1)
    error, silence, final = [message for message in wire.take() if message["contextId"] == "b"]

    assert error["error"] == "overloaded"
    assert sound([silence]) == bytes(1920)
    assert final == {"contextId": "b", "isFinal": True}


def test_an_id_is_used_again_as_soon_as_it_has_ended():
    wire = Foreign(MULTI)
    for _ in range(2):
        wire.hear(*turn("a", "One two."))
        wire.finish()
        assert len(sound(wire.take())) == 2 * 11520


def test_close_socket_ends_everything():
    wire = Foreign(MULTI)
    wire.hear(*turn("a", LONG))
    wire.work()
    wire.take()
    wire.hear({"close_socket": True})
    wire.poll()

    assert wire.take() == [{"contextId": "a", "isFinal": True}, Close(1000)]


def test_a_message_that_cannot_be_read_is_told_and_changes_nothing():
    wire = Foreign(MULTI)
    wire.session.receive('{"text": 7, "context_id": "a"}', 0.0)
    wire.poll()
    (error,) = wire.take()

    assert error["error"] == "bad_message"
    assert "contextId" not in error


def test_a_socket_of_one_text_closes_over_a_fault_and_not_normally():
    wire = Foreign(SINGLE, limits=Limits(contexts=0))
    wire.hear({"text": " "}, {"text": "Hello."}, {"text": ""})
    wire.finish()
    said = wire.take()

    assert said[0]["message"]
    assert said[-1] == Close(1008)


def test_a_socket_of_one_text_speaks_before_the_text_has_ended():
    wire = Foreign(SINGLE)
    wire.hear({"text": " "}, {"text": "One two three. "}, {"text": "Four"})
    wire.work()

    assert len(sound(wire.take())) == 3 * 11520


def test_speed_is_taken_from_the_voice_settings():
    wire = Foreign(MULTI)
    wire.hear({"text": "Hello.", "context_id": "a", "voice_settings": {"speed": 1.2, "stability": None}})

    assert [style.speed for style in wire.stage.open_utterances.values()] == [1.2]

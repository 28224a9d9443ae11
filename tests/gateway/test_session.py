import json
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scripted_stage import HEART, ScriptedStage, spoken
from voxgate.admission import controller as admission
from voxgate.codecs.packetizer import WIRE_CODECS, Format, StreamDecoder
from voxgate.gateway import wire
from voxgate.gateway.life import TABLE, Event, State
from voxgate.gateway.session import FLUSHES, MEMORY_S, Defaults, Limits, Session
from voxgate.synth.engine import Voice


class Conversation:
    """A session, its scripted stage, and a clock that the test moves."""

    def __init__(
        self, limits: Limits | None = None, house: admission.Limits | None = None, lead_ms: int = 2000
    ) -> None:
        self.now = 1000.0
        self.stage = ScriptedStage(house)
        self.session = Session(self.stage, limits or Limits(), Defaults(codec="pcm_s16le"), self.now)
        self.lead_ms = lead_ms
        self.heard: list[dict[str, Any] | bytes] = []
        self.poll()
        self.heard.clear()

    def say(self, type: str, context: str | None = "c1", **fields: Any) -> list[dict[str, Any]]:
        """Sends one message; the JSON messages it is answered with at once."""
        message = {"type": type, **({"context": context} if context else {}), **fields}
        self.session.receive(json.dumps(message), self.now)
        return [message for message in self.poll() if isinstance(message, dict)]

    def start(self, context: str = "c1", **fields: Any) -> list[dict[str, Any]]:
        return self.say("start", context, lead_ms=self.lead_ms, **fields)

    def poll(self) -> list[dict[str, Any] | bytes]:
        messages: list[Any] = [json.loads(m) if isinstance(m, str) else m for m in self.session.poll(self.now)]
        self.heard += messages
        return messages

    def work(self) -> list[dict[str, Any] | bytes]:
        """Speaks, encodes and sends all that may go out now."""
        heard: list[dict[str, Any] | bytes] = []
        while (more := self.poll()) or self.stage.work(self.session, self.now):
            heard += more
        return heard

    def pass_time(self, seconds: float) -> list[dict[str, Any] | bytes]:
        """Lets time pass, working and polling whenever the session asks to be woken."""
        end, heard = self.now + seconds, []
        while True:
            heard += self.work()
            wake = max(self.session.wake_at(self.now), self.now + 0.001)
            if wake > end:
                break
            self.now = wake
        self.now = end
        return heard + self.work()

    def types(self) -> list[str]:
        return [message["type"] if isinstance(message, dict) else "audio" for message in self.heard]


def codes(messages: list[Any]) -> list[str]:
    return [message["code"] for message in messages if isinstance(message, dict) and "code" in message]


def ends(messages: list[Any], context: str = "c1") -> list[str]:
    """The final messages of a context."""
    return [
        message["type"]
        for message in messages
        if isinstance(message, dict)
        and message["type"] in ("done", "cancelled", "error")
        and message["context"] == context
    ]


def audio_of(messages: list[Any], stream: int = 1) -> list[tuple[int, int, int, bytes]]:
    """(flags, sequence, start, payload) of the audio messages of one stream."""
    parsed = [(wire.HEADER.unpack(message[:16]), message[16:]) for message in messages if isinstance(message, bytes)]
    return [(head[1], head[3], head[4], payload) for head, payload in parsed if head[2] == stream]


# --- a context from start to done ----------------------------------------------------------------------------------


def test_ready_is_the_first_message():
    session = Session(ScriptedStage(), Limits(contexts=7), Defaults(), 0.0)

    (ready,) = (json.loads(str(message)) for message in session.poll(0.0))

    assert ready["type"] == "ready"
    assert ready["protocol"] == "voxgate.v1"
    assert ready["voices"] == [
        {"id": "heart", "language": "en-US", "engine": "scripted", "tier": "realtime", "sample_rate": 24000}
    ]
    assert ready["limits"]["contexts"] == 7


def test_started_comes_with_the_first_permit_not_with_start():
    talk = Conversation()

    assert talk.start() == []
    assert talk.say("text", text="One two three") == []

    assert talk.say("text", text=". Four") == [
        {
            "type": "started",
            "context": "c1",
            "stream": 1,
            "voice": "heart",
            "tier": "realtime",
            "codec": "pcm_s16le",
            "sample_rate": 24000,
            "channels": 1,
            "frame_samples": 480,
            "pre_skip": 0,
        }
    ]


def test_a_whole_context_is_started_spoken_and_done():
    talk = Conversation(lead_ms=30_000)
    talk.start()
    talk.say("text", text="One two three.")
    talk.say("end")
    talk.work()
    talk.work()

    assert [kind for kind in talk.types() if kind != "audio"] == ["started", "done"]
    assert talk.heard[-1] == {"type": "done", "context": "c1", "samples": 17_280}
    audio = audio_of(talk.heard)
    assert b"".join(payload for *_, payload in audio) == spoken_bytes("One two three.")
    assert [sequence for _, sequence, _, _ in audio] == list(range(len(audio)))
    assert [flags for flags, *_ in audio] == [1] + [0] * (len(audio) - 1)


def spoken_bytes(text: str) -> bytes:
    from voxgate.synth.segment import Boundary, Segment

    return spoken(Segment(0, text, 0, len(text), Boundary.START, Boundary.END)).pcm.tobytes()


def test_text_alone_opens_a_context_with_the_defaults():
    talk = Conversation()

    talk.say("text", text="Hello.")
    (started,) = talk.say("end")

    assert (started["type"], started["codec"]) == ("started", "pcm_s16le")


@pytest.mark.parametrize("text", ["", " ", "\n", "...", "—", "*", "😊", '"', "()"])
def test_nothing_to_speak_is_started_and_done_and_asks_nobody(text: str):
    talk = Conversation()
    talk.start()
    talk.say("text", text=text)
    talk.say("end")
    talk.work()

    assert talk.types() == ["started", "done"]
    assert talk.heard[-1] == {"type": "done", "context": "c1", "samples": 0}
    assert talk.stage.controller.utterances == 0


def test_opus_decodes_to_the_samples_done_states():
    talk = Conversation(lead_ms=30_000)
    talk.start(codec="opus")
    talk.say("text", text="One two three four five. Six seven.")
    talk.say("end")
    talk.pass_time(1.0)

    started = next(m for m in talk.heard if isinstance(m, dict) and m["type"] == "started")
    done = talk.heard[-1]
    assert isinstance(done, dict)
    form = Format("opus", started["sample_rate"], started["frame_samples"], started["pre_skip"])
    decoder = StreamDecoder(form)
    decoded = [decoder.push(payload) for *_, payload in audio_of(talk.heard)]
    decoded.append(decoder.finish(done["samples"]))
    assert sum(map(len, decoded)) == done["samples"] == 7 * 5_760


@pytest.mark.parametrize("sample_rate", [8000, 16000, 24000, 48000])
@pytest.mark.parametrize("codec", WIRE_CODECS)
def test_a_tone_keeps_its_pitch_at_every_rate(codec: str, sample_rate: int):
    talk = Conversation(lead_ms=30_000)
    talk.start(codec=codec, sample_rate=sample_rate)
    talk.say("text", text="One two three four five six.")  # a tone of 220 Hz
    talk.say("end")
    talk.pass_time(3.0)

    started = next(m for m in talk.heard if isinstance(m, dict) and m["type"] == "started")
    decoder = StreamDecoder(Format(codec, started["sample_rate"], started["frame_samples"], started["pre_skip"]))
    done = talk.heard[-1]
    assert isinstance(done, dict)
    parts = [decoder.push(payload) for *_, payload in audio_of(talk.heard)]
    pcm = np.concatenate([*parts, decoder.finish(done["samples"])])
    middle = pcm[len(pcm) // 4 : -len(pcm) // 4].astype(float)
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 16 * len(middle)))
    assert np.argmax(spectrum) * started["sample_rate"] / (16 * len(middle)) == pytest.approx(220, abs=1)


def test_sound_goes_out_while_the_rest_has_not_been_spoken():
    talk = Conversation(lead_ms=30_000)
    talk.start()
    talk.say("text", text="One two. Three four five. Six seven eight nine. ")
    assert talk.stage.speak_one(talk.session, talk.now)
    while talk.stage.encode_one(talk.session, talk.now):
        talk.poll()

    assert audio_of(talk.heard)
    assert len(talk.stage.segments) == 2


def test_starts_of_audio_messages_are_gapless():
    talk = Conversation()
    talk.start()
    talk.say("text", text="word " * 60)
    talk.say("end")
    talk.pass_time(30)

    position = 0
    for _, _, start, payload in audio_of(talk.heard):
        assert start == position
        position += len(payload) // 2
    assert talk.heard[-1] == {"type": "done", "context": "c1", "samples": position}


# --- flush, words, warnings ----------------------------------------------------------------------------------------


def test_flushed_follows_the_audio_it_covers_one_for_each_flush():
    talk = Conversation(lead_ms=30_000)
    talk.start()
    talk.say("text", text="One two")
    talk.say("flush")
    talk.say("flush")
    assert talk.types() == ["started"]

    talk.work()

    assert [kind for kind in talk.types() if kind != "audio"] == ["started", "flushed", "flushed"]
    assert talk.types()[-3:] == ["audio", "flushed", "flushed"]
    assert sum(len(payload) for *_, payload in audio_of(talk.heard)) == 2 * 11_520


def test_flushes_that_wait_are_bounded_and_answered_ones_make_room():
    talk = Conversation(lead_ms=30_000)
    talk.start()
    talk.say("text", text="One two three. ")

    refused = [codes(talk.say("flush")) for _ in range(FLUSHES + 1)]
    talk.work()

    assert refused == [[]] * FLUSHES + [["rate_limited"]]
    assert talk.types().count("flushed") == FLUSHES
    assert talk.say("flush") == [{"type": "flushed", "context": "c1"}]


def test_a_flush_with_nothing_to_speak_is_answered_at_once():
    talk = Conversation()
    talk.start()

    assert talk.say("flush") == [{"type": "flushed", "context": "c1"}]


def test_word_times_come_before_their_audio_and_point_into_the_text():
    talk = Conversation(lead_ms=30_000)
    talk.start(timestamps=True)
    talk.say("text", text="Hello, how are you?")
    talk.say("end")
    talk.work()

    words = next(m for m in talk.heard if isinstance(m, dict) and m["type"] == "words")
    assert words["estimated"] is True
    assert [(word, offset) for word, _, _, offset in words["words"]] == [
        ("Hello,", 0),
        ("how", 7),
        ("are", 11),
        ("you?", 15),
    ]
    times = [time for _, start, end, _ in words["words"] for time in (start, end)]
    assert times == sorted(times)
    assert talk.types().index("words") < talk.types().index("audio")


def test_a_client_that_sends_all_its_text_again_and_again_is_warned_once_and_spoken():
    talk = Conversation()
    talk.start()
    told = [talk.say("text", text="The boats went out and back. The sea was calm."[:end]) for end in (15, 29, 46)]
    talk.say("end")
    talk.pass_time(30)

    warnings = [message for messages in told for message in messages if message["type"] == "warning"]
    assert [(message["code"], message["span"]) for message in warnings] == [("repeated_text", [15, 30])]
    assert ends(talk.heard) == ["done"]


@pytest.mark.parametrize(
    "deltas", [["ha ha ", "ha ha ha ha. "], ["The same words. ", "The same words"], ["Well, ", "now"]]
)
def test_what_repeats_itself_in_speech_is_no_reason_to_warn(deltas: tuple[str, ...]):
    talk = Conversation()
    talk.start()
    told = [message["type"] for delta in deltas for message in talk.say("text", text=delta)]

    assert "warning" not in told


def test_words_the_voice_cannot_speak_are_left_out_with_a_warning():
    talk = Conversation()
    talk.start()
    talk.say("text", text="Hello мир, good friend.")
    told = talk.say("end")

    assert {"type": "warning", "context": "c1", "code": "unsupported_text", "span": [6, 9]}.items() <= told[0].items()
    assert [message["type"] for message in told] == ["warning", "started"]


def test_a_context_of_which_nothing_could_be_spoken_ends_in_unsupported_text():
    talk = Conversation()
    talk.start()
    talk.say("text", text="Привет мир")
    told = talk.say("end")

    assert ends(told) == ["error"]
    assert codes(told) == ["unsupported_text", "unsupported_text"]
    assert talk.session.live == 0


def test_text_without_a_terminator_is_spoken_after_a_pause_up_to_its_last_word():
    talk = Conversation()
    talk.start()
    talk.say("text", text="well then hel")
    assert not talk.stage.segments

    talk.now += 0.31
    talk.poll()

    assert [segment.text.strip() for _, segment in talk.stage.segments] == ["well then"]


def test_a_pause_in_the_middle_of_a_word_speaks_nothing():
    talk = Conversation()
    talk.start()
    talk.say("text", text="hel")
    talk.pass_time(0.6)
    talk.say("text", text="lo there")
    talk.say("end")

    assert [segment.text for _, segment in talk.stage.segments] == ["hello there"]


def test_no_idle_flush_while_the_listener_has_enough_in_hand():
    talk = Conversation()
    talk.start()
    talk.say("text", text="One two three four five six seven eight. And nine")
    talk.work()
    talk.now += 1.0
    talk.poll()
    assert not talk.stage.segments

    talk.now += 0.8
    talk.poll()

    assert [segment.text.strip() for _, segment in talk.stage.segments] == ["And"]


# --- cancel --------------------------------------------------------------------------------------------------------


def test_cancel_says_what_was_sent_heard_and_read():
    talk = Conversation()
    talk.start()
    talk.say("text", text="One two three four five six seven eight nine ten.")
    talk.say("end")
    talk.work()
    talk.now += 0.9

    (cancelled,) = talk.say("cancel")

    assert cancelled["type"] == "cancelled"
    assert cancelled["sent"] == 48_000
    assert cancelled["heard"] == pytest.approx(21_600, abs=1)
    assert "One two three four five six seven eight".startswith(cancelled["text"])
    assert cancelled["text"].startswith("One two three")


def test_what_the_listener_reports_beats_the_play_out_clock():
    talk = Conversation()
    talk.start()
    talk.say("text", text="One two three four five six seven eight nine ten.")
    talk.say("end")
    talk.work()
    talk.now += 0.9

    (cancelled,) = talk.say("cancel", played=9_600)

    assert (cancelled["heard"], cancelled["text"]) == (9_600, "One two")


def test_heard_is_never_more_than_sent():
    talk = Conversation()
    talk.start()
    talk.say("text", text="One two three. ")
    talk.say("flush")
    talk.work()

    (cancelled,) = talk.say("cancel", played=10**9)

    assert cancelled["heard"] == cancelled["sent"] == 17_280
    assert cancelled["text"] == "One two three."


def test_nothing_of_a_context_follows_its_cancel():
    talk = Conversation()
    talk.start()
    talk.say("text", text="One two three four. Five six seven.")
    talk.stage.speak_one(talk.session, talk.now)
    talk.say("cancel")
    talk.heard.clear()

    talk.say("text", text="late words")
    talk.say("end")
    talk.say("flush")
    talk.pass_time(5)

    assert talk.heard == []
    assert talk.session.late_messages == 3
    assert not talk.stage.open_utterances
    assert talk.stage.controller.utterances == 0


def test_late_audio_of_a_cancelled_utterance_never_reaches_its_successor():
    talk = Conversation()
    talk.start()
    talk.say("text", text="One two three four. ")
    talk.say("flush")
    utterance, segment = talk.stage.segments[0]
    talk.say("cancel")
    talk.start()
    talk.say("text", text="Other.")
    talk.say("flush")

    talk.session.audio(utterance, segment, spoken(segment), talk.now)
    talk.work()

    assert sum(len(payload) // 2 for *_, payload in audio_of(talk.heard, stream=2)) == 5_760
    assert audio_of(talk.heard, stream=1) == []


def test_cancel_after_the_end_is_answered_once_more_within_a_minute():
    talk = Conversation(lead_ms=30_000)
    talk.start()
    talk.say("text", text="One two three four.")
    talk.say("end")
    talk.work()
    assert talk.poll() == []
    talk.now += 0.5

    (cancelled,) = talk.say("cancel")
    talk.now += MEMORY_S + 1
    nothing = talk.say("cancel")

    assert (cancelled["sent"], cancelled["heard"]) == (23_040, 12_000)
    assert nothing == []


def test_cancel_of_an_unknown_context_is_ignored():
    assert Conversation().say("cancel") == []


def test_an_ended_id_is_reused_only_by_an_explicit_start():
    talk = Conversation()
    talk.start()
    talk.say("cancel")
    talk.say("text", text="late")

    talk.start()
    talk.say("text", text="Again.")
    (started,) = talk.say("flush")[:1]

    assert (started["type"], started["stream"]) == ("started", 2)


# --- errors --------------------------------------------------------------------------------------------------------


def test_a_duplicate_start_is_an_error_that_changes_nothing():
    talk = Conversation()
    talk.start()
    talk.say("text", text="One two")

    (error,) = talk.start(speed=2.0)

    assert error["code"] == "context_exists"
    assert (error["context"], error["about"]) == (None, "c1")
    assert talk.session.live == 1


@pytest.mark.parametrize(
    ("fields", "code"), [({"voice": "nobody"}, "unknown_voice"), ({"codec": "mp4"}, "unsupported_codec")]
)
def test_a_start_that_cannot_be_met_ends_the_context_and_keeps_its_id_closed(fields: dict[str, str], code: str):
    talk = Conversation()

    told = talk.start(**fields)
    late = talk.say("text", text="Hello there.")

    assert (codes(told), ends(told), late) == ([code], ["error"], [])
    assert talk.session.live == 0


@pytest.mark.parametrize("name", ["new", "c1"])
def test_a_start_that_cannot_be_read_ends_its_context_too(name: str):
    talk = Conversation()
    talk.start("c1")
    talk.say("cancel", "c1")

    told = talk.say("start", name, sample_rate="high")
    late = talk.say("text", name, text="Hello there. ")

    assert (codes(told), ends(told, name), late) == (["bad_message"], ["error"], [])


def test_a_start_that_cannot_be_read_leaves_a_live_context_alone():
    talk = Conversation()
    talk.start()

    (error,) = talk.start(speed="fast")

    assert (error["code"], error["context"], error["about"]) == ("bad_message", None, "c1")
    assert talk.session.live == 1


def test_cancel_of_a_context_whose_start_was_refused_is_answered():
    talk = Conversation()
    talk.start(voice="nobody")

    assert talk.say("cancel") == [{"type": "cancelled", "context": "c1", "sent": 0, "heard": 0, "text": ""}]


def test_words_are_told_as_the_client_wrote_them():
    talk = Conversation(lead_ms=30_000)
    talk.start(timestamps=True)
    talk.say("text", text="Ｈello **bold** one")
    talk.say("end")
    talk.work()

    words = next(m for m in talk.heard if isinstance(m, dict) and m["type"] == "words")
    assert [word for word, *_ in words["words"]] == ["Ｈello", "bold", "one"]


def test_what_ended_long_ago_is_let_go():
    talk = Conversation()
    for number in range(20):
        talk.say("text", f"c{number}", text="One two. ")
        talk.say("cancel", f"c{number}")
    talk.now += MEMORY_S + 1
    talk.say("text", "last", text="One two. ")
    talk.say("cancel", "last")

    assert len(talk.session._records) == 1


def test_a_context_is_speaking_until_it_has_been_quiet():
    talk = Conversation(lead_ms=30_000)
    talk.say("text", text="One two three. ")
    assert talk.session.speaking(talk.now)
    talk.work()
    assert talk.session.speaking(talk.now + 0.5)

    assert not talk.session.speaking(talk.now + 2.0)


def test_one_context_too_many_is_refused_and_the_others_live():
    talk = Conversation(Limits(contexts=2))
    talk.start("a")
    talk.start("b")

    told = talk.start("c")

    assert (codes(told), ends(told, "c")) == (["too_many_contexts"], ["error"])
    assert talk.session.live == 2


def test_what_is_for_http_bodies_only_is_no_codec_of_the_wire():
    talk = Conversation()
    told = talk.start("a", codec="flac")
    assert (codes(told), ends(told, "a")) == (["unsupported_codec"], ["error"])
    assert "ogg_opus" in told[0]["message"]


def test_while_there_is_no_time_contexts_that_begin_are_encoded_for_less():
    talk = Conversation()
    talk.start("careful", codec="opus")
    talk.stage.hurried = True
    talk.start("cheap", codec="opus")
    forms = {name: context.settings.form for name, context in talk.session._live.items()}
    assert (forms["careful"].economy, forms["cheap"].economy) == (False, True)


@pytest.mark.parametrize(
    ("asked", "spoken_by"),
    [({}, "grand"), ({"tier": "realtime"}, "heart"), ({"tier": "quality"}, "grand"), ({"voice": "heart"}, "heart")],
)
def test_the_first_voice_speaks_for_who_asks_for_nobody_or_the_first_of_its_tier(asked: dict[str, str], spoken_by: str):
    talk = Conversation()
    grand = Voice("grand", "en-US", "other", "quality", 24000)
    talk.stage.voices = (grand, HEART)
    talk.start(**asked)
    talk.say("end")

    assert talk.heard[0]["voice"] == spoken_by  # pyright: ignore[reportArgumentType,reportCallIssue]


def test_a_full_house_ends_the_context_with_a_hint_when_to_return():
    talk = Conversation(house=admission.Limits(utterances=1))
    talk.say("text", "a", text="First one. ")
    talk.say("flush", "a")

    told = talk.say("text", "b", text="Second one. ")

    assert (codes(told), ends(told, "b")) == (["overloaded"], ["error"])
    assert told[0]["retry_after"] > 0
    assert talk.session.live == 1


def test_a_flush_whose_text_was_refused_is_not_answered():
    talk = Conversation(house=admission.Limits(utterances=1))
    talk.say("text", "a", text="First one. ")
    talk.say("text", "b", text="hello")

    told = talk.say("flush", "b")

    assert [message["type"] for message in told] == ["error"]


def test_a_broken_engine_ends_its_utterances_and_no_others():
    talk = Conversation()
    for name in "ab":
        talk.say("text", name, text="One two. ")
        talk.say("flush", name)
    utterance, _ = talk.stage.segments[0]

    talk.session.failed(utterance, "the worker died", talk.now)
    told = talk.poll()
    talk.work()

    assert (codes(told), ends(told, "a")) == (["engine_failed"], ["error"])
    assert talk.session.live == 1
    assert len(audio_of(talk.heard, stream=2)) > 0


def test_too_much_text_is_refused_whole_and_the_context_lives():
    talk = Conversation(Limits(pending_chars=100))
    talk.start()

    (error,) = talk.say("text", text="x" * 101)
    talk.say("text", text="Hello.")
    talk.say("end")
    talk.work()

    assert (error["code"], error["context"], error["about"]) == ("text_too_long", None, "c1")
    assert "done" in talk.types()


def test_text_spoken_makes_room_for_more():
    talk = Conversation(Limits(pending_chars=60), lead_ms=30_000)
    for _ in range(5):
        assert codes(talk.say("text", text="One two three four five six seven. ")) == []
        talk.say("flush")
        talk.pass_time(3)


def test_a_context_has_so_much_text_in_all_its_life():
    talk = Conversation(Limits(context_chars=60), lead_ms=30_000)
    talk.say("text", text="One two three four five six seven. ")
    talk.say("flush")
    talk.work()

    assert codes(talk.say("text", text="One two three four five six seven. ")) == ["text_too_long"]


def test_messages_over_the_rate_are_refused_and_persistence_is_noticed():
    talk = Conversation(Limits(messages_per_second=10))
    answers = [talk.say("ping", None)[0]["type"] for _ in range(12)]

    assert answers == ["pong"] * 10 + ["error"] * 2
    assert not talk.session.abusive
    for _ in range(10):
        talk.say("ping", None)
    assert talk.session.abusive


def test_the_rate_recovers_with_time():
    talk = Conversation(Limits(messages_per_second=10))
    for _ in range(12):
        talk.say("ping", None)
    talk.now += 0.1

    assert talk.say("ping", None) == [{"type": "pong"}]


def test_a_binary_message_is_bad():
    talk = Conversation()
    talk.session.receive_binary()

    assert codes(talk.poll()) == ["bad_message"]


def test_a_reader_that_takes_nothing_is_found_out():
    talk = Conversation(Limits(stall_s=30))
    talk.start()
    talk.say("text", text="word " * 100)
    talk.work()
    talk.stage.work(talk.session, talk.now)
    talk.now += 29
    assert not talk.session.overdue(talk.now)

    talk.now += 2

    assert talk.session.overdue(talk.now)


def test_a_listener_that_reports_no_progress_is_closed_as_slow():
    talk = Conversation(Limits(stall_s=30))
    talk.start()
    talk.say("text", text="word " * 400)
    for _ in range(40):
        talk.pass_time(1.0)
        if not talk.session.live:
            break
        talk.say("played", samples=0)

    assert talk.session.slow_reader
    assert codes(talk.heard)[-1] == "slow_reader"


def test_generation_is_held_while_nobody_takes_the_audio_and_goes_on_after():
    talk = Conversation()
    talk.start()
    talk.say("text", text="word " * 400)
    talk.stage.work(talk.session, talk.now)
    (utterance,) = talk.stage.open_utterances
    assert talk.stage.held == {utterance}
    assert talk.stage.segments

    talk.pass_time(8.0)

    assert len(audio_of(talk.heard)) > 2
    talk.pass_time(200.0)
    assert not talk.stage.segments


def test_an_idle_context_is_ended():
    talk = Conversation(Limits(context_idle_s=600))
    talk.start()
    talk.pass_time(599)
    assert talk.session.live == 1

    talk.pass_time(2)

    assert (codes(talk.heard), ends(talk.heard)) == (["idle"], ["error"])


def test_an_utterance_gives_its_permit_back_when_its_audio_is_sent():
    talk = Conversation(lead_ms=30_000)
    talk.start()
    talk.say("text", text="One two three. ")
    talk.say("flush")
    assert talk.stage.controller.utterances == 1

    talk.work()

    assert talk.stage.controller.utterances == 0
    assert talk.session.live == 1


def test_closing_the_connection_leaves_nothing_running():
    talk = Conversation()
    for name in "abc":
        talk.say("text", name, text="One two three. Four five six.")
    talk.stage.speak_one(talk.session, talk.now)

    talk.session.close(talk.now)

    assert talk.session.live == 0
    assert not talk.stage.open_utterances
    assert all(track.closed for track in talk.stage.tracks.values())
    assert talk.stage.controller.utterances == 0


def test_while_draining_nothing_new_opens_and_what_runs_goes_on():
    talk = Conversation(lead_ms=30_000)
    talk.say("text", "a", text="One two three. ")
    talk.session.draining = True

    told = talk.start("b")
    talk.say("end", "a")
    talk.work()

    assert (codes(told), ends(told, "b")) == (["overloaded"], ["error"])
    assert ends(talk.heard, "a") == ["done"]


# --- every row of the life cycle -----------------------------------------------------------------------------------

REACH = {
    State.UNSEEN: (),
    State.OPEN: ("start",),
    State.ENDING: ("start", "text", "end"),
    State.CLOSED: ("start", "cancel"),
}
ANSWERS = {
    (State.UNSEEN, Event.START): [],
    (State.UNSEEN, Event.TEXT): [],
    (State.UNSEEN, Event.FLUSH): ["context_closed"],
    (State.UNSEEN, Event.END): ["context_closed"],
    (State.UNSEEN, Event.CANCEL): [],
    (State.UNSEEN, Event.PLAYED): [],
    (State.OPEN, Event.START): ["context_exists"],
    (State.OPEN, Event.TEXT): [],
    (State.OPEN, Event.FLUSH): ["flushed"],
    (State.OPEN, Event.END): ["started"],
    (State.OPEN, Event.CANCEL): ["cancelled"],
    (State.OPEN, Event.PLAYED): [],
    (State.ENDING, Event.START): ["context_exists"],
    (State.ENDING, Event.TEXT): ["context_closed"],
    (State.ENDING, Event.FLUSH): ["context_closed"],
    (State.ENDING, Event.END): ["context_closed"],
    (State.ENDING, Event.CANCEL): ["cancelled"],
    (State.ENDING, Event.PLAYED): [],
    (State.CLOSED, Event.START): [],
    (State.CLOSED, Event.TEXT): [],
    (State.CLOSED, Event.FLUSH): [],
    (State.CLOSED, Event.END): [],
    (State.CLOSED, Event.CANCEL): ["cancelled"],
    (State.CLOSED, Event.PLAYED): [],
}
FIELDS: dict[str, dict[str, Any]] = {"text": {"text": "Hello there, my friend"}, "played": {"samples": 1}}


@pytest.mark.parametrize(("state", "event"), ANSWERS)
def test_every_message_in_every_state_does_what_the_table_says(state: State, event: Event):
    talk = Conversation()
    for message in REACH[state]:
        talk.say(message, **FIELDS.get(message, {}))

    told = talk.say(event.value, **FIELDS.get(event.value, {}))

    assert [message.get("code", message["type"]) for message in told] == ANSWERS[state, event]
    assert state_of(talk.session) is TABLE[state, event].state


def state_of(session: Session) -> State:
    """The state as a client can tell it: by what a second start and a flush would do."""
    return session._state("c1")


def test_the_table_knows_every_message_in_every_state():
    messages = {Event.START, Event.TEXT, Event.FLUSH, Event.END, Event.CANCEL, Event.PLAYED}

    assert {pair for pair in TABLE if pair[1] in messages} == {(state, event) for state in State for event in messages}
    assert set(ANSWERS) == {pair for pair in TABLE if pair[1] in messages}


# --- everything at once --------------------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", "d"])
texts = st.sampled_from(["Hello. ", "one two three four five, six ", "…", "мир ", "No way! ", "word " * 30, "x"])


class AnyConversation(RuleBasedStateMachine):
    """Whatever a client says in whatever order: the promises of the wire hold."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = Conversation(Limits(contexts=3, pending_chars=2_000), admission.Limits(utterances=3))
        self.started: dict[str, int] = {}
        self.ended: set[str] = set()
        self.next: dict[int, tuple[int, int]] = {}  # stream -> sequence and packets expected
        self.form: dict[int, Format] = {}
        self.sent: dict[str, int] = {}
        self.seen = 0

    @rule(name=names, lead=st.sampled_from([0, 200, 2000]), codec=st.sampled_from(["opus", "pcm_s16le"]))
    def start(self, name: str, lead: int, codec: str):
        live = self.live(name)
        told = self.talk.say("start", name, lead_ms=lead, codec=codec, timestamps=True)
        if live:
            assert codes(told) == ["context_exists"]
        else:
            self.ended.discard(name)
            self.started.pop(name, None)
            self.sent[name] = 0
        self.check()

    @rule(name=names, text=texts)
    def text(self, name: str, text: str):
        self.talk.say("text", name, text=text)
        self.check()

    @rule(name=names, kind=st.sampled_from(["flush", "end"]))
    def finish(self, name: str, kind: str):
        self.talk.say(kind, name)
        self.check()

    @rule(name=names, played=st.none() | st.integers(0, 10**6))
    def cancel(self, name: str, played: int | None):
        live = self.live(name)
        told = self.talk.say("cancel", name, **({} if played is None else {"played": played}))
        assert [message["type"] for message in told] == ["cancelled"] or not live
        for message in told:
            assert 0 <= message["heard"] <= message["sent"] <= self.sent.get(name, 0)
        self.check()

    @rule(name=names, samples=st.integers(0, 10**6))
    def played(self, name: str, samples: int):
        assert self.talk.say("played", name, samples=samples) == []
        self.check()

    @rule(seconds=st.sampled_from([0.05, 0.4, 3.0]))
    def wait(self, seconds: float):
        self.talk.pass_time(seconds)
        self.check()

    @rule()
    def work(self):
        self.talk.work()
        self.check()

    @precondition(lambda self: self.talk.stage.open_utterances)
    @rule(data=st.data())
    def break_engine(self, data: st.DataObject):
        utterance = data.draw(st.sampled_from(sorted(self.talk.stage.open_utterances)))
        self.talk.session.failed(utterance, "broken", self.talk.now)
        self.talk.poll()
        self.check()

    def live(self, name: str) -> bool:
        return state_of_name(self.talk.session, name) in (State.OPEN, State.ENDING)

    def check(self) -> None:
        """Reads what was said since the last look, as a client would."""
        for message in self.talk.heard[self.seen :]:
            if isinstance(message, bytes):
                self.check_audio(message)
            elif message["type"] == "started":
                assert message["context"] not in self.started
                self.started[message["context"]] = message["stream"]
                self.next[message["stream"]] = (0, 0)
                self.form[message["stream"]] = Format(
                    message["codec"], message["sample_rate"], message["frame_samples"], message["pre_skip"]
                )
                self.sent[message["context"]] = 0
            elif message.get("context") is not None:
                name = message["context"]
                if message["type"] == "cancelled" and name in self.ended:
                    continue
                assert name not in self.ended
                if message["type"] in ("done", "cancelled", "error"):
                    self.ended.add(name)
                if message["type"] == "done":
                    assert self.sent.get(name, 0) - 480 - 156 < message["samples"] <= self.sent.get(name, 0)
        self.seen = len(self.talk.heard)

    def check_audio(self, message: bytes) -> None:
        _, flags, stream, sequence, start = wire.HEADER.unpack(message[:16])
        name = next(name for name, number in self.started.items() if number == stream and name not in self.ended)
        form = self.form[stream]
        expected, packets = self.next[stream]
        assert (sequence, flags) == (expected, 1 if sequence == 0 else 0)
        assert start == max(0, packets * form.frame_samples - form.pre_skip)
        packets += opus_packets(message[16:]) if form.codec == "opus" else len(message[16:]) // 2 // form.frame_samples
        self.next[stream] = (sequence + 1, packets)
        self.sent[name] = max(0, packets * form.frame_samples - form.pre_skip)

    @invariant()
    def nothing_leaks(self):
        stage = self.talk.stage
        assert stage.controller.utterances == len(stage.open_utterances) <= 4
        assert self.talk.session.live <= 3
        assert sum(not track.closed for track in stage.tracks.values()) == self.talk.session.live

    def teardown(self):
        self.talk.session.close(self.talk.now)
        assert self.talk.stage.controller.utterances == 0


def opus_packets(payload: bytes) -> int:
    count = at = 0
    while at < len(payload):
        at += 2 + int.from_bytes(payload[at : at + 2])
        count += 1
    assert at == len(payload)
    return count


def state_of_name(session: Session, name: str) -> State:
    return session._state(name)


TestAnyConversation = AnyConversation.TestCase
TestAnyConversation.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)

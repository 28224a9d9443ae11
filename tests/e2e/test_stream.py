"""The wire, end to end: a real server, a real socket, the real voice, audio decoded and compared."""

import asyncio
import json

import numpy as np
import pytest
from numpy.typing import NDArray

from talk import talking
from voxgate.gateway.timeline import Timeline
from voxgate.synth.engines.hibari import HibariEngine
from voxgate.synth.segment import Segment, Style
from voxgate.synth.text.segmenter import Segmenter

PARAGRAPH = (
    "When the storm finally broke over the harbour, the fishermen hurried to their boats. "
    "Dr. Smith paid $3.50 for 2 coffees at 9:30 a.m. sharp! Was it worth it? Nobody knew."
)


@pytest.fixture(scope="module")
def engine() -> HibariEngine:
    return HibariEngine()


def segments_of(text: str) -> list[Segment]:
    segmenter = Segmenter()
    return segmenter.push(text) + segmenter.end()


def synthesized(engine: HibariEngine, text: str, style: Style) -> NDArray[np.int16]:
    """What the engine makes of the text's segments, without any server between."""
    return np.concatenate([engine.synthesize(segment, style).pcm for segment in segments_of(text)])


async def test_pcm_is_what_the_engine_made_to_the_sample(server: str, engine: HibariEngine):
    async with talking(server) as talk:
        heard = await talk.speak("c1", PARAGRAPH, codec="pcm_s16le", seed=7, speed=1.1)

    assert np.array_equal(heard.pcm(), synthesized(engine, PARAGRAPH, Style("heart", 1.1, 7)))


async def test_text_in_any_deltas_gives_the_same_samples(server: str, engine: HibariEngine):
    async with talking(server) as talk:
        await talk.say("start", "c1", codec="pcm_s16le", lead_ms=30_000)
        for character in PARAGRAPH:
            await talk.say("text", "c1", text=character)
        await talk.say("end", "c1")
        await talk.until("done", "c1")

    assert np.array_equal(talk.heard["c1"].pcm(), synthesized(engine, PARAGRAPH, Style("heart")))


@pytest.mark.parametrize(("sample_rate", "frame_ms"), [(8000, 60), (16000, 20), (24000, 10), (48000, 2.5)])
async def test_opus_decodes_to_the_length_of_the_speech(
    server: str, engine: HibariEngine, sample_rate: int, frame_ms: float
):
    text = "Hello there, my dear old friend. How are you?"
    async with talking(server) as talk:
        heard = await talk.speak("c1", text, codec="opus", sample_rate=sample_rate, frame_ms=frame_ms)

    source = synthesized(engine, text, Style("heart"))
    assert heard.only("done")["samples"] == len(heard.pcm()) == round(len(source) * sample_rate / 24000)


async def test_decoded_opus_lies_where_the_speech_lay(server: str, engine: HibariEngine):
    text = "Hello there, my dear old friend. How are you?"
    async with talking(server) as talk:
        heard = await talk.speak("c1", text)

    source = synthesized(engine, text, Style("heart")).astype(float)
    lags = range(-40, 41)
    decoded = np.pad(heard.pcm().astype(float), 40)
    likeness = [float(source @ decoded[40 + lag : 40 + lag + len(source)]) for lag in lags]
    assert abs(lags[int(np.argmax(likeness))]) <= 1


async def test_sequences_are_gapless_and_starts_follow_the_packets(server: str):
    async with talking(server) as talk:
        heard = await talk.speak("c1", PARAGRAPH)

    packets = 0
    for number, (flags, sequence, start, payload) in enumerate(heard.audio):
        assert (flags, sequence) == (int(number == 0), number)
        assert start == max(0, packets * heard.format.frame_samples - heard.format.pre_skip)
        at = 0
        while at < len(payload):
            at += 2 + int.from_bytes(payload[at : at + 2])
            packets += 1


async def test_the_first_sound_comes_within_20_ms_of_the_first_packet(server: str):
    async with talking(server) as talk:
        heard = await talk.speak("c1", "Good morning to all of you.", codec="pcm_s16le")

    assert np.flatnonzero(np.abs(heard.pcm().astype(int)) > 184)[0] <= 0.020 * 24000


async def test_a_hundred_contexts_on_one_connection_speak_each_its_own_text(server: str, engine: HibariEngine):
    texts = {f"c{number}": f"This is context number {number}." for number in range(100)}
    async with talking(server) as talk:
        for name, text in texts.items():
            await talk.say("start", name, codec="pcm_s16le", lead_ms=30_000, max_wait_ms=60_000)
            await talk.say("text", name, text=text)
            await talk.say("end", name)
        done = 0
        while done < len(texts):
            message = await talk.receive()
            done += isinstance(message, dict) and message["type"] == "done"

    for name in ("c0", "c17", "c99"):
        assert np.array_equal(talk.heard[name].pcm(), synthesized(engine, texts[name], Style("heart")))
    assert all(len(talk.heard[name].pcm()) == talk.heard[name].only("done")["samples"] for name in texts)
    assert not talk.stray


async def test_the_pacer_keeps_the_lead_and_starts_at_once(server: str):
    async with talking(server) as talk:
        await talk.say("start", "c1", codec="pcm_s16le", lead_ms=500)
        await talk.say("text", "c1", text=PARAGRAPH)
        await talk.say("end", "c1")
        await talk.until_audio("c1")
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        while loop.time() < began_at + 2.0:
            await talk.receive()
            samples = sum(len(payload) // 2 for *_, payload in talk.heard["c1"].audio)
            # What is sent can be ahead of real time by the lead, and by what was on its way when the clock began.
            assert samples / 24000 <= loop.time() - began_at + 0.5 + 0.2


async def test_cancel_answers_and_nothing_follows(server: str):
    async with talking(server) as talk:
        await talk.say("start", "c1", codec="pcm_s16le")
        await talk.say("text", "c1", text=PARAGRAPH)
        while sum(len(payload) for *_, payload in talk.of("c1").audio) < 10_000:
            await talk.receive()
        await talk.say("cancel", "c1", played=2400)
        cancelled = await talk.until("cancelled", "c1")
        before = len(talk.heard["c1"].audio)
        for word in ("late ", "words."):
            await talk.say("text", "c1", text=word)
        await talk.say("end", "c1")
        await talk.speak("c2", "Something else.")

    assert cancelled["heard"] == 2400
    assert cancelled["sent"] >= 2400
    assert PARAGRAPH.startswith(cancelled["text"])
    assert len(talk.heard["c1"].audio) == before
    assert not talk.stray


async def test_words_come_with_the_engines_own_times_and_offsets_into_the_text(server: str, engine: HibariEngine):
    async with talking(server) as talk:
        heard = await talk.speak("c1", PARAGRAPH, timestamps=True)

    timeline = Timeline(24000)
    expected = [
        word
        for segment in segments_of(PARAGRAPH)
        for word in timeline.append(segment, engine.synthesize(segment, Style("heart")))
    ]
    assert heard.words == [[word.text, word.start, word.end, word.offset] for word in expected]
    assert [word for word, *_ in heard.words] == PARAGRAPH.split()
    assert all(PARAGRAPH[offset:].startswith(word) for word, _, _, offset in heard.words)
    assert not any(message.get("estimated") for message in heard.messages if message["type"] == "words")


async def test_what_was_heard_of_a_cancelled_text_ends_with_the_word_that_was_sounding(server: str):
    text = f"{PARAGRAPH} {PARAGRAPH}"
    async with talking(server) as talk:
        whole = await talk.speak("whole", text, timestamps=True)
        for number in range(12):
            name, seconds = f"c{number}", 0.7 * number + 0.1
            await talk.say("start", name, timestamps=True, lead_ms=30_000)
            await talk.say("text", name, text=text)
            await talk.say("end", name)
            await talk.until("done", name)
            await talk.say("cancel", name, played=round(seconds * 24000))
            cancelled = await talk.until("cancelled", name)

            heard = [offset + len(word) for word, start, end, offset in whole.words if (start + end) / 2 <= seconds]
            assert len(cancelled["text"].rstrip()) == max(heard, default=0)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "bad_message"),
        ("[]", "bad_message"),
        ('{"type":"shout"}', "bad_message"),
        ('{"type":"text","context":"x","text":"\\ud800"}', "bad_message"),
        ('{"type":"end","context":"never seen"}', "context_closed"),
        (b"\0\1\2", "bad_message"),
        ('{"type":"start","context":"live"}', "context_exists"),
    ],
)
async def test_bad_input_gets_its_error_and_nothing_else_suffers(server: str, message: str | bytes, code: str):
    async with talking(server) as talk:
        await talk.say("start", "live", codec="pcm_s16le")
        await talk.say("text", "live", text="This goes on ")
        await talk.socket.send(message)
        error = await talk.until("error", None)
        await talk.say("text", "live", text="as if nothing was.")
        await talk.say("end", "live")
        await talk.until("done", "live")

    assert error["code"] == code
    assert talk.heard["live"].only("done")["samples"] == len(talk.heard["live"].pcm())


async def test_a_zero_character_is_not_spoken_and_breaks_nothing(server: str, engine: HibariEngine):
    async with talking(server) as talk:
        heard = await talk.speak("c1", "Good\0morning.", codec="pcm_s16le")

    assert np.array_equal(heard.pcm(), synthesized(engine, "Good\0morning.", Style("heart")))


async def test_an_oversized_message_closes_with_1009(server: str):
    async with talking(server) as talk:
        await talk.socket.send(json.dumps({"type": "text", "context": "c", "text": "x" * 200_000}))

        assert await talk.until_closed() == 1009


async def test_invalid_utf8_closes_with_1007_and_the_server_lives(server: str):
    async with talking(server) as talk:
        await talk.socket.send(b"\xff\xfe", text=True)

        assert await talk.until_closed() == 1007

    async with talking(server) as talk:
        await talk.speak("c1", "Still here.")


async def test_ten_thousand_characters_are_spoken_or_refused_never_lost(server: str):
    async with talking(server) as talk:
        await talk.say("text", "c1", text="word " * 2_000)
        await talk.until_audio("c1")
        await talk.say("text", "c1", text="word " * 4_000)
        error = await talk.until("error", None)

    assert (error["code"], error["about"]) == ("text_too_long", "c1")


async def test_query_parameters_are_the_defaults(server: str):
    async with talking(server, "/v1/stream?codec=pcm_s16le&sample_rate=8000&speed=2") as talk:
        await talk.say("text", "c1", text="Quick and low.")
        await talk.say("end", "c1")
        await talk.until("done", "c1")

    assert talk.heard["c1"].format == talk.heard["c1"].format.__class__("pcm_s16le", 8000, 160, 0)

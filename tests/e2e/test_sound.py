"""Faults that streaming speech servers are known for, each looked for over a real socket with the real voice."""

import asyncio

import pytest

from talk import Heard, Talk, talking
from voxgate.codecs.packetizer import WIRE_CODECS

TEXT = "The boats went out before dawn, and nobody saw them again until the evening. They were late. "


def bytes_of(heard: Heard) -> bytes:
    return b"".join(payload for *_, payload in heard.audio)


async def in_pieces(talk: Talk, name: str, codec: str, text: str) -> Heard:
    """`text` word by word, flushed in the middle, so that there are joins of all kinds."""
    await talk.say("start", name, codec=codec, lead_ms=30_000, max_wait_ms=30_000)
    words = text.split(" ")
    for number, word in enumerate(words):
        await talk.say("text", name, text=f"{word} ")
        if number == len(words) // 2:
            await talk.say("flush", name)
    await talk.say("end", name)
    await talk.until("done", name)
    return talk.heard[name]


@pytest.mark.parametrize("text", [TEXT, "Hi."], ids=["long", "short"])
@pytest.mark.parametrize("codec", WIRE_CODECS)
async def test_a_context_is_one_stream_whole_and_nothing_else(server: str, codec: str, text: str):
    async with talking(server) as talk:
        heard = await in_pieces(talk, "c1", codec, text)

    samples, data = heard.only("done")["samples"], bytes_of(heard)
    assert len(heard.pcm()) == samples  # the last of it too
    starts = [start for _, _, start, _ in heard.audio]
    assert starts == sorted(starts)
    assert [sequence for _, sequence, _, _ in heard.audio] == list(range(len(starts)))
    match codec:
        case "pcm_s16le":
            assert len(data) == 2 * samples
            assert all(len(payload) % 2 == 0 for *_, payload in heard.audio)
        case "wav":
            assert (data.count(b"RIFF"), len(data)) == (1, 44 + 2 * samples)
        case "mulaw" | "alaw":
            assert len(data) == samples
        case "ogg_opus":
            flags = [data[at + 5] for at in range(len(data) - 27) if data.startswith(b"OggS\0", at)]
            assert [flag for flag in flags if flag] == [2, 4]  # one begins it, one ends it
            assert data.count(b"OpusHead") == 1


async def test_the_first_message_is_as_long_for_the_fiftieth_and_beside_others(server: str):
    async def first_bytes(talk: Talk, name: str) -> int:
        await talk.say("start", name, codec="pcm_s16le", lead_ms=30_000, max_wait_ms=30_000)
        await talk.say("text", name, text="It was a long sentence and all that there was")
        await talk.say("end", name)
        await talk.until_audio(name)
        return len(talk.heard[name].audio[0][3])

    async with talking(server) as talk:
        one_by_one = [await first_bytes(talk, f"c{number}") for number in range(50)]

    async def alone() -> int:
        async with talking(server) as talk:
            return await first_bytes(talk, "c1")

    together = await asyncio.gather(*(alone() for _ in range(8)))
    assert {*one_by_one, *together} == {one_by_one[0]}


async def test_a_ping_is_answered_while_an_answer_is_played(server: str):
    async with talking(server) as talk:
        await talk.say("start", "c1", lead_ms=200)
        await talk.say("text", "c1", text=TEXT * 4)
        await talk.say("end", "c1")
        await talk.until_audio("c1")
        for _ in range(3):
            await talk.say("ping")
            await talk.until("pong")
        assert not any(message["type"] == "done" for message in talk.heard["c1"].messages)


@pytest.mark.parametrize("nothing", ["...", "…", "—", "*", "()", "😊", "", "   ", "\n", '"', "**", "[uv_break]"])
async def test_what_is_not_spoken_takes_no_neighbour_with_it(server: str, nothing: str):
    async with talking(server) as talk:
        await talk.say("start", "before", timestamps=True, lead_ms=30_000)
        for delta in ("The first.", nothing, " The second. ", nothing):
            await talk.say("text", "before", text=delta)
        await talk.say("cancel", "nobody")
        await talk.say("start", "after", timestamps=True, lead_ms=30_000)
        for delta in (nothing, "9", nothing):
            await talk.say("text", "after", text=delta)
        for name in ("before", "after"):
            await talk.say("end", name)
        done: set[str] = set()
        while done < {"before", "after"}:
            message = await talk.receive()
            if isinstance(message, dict) and message["type"] in ("done", "error"):
                done.add(message["context"])

    words = [
        ["".join(filter(str.isalnum, word)) for word, *_ in talk.heard[name].words] for name in ("before", "after")
    ]
    assert words == [["The", "first", "The", "second"], ["9"]]
    assert all(talk.heard[name].only("done")["samples"] > 0 for name in ("before", "after"))


@pytest.mark.parametrize("sign", ["€", "50 €", "%"])
async def test_a_sign_that_is_all_there_is_is_heard(server: str, sign: str):
    async with talking(server) as talk:
        heard = await talk.speak("c1", sign, timestamps=True)

    assert heard.only("done")["samples"] > 24000 // 4
    assert [word for word, *_ in heard.words] == sign.split()


async def test_a_tag_that_comes_in_two_messages_is_never_spoken(server: str):
    async with talking(server) as talk:
        plain = await talk.speak("plain", "What?            And so on.", codec="pcm_s16le")
        await talk.say("start", "split", codec="pcm_s16le", lead_ms=30_000)
        for delta in ("What?[uv_", "break]", " And so on."):
            await talk.say("text", "split", text=delta)
        await talk.say("end", "split")
        await talk.until("done", "split")

    assert bytes_of(talk.heard["split"]) == bytes_of(plain)

import asyncio
from typing import Any

import pytest

from scripted_peer import Peer, audio, peer, started
from voxgate.client import ContextError, connect
from voxgate.loadtest.conversation import Conversation, Target
from voxgate.loadtest.corpus import Text
from voxgate.loadtest.listening import Listening, Outcome, Result
from voxgate.loadtest.plan import Planned

TEXT = Text("short", "Good morning. Here we are.", (13, 26))
SECOND = b"\0\0" * 24_000


async def converse(script, planned: Planned, tokens_per_second: float = 0.0, **target: Any) -> tuple[Result, list]:
    listening = Listening(len(planned.text.text), planned.text.pieces, 0.0, slow=planned.slow)
    heard: list[float] = []
    conversation = Conversation(
        planned, listening, tokens_per_second, lambda _, seconds: heard.append(seconds), lambda _: None
    )
    async with peer(script) as url, connect(url) as connection:
        await conversation.run(connection, Target(url, **target))
        return listening.finished(asyncio.get_running_loop().time()), heard


async def test_a_text_is_sent_whole_and_its_audio_counted():
    said: list[dict[str, Any]] = []

    async def speak(server: Peer) -> None:
        said.extend(await server.hear_until("end"))
        await server.say(started("c1"), audio(0, 0, SECOND), audio(1, 24_000, SECOND))
        await server.say({"type": "done", "context": "c1", "samples": 48_000})

    result, heard = await converse(speak, Planned(TEXT), codec="pcm_s16le", lead_ms=500.0)

    assert said == [
        {"type": "start", "context": "c1", "codec": "pcm_s16le", "lead_ms": 500.0},
        {"type": "text", "context": "c1", "text": TEXT.text},
        {"type": "end", "context": "c1"},
    ]
    assert (result.outcome, result.audio_seconds, heard) == (Outcome.DONE, 2.0, [1.0, 1.0])


async def test_tokens_are_written_one_by_one_and_word_times_asked_for():
    said: list[dict[str, Any]] = []

    async def speak(server: Peer) -> None:
        said.extend(await server.hear_until("end"))
        await server.say(started("c1"), audio(0, 0, SECOND), {"type": "done", "context": "c1", "samples": 24_000})

    await converse(speak, Planned(TEXT), tokens_per_second=1000.0)

    assert said[0]["timestamps"] is True
    assert [message["text"] for message in said[1:-1]] == ["Good", " mor", "ning.", " Here", " we", " are."]


async def test_an_interruption_tells_what_was_heard():
    said: list[dict[str, Any]] = []

    async def speak(server: Peer) -> None:
        await server.hear_until("end")
        await server.say(started("c1"), audio(0, 0, SECOND))
        said.append(await server.hear())
        await server.say({"type": "cancelled", "context": "c1", "sent": 24_000, "heard": said[0]["played"]})

    result, _ = await converse(speak, Planned(TEXT, barge_in_after=0.05))

    assert result.outcome is Outcome.CANCELLED
    assert result.cancel_to_silence == 0.0
    assert said[0]["type"] == "cancel"
    assert 1200 <= said[0]["played"] <= 24_000


async def test_what_was_sent_whole_is_interrupted_while_it_is_heard():
    async def speak(server: Peer) -> None:
        await server.hear_until("end")
        await server.say(started("c1"), audio(0, 0, SECOND), {"type": "done", "context": "c1", "samples": 24_000})
        await server.hear_until("cancel")
        await server.say({"type": "cancelled", "context": "c1", "sent": 24_000, "heard": 2400})

    result, _ = await converse(speak, Planned(TEXT, barge_in_after=0.1))

    assert result.outcome is Outcome.CANCELLED


async def test_what_is_over_before_the_interruption_is_not_interrupted():
    async def speak(server: Peer) -> None:
        await server.hear_until("end")
        await server.say(started("c1"), audio(0, 0, b"\0\0" * 240), {"type": "done", "context": "c1", "samples": 240})

    result, _ = await converse(speak, Planned(TEXT, barge_in_after=3.0))

    assert (result.outcome, result.cancel_to_silence) == (Outcome.DONE, None)


async def test_a_message_that_was_not_taken_ends_the_utterance():
    last: list[dict[str, Any]] = []

    async def refuse(server: Peer) -> None:
        await server.hear_until("end")
        await server.say({"type": "error", "context": None, "about": "c1", "code": "rate_limited", "message": "slower"})
        last.append(await server.hear())

    with pytest.raises(ContextError, match="rate_limited"):
        await converse(refuse, Planned(TEXT))

    assert last == [{"type": "cancel", "context": "c1"}]


async def test_a_slow_reader_takes_twice_the_time():
    async def speak(server: Peer) -> None:
        await server.hear_until("end")
        await server.say(started("c1"), audio(0, 0, b"\0\0" * 4800))
        await server.say({"type": "done", "context": "c1", "samples": 4800})

    loop = asyncio.get_running_loop()
    began_at = loop.time()
    result, _ = await converse(speak, Planned(TEXT, slow=True))

    assert (result.slow, result.outcome) == (True, Outcome.DONE)
    assert loop.time() - began_at >= 0.4  # not how fast it is, but that it is not faster

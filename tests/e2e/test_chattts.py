"""ChatTTS in a real server, at a toy size and on the CPU: streams side by side, a barge-in, texts it cannot take."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from running import running_server
from talk import Talk, talking
from tree import ROOT

PCM = {"codec": "pcm_s16le", "sample_rate": 24000, "max_wait_ms": 10_000}
PATHS = f"{ROOT / 'tests'}:{ROOT / 'tests' / 'fakes'}"
ENGINES = """
[engines.hibari]
workers = 1
[engines.chattts]
factory = "toy_chattts:make"
slots = 3
workers = 1
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = Path(tmp_path_factory.mktemp("chattts")) / "voxgate.toml"
    file.write_text(ENGINES)
    with running_server("--config", str(file), env={"PYTHONPATH": f"{PATHS}:{ROOT.parent}"}) as url:
        yield url


async def speak(talk: Talk, context: str, text: str, **start: Any) -> None:
    await talk.say("start", context, **PCM, **start)
    await talk.say("text", context, text=text)
    await talk.say("end", context)


async def ended(talk: Talk, *contexts: str) -> dict[str, str]:
    """How each of them ended."""
    how: dict[str, str] = {}
    while len(how) < len(contexts):
        message = await talk.receive()
        if isinstance(message, dict) and message["type"] in ("done", "cancelled", "error"):
            how[message.get("context") or message["about"]] = message["type"]
    return how


async def test_its_voices_stream_side_by_side_and_beside_the_bundled_one(url):
    """More streams than it has slots."""
    cast = {"a": "mei", "b": "bob", "c": "mei", "d": "heart", "e": "bob"}
    async with talking(url) as talk:
        voices = [voice["id"] for voice in talk.heard[None].only("ready")["voices"]]
        for context, voice in cast.items():
            await speak(talk, context, f"hello there, this is {context}. and once more.", voice=voice)
        how = await ended(talk, *cast)

    assert voices == ["heart", "mei", "bob"]
    assert how == dict.fromkeys(cast, "done")
    for context in cast:
        assert len(talk.heard[context].pcm()) == talk.heard[context].only("done")["samples"] > 6_000
        assert np.abs(talk.heard[context].pcm()).max() > 300


async def test_chinese_is_spoken_and_a_text_without_a_word_is_not(url):
    async with talking(url) as talk:
        await speak(talk, "a", "你好，三点见。", voice="mei")
        await speak(talk, "b", "... — *", voice="mei")
        how = await ended(talk, "a", "b")

    assert how == {"a": "done", "b": "done"}
    assert talk.heard["a"].only("done")["samples"] > 6_000
    assert talk.heard["b"].only("done")["samples"] == 0


async def test_a_barge_in_frees_the_slot_for_who_waits(url):
    async with talking(url) as talk:
        for context in "abc":
            await speak(talk, context, "so many words that it takes a while, " * 5, voice="mei")
        await talk.until_audio("a")
        for context in "abc":
            await talk.say("cancel", context)
        await speak(talk, "d", "hello.", voice="bob")
        how = await ended(talk, *"abcd")

    assert how == {"a": "cancelled", "b": "cancelled", "c": "cancelled", "d": "done"}

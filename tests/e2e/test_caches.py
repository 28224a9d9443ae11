"""What was said is said again without an engine, to the sample; and no cache in trouble is ever heard."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from redis_server import RedisServer, running_redis
from running import children_of, running_server, server_pid
from talk import talking
from voxgate.gateway.timeline import Timeline
from voxgate.synth.cache.redis import NAMESPACE
from voxgate.synth.engines.hibari import HibariEngine
from voxgate.synth.segment import Segment, Style
from voxgate.synth.text.segmenter import Segmenter

PHRASES = """
[[phrase]]
text = "One moment, please."

[[phrase]]
text = "If you would like to hear that again, just say so, and otherwise I will go on with the next of your messages."

[[phrase]]
text = "I am back."
speed = 1.5
seed = 7
"""
LONG_PHRASE = PHRASES.split('"')[3]
HEART = Style("heart")
STORY = (
    "The lighthouse keeper counted the ships, wrote their names into a book, and went to sleep. "
    "In the morning the book was gone. Nobody had been on the island, or so it seemed."
)


@pytest.fixture(scope="module")
def engine() -> HibariEngine:
    return HibariEngine()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, redis: RedisServer) -> Iterator[str]:
    """With phrases and a Redis."""
    phrases = tmp_path_factory.mktemp("phrases") / "phrases.toml"
    phrases.write_text(PHRASES)
    with running_server("--workers", "1", "--phrases", str(phrases), "--redis-url", redis.url) as url:
        yield url


@contextmanager
def stopped_workers(server: str) -> Iterator[None]:
    """While it lasts, no engine speaks."""
    workers = children_of(server_pid(server))
    assert workers
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in workers:
            os.kill(worker, signal.SIGCONT)


def segments(engine: HibariEngine, text: str) -> list[Segment]:
    segmenter = Segmenter(engine.info.voices[0].scripts)
    return segmenter.push(text) + segmenter.end()


def synthesized(engine: HibariEngine, text: str, style: Style = HEART) -> NDArray[np.int16]:
    return np.concatenate([engine.synthesize(segment, style).pcm for segment in segments(engine, text)])


def words_of(engine: HibariEngine, text: str) -> list[list[object]]:
    """Its words by the engine's own times."""
    timeline = Timeline(24000)
    words = [word for each in segments(engine, text) for word in timeline.append(each, engine.synthesize(each, HEART))]
    assert not any(word.estimated for word in words)
    return [[word.text, word.start, word.end, word.offset] for word in words]


async def test_what_was_said_is_said_again_without_an_engine_to_the_sample(server: str, engine: HibariEngine):
    async with talking(server) as talk:
        first = await talk.speak("c1", STORY, codec="pcm_s16le", timestamps=True)
        with stopped_workers(server):
            again = await talk.speak("c2", STORY, codec="pcm_s16le", timestamps=True)

    assert again.words == first.words == words_of(engine, STORY)
    assert np.array_equal(first.pcm(), again.pcm())
    assert np.array_equal(first.pcm(), synthesized(engine, STORY))


async def test_cached_and_live_sentences_join_as_live_ones_do(server: str, engine: HibariEngine):
    async with talking(server) as talk:
        await talk.speak("c1", "It was dark. Where are you now? It was cold.")
        mixed = "A door opened. Where are you now? A voice was heard. Where are you now? It was cold."
        heard = await talk.speak("c2", mixed, codec="pcm_s16le")

    assert np.array_equal(heard.pcm(), synthesized(engine, mixed))


async def test_a_cancelled_stream_leaves_nothing_partial(server: str, engine: HibariEngine):
    text = STORY.replace("lighthouse", "castle").replace("morning", "evening")
    async with talking(server) as talk:
        for name in ("c1", "c2", "c3"):
            await talk.say("start", name, codec="pcm_s16le")
            await talk.say("text", name, text=text)
            await talk.say("end", name)
            if name != "c1":
                await talk.until_audio(name)
            await talk.say("cancel", name)
            await talk.until("cancelled", name)
        heard = await talk.speak("whole", text, codec="pcm_s16le")

    assert np.array_equal(heard.pcm(), synthesized(engine, text))


@pytest.mark.parametrize(
    "text",
    [
        "One moment, please.",
        "One moment, please. One moment, please. One moment, please.",
        "  One moment,\nplease.  ",
        LONG_PHRASE,
        f"One moment, please. {LONG_PHRASE}",
        f"{LONG_PHRASE} One moment, please. ",
    ],
)
async def test_a_phrase_needs_no_engine_wherever_it_stands(server: str, engine: HibariEngine, text: str):
    async with talking(server) as talk:
        with stopped_workers(server):
            heard = await talk.speak("c1", text, codec="pcm_s16le", timestamps=True)

    assert np.array_equal(heard.pcm(), synthesized(engine, text))
    assert heard.words == words_of(engine, text)


async def test_a_flushed_phrase_needs_no_engine(server: str):
    async with talking(server) as talk:
        with stopped_workers(server):
            await talk.say("start", "c1", codec="pcm_s16le", lead_ms=30_000)
            for text in ("One moment, please.", LONG_PHRASE, "One moment, please."):
                await talk.say("text", "c1", text=text)
                await talk.say("flush", "c1")
                await talk.until("flushed", "c1")
            await talk.say("end", "c1")
            await talk.until("done", "c1")

    assert talk.heard["c1"].only("done")["samples"] > 5 * 24000


async def test_a_phrase_is_that_of_its_speed_and_seed(server: str, engine: HibariEngine):
    async with talking(server) as talk:
        with stopped_workers(server):
            heard = await talk.speak("c1", "I am back.", codec="pcm_s16le", speed=1.5, seed=7)
        other = await talk.speak("c2", "I am back.", codec="pcm_s16le", speed=1.5, seed=8)

    assert np.array_equal(heard.pcm(), synthesized(engine, "I am back.", Style("heart", 1.5, 7)))
    assert not np.array_equal(heard.pcm(), other.pcm())


async def test_what_one_server_said_another_has_from_redis(server: str, redis: RedisServer, engine: HibariEngine):
    text = "This was said by one of them. The other one repeats it."
    async with talking(server) as talk:
        before = redis.entries
        await talk.speak("c1", text)
        redis.wait_for(before + 2)

    patient = ("--redis-budget-s", "10")
    with running_server("--workers", "1", "--redis-url", redis.url, *patient) as other:
        async with talking(other) as talk:
            with stopped_workers(other):
                heard = await talk.speak("c1", text, codec="pcm_s16le", timestamps=True)

    assert np.array_equal(heard.pcm(), synthesized(engine, text))
    assert heard.words == words_of(engine, text)


def spoil(redis: RedisServer) -> None:
    for key in redis.client.scan_iter(NAMESPACE + b"*"):
        redis.client.set(key, b"\xff" * 50_000)


@pytest.mark.parametrize("trouble", [RedisServer.stop, RedisServer.kill, RedisServer.fill, spoil])
async def test_a_redis_in_trouble_is_not_heard(
    tmp_path_factory: pytest.TempPathFactory, engine: HibariEngine, trouble: Callable[[RedisServer], None]
):
    # No memory: everything is looked for in Redis.
    text = f"What happens to it, {trouble.__name__}, is nobody's business. {STORY}"
    with (
        running_redis(tmp_path_factory.mktemp("redis")) as redis,
        running_server("--workers", "1", "--cache-bytes", "0", "--redis-url", redis.url) as url,
    ):
        async with talking(url) as talk:
            await talk.speak("well", text)
            redis.wait_for(len(segments(engine, text)))
            trouble(redis)
            heard = [await talk.speak(f"c{number}", text, codec="pcm_s16le") for number in range(4)]

    assert all(np.array_equal(each.pcm(), synthesized(engine, text)) for each in heard)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--phrases", "nowhere.toml"), "nowhere.toml: No such file"),
        (("--phrases", "nowhere.toml", "--gateways", "2"), "nowhere.toml: No such file"),
        (("--phrases", "phrases.toml"), "phrases.toml: .*volume"),
        (("--redis-url", "http://127.0.0.1"), "redis_url"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_listens(tmp_path: Path, flags: tuple[str, ...], named: str):
    (tmp_path / "phrases.toml").write_text('[[phrase]]\ntext = "Yes."\nvolume = 2')
    command = [sys.executable, "-m", "voxgate", "serve", "--port", "0", *flags]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert re.search(named, refused.stderr)


def test_a_phrase_no_voice_can_speak_is_named_and_keeps_the_server_from_becoming_ready(tmp_path: Path):
    (tmp_path / "phrases.toml").write_text('[[phrase]]\ntext = "Yes."\nvoice = "nobody"')
    command = [sys.executable, "-m", "voxgate", "serve", "--port", "0", "--workers", "1", "--phrases", "phrases.toml"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = process.stdout.readline().split()[-1]
            said = next(line for line in process.stderr if "ERROR" in line)
            with pytest.raises(urllib.error.HTTPError) as answer:
                urllib.request.urlopen(f"{url}/health/ready", timeout=10)
        finally:
            process.terminate()

    assert re.search("phrases.toml.*nobody.*Yes", said)
    assert answer.value.code == 503

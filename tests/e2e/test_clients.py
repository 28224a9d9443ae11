"""Unmodified frameworks and kits against a real server: they are told another address, and nothing else.

They live in an environment of their own, which `scripts/test` makes (requirements/clients.txt). The scripts that drive
them are in tests/clients; all of them run at once, before the first test looks at what they heard. What is heard is
compared with what the native wire says, to the sample.
"""

import asyncio
import base64
import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from running import free_port, running_server
from talk import talking
from tree import ROOT

PYTHON = ROOT / ".venv-clients" / "bin" / "python"
SCRIPTS = ROOT / "tests" / "clients"
PATIENCE_S = 150
TWO = "Hello there, this is a test. And here is a second sentence!"
ONE = "Something else now."
LONG = "This is a story that goes on for so long that nobody would hear it out without saying something. " * 3

TURNS = {"texts": [TWO, ONE]}
BARGE_IN = {"texts": [LONG, ONE], "barge_in": 0.5}
MID_TEXT = {**BARGE_IN, "mid_text": True}


def rates(service: str) -> list[dict[str, Any]]:
    return [{"service": service, "texts": [ONE], "rate": rate} for rate in (8000, 16000, 48000)]


def plans(service: str, *kinds: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"service": service, **kind} for kind in kinds]


PIPECAT = [
    [
        *plans("elevenlabs", TURNS, {**TURNS, "mode": "token"}, BARGE_IN, MID_TEXT, {**MID_TEXT, "mode": "token"}),
        *rates("elevenlabs"),
    ],
    [
        *plans("cartesia", TURNS, {**TURNS, "mode": "token"}, BARGE_IN, MID_TEXT, {**MID_TEXT, "mode": "token"}),
        *rates("cartesia"),
    ],
    [*plans("deepgram", TURNS, BARGE_IN, MID_TEXT), *rates("deepgram"), *plans("flux", TURNS, BARGE_IN, MID_TEXT)],
    [*plans("openai", TURNS, BARGE_IN), *plans("elevenlabs", {"texts": [ONE, ONE], "idle": 12.0})],
]
LIVEKIT = [
    [{"plugin": plugin, **kind} for plugin in plugins for kind in (TURNS, BARGE_IN)]
    for plugins in (
        ("elevenlabs", "cartesia", "pocket", "openai"),
        ("elevenlabs_mp3", "deepgram", "streaming", "openai_raw"),
    )
]
SDKS = (
    "openai",
    "openai_events",
    "cartesia",
    "cartesia_async",
    "deepgram",
    "deepgram_clear",
    "elevenlabs",
    "wyoming",
)


@dataclass
class House:
    """The server, and what everybody heard of it."""

    url: str
    told: dict[str, dict[str, Any]]  # by plan, or way
    complaints: str  # what the scripts wrote beside
    references: dict[tuple[str, int], set[bytes]]


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Iterator[House]:
    if not PYTHON.exists():
        pytest.fail(f"{PYTHON} is not there: scripts/test makes it")
    state, tls, tcp = tmp_path_factory.mktemp("state"), free_port(), free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state))
        with running_server("--tls-port", str(tls), "--wyoming-port", str(tcp)) as url:
            trusting = {**os.environ, "SSL_CERT_FILE": str(state / "voxgate" / "certificate.pem")}
            references = asyncio.run(all_references(url))
            commands = [
                *(["pipecat_bot.py", url, *map(json.dumps, each)] for each in PIPECAT),
                *(["livekit_bot.py", url, *map(json.dumps, each)] for each in LIVEKIT),
                ["sdks.py", url, f"https://localhost:{tls}", f"127.0.0.1:{tcp}"],
            ]
            with ThreadPoolExecutor(len(commands)) as pool:
                ended = list(pool.map(lambda command: ran(command, trusting), commands))
            told: dict[str, dict[str, Any]] = {}
            for (lines, _), command in zip(ended, commands, strict=True):
                names = SDKS if command[0] == "sdks.py" else command[2:]
                told.update(zip(names, map(json.loads, lines), strict=False))
            yield House(url, told, "\n".join(complaint for _, complaint in ended), references)


def ran(command: list[str], environment: dict[str, str]) -> tuple[list[str], str]:
    """The lines of JSON, and the rest."""
    script, *arguments = command
    try:
        ended = subprocess.run(
            [str(PYTHON), str(SCRIPTS / script), *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env=environment,
        )
        out, err = ended.stdout, ended.stderr
    except subprocess.TimeoutExpired as late:
        out, err = (str(part or b"", "utf-8", "replace") for part in (late.stdout, late.stderr))
    return [line for line in out.splitlines() if line.startswith("{")], err[-3000:]


async def all_references(url: str) -> dict[tuple[str, int], set[bytes]]:
    wanted = [(TWO, 24000), *((ONE, rate) for rate in (8000, 16000, 24000, 48000))]
    return {(text, rate): await reference(url, text, rate) for text, rate in wanted}


async def reference(url: str, text: str, rate: int) -> set[bytes]:
    """What the native wire makes of a text: taken whole, or with a flush behind each sentence, as clients send it."""
    spoken = set()
    async with talking(url) as talk:
        for context, flushes in (("whole", False), ("flushed", True)):
            await talk.say("start", context, codec="pcm_s16le", sample_rate=rate, lead_ms=30_000)
            for sentence in text.replace(". ", ". \0").split("\0"):
                await talk.say("text", context, text=sentence)
                if flushes:
                    await talk.say("flush", context)
            await talk.say("end", context)
            await talk.until("done", context)
            spoken.add(b"".join(payload for *_, payload in talk.heard[context].audio))
    return spoken


def audio(turn: dict[str, Any]) -> bytes:
    return base64.b64decode(turn["audio"])


def told_of(house: House, plan: dict[str, Any]) -> dict[str, Any]:
    told = house.told.get(json.dumps(plan))
    assert told is not None, house.complaints
    assert told["errors"] == []
    return told


def check_words(turn: dict[str, Any], text: str) -> None:
    words = [(word.strip(), start) for word, start in turn["words"]]
    assert " ".join(word for word, _ in words).split() == text.split()
    assert all(sooner <= later for (_, sooner), (_, later) in itertools.pairwise(words))


def name(plan: dict[str, Any]) -> str:
    kind = "barge-in" if "barge_in" in plan else "turns"
    parts = (plan.get("service") or plan["plugin"], kind, plan.get("mode"), plan.get("rate"))
    extra = (("mid-text" if plan.get("mid_text") else None), ("idle" if plan.get("idle") else None))
    return " ".join(str(part) for part in (*parts, *extra) if part)


@pytest.mark.parametrize("plan", [plan for each in PIPECAT for plan in each if "barge_in" not in plan], ids=name)
@pytest.mark.timeout(300)
def test_pipecat_hears_every_turn_whole(house: House, plan: dict[str, Any]):
    told = told_of(house, plan)
    rate = plan.get("rate", 24000)

    for turn, text in zip(told["turns"], plan["texts"], strict=True):
        assert turn["stopped"]
        if plan["service"] == "openai":
            assert turn["rates"] == [24000]  # whatever the pipeline has
            assert len(audio(turn)) > 20_000 * len(text.split("."))
        else:
            assert turn["rates"] == [rate]
            assert audio(turn) in house.references[text, rate]
            check_words(turn, text)
    assert told["usable"]


@pytest.mark.parametrize("plan", [plan for each in PIPECAT for plan in each if "barge_in" in plan], ids=name)
@pytest.mark.timeout(300)
def test_nothing_of_an_interrupted_turn_reaches_pipecats_next_one(house: House, plan: dict[str, Any]):
    told = told_of(house, plan)
    first, second = told["turns"]

    assert len(audio(first)) > 0
    if plan["service"] != "openai":  # a body is not paced: all of it had come
        assert len(audio(first)) < 10 * 48_000
    assert second["stopped"]
    assert audio(second) in house.references[ONE, 24000]
    assert told["usable"]


@pytest.mark.parametrize("plan", [plan for each in LIVEKIT for plan in each if "barge_in" not in plan], ids=name)
@pytest.mark.timeout(300)
def test_livekit_hears_every_turn_whole(house: House, plan: dict[str, Any]):
    told = told_of(house, plan)
    first, second = told["turns"]

    if plan["plugin"] in ("elevenlabs_mp3", "openai", "openai_raw"):  # decoded, or a request for each sentence
        assert [len(audio(turn)) / 2 / turn["rates"][0] for turn in told["turns"]] == [
            pytest.approx(4.0, abs=0.3),
            pytest.approx(1.4, abs=0.1),
        ]
    else:
        assert audio(first) in house.references[TWO, 24000]
        assert audio(second) in house.references[ONE, 24000]
    if plan["plugin"] in ("elevenlabs", "elevenlabs_mp3", "cartesia"):
        check_words(first, TWO)
        check_words(second, ONE)
    if plan["plugin"] in ("elevenlabs", "elevenlabs_mp3", "cartesia", "deepgram"):
        assert [each["reused"] for each in told["metrics"]] == [False, True]


@pytest.mark.parametrize("plan", [plan for each in LIVEKIT for plan in each if "barge_in" in plan], ids=name)
@pytest.mark.timeout(300)
def test_nothing_of_an_interrupted_turn_reaches_livekits_next_one(house: House, plan: dict[str, Any]):
    first, second = told_of(house, plan)["turns"]

    assert first["interrupted"]
    if plan["plugin"] in ("elevenlabs_mp3", "openai", "openai_raw"):
        assert len(audio(second)) / 2 / second["rates"][0] == pytest.approx(1.4, abs=0.1)
    else:
        assert audio(second) in house.references[ONE, 24000]


@pytest.mark.parametrize("way", SDKS)
@pytest.mark.timeout(300)
def test_an_official_kit_hears_all_of_it_and_its_end(house: House, way: str):
    told = house.told.get(way)
    assert told is not None, house.complaints
    ends = {
        "openai": "audio/pcm",
        "openai_events": "speech.audio.done",
        "cartesia": "done",
        "cartesia_async": "done",
        "deepgram": "Flushed",
        "deepgram_clear": "Flushed",
        "elevenlabs": "closed",
        "wyoming": "synthesize-stopped",
    }

    assert (told["error"], told["end"]) == (None, ends[way])
    assert audio(told) in house.references[TWO, 24000]


@pytest.mark.timeout(120)
def test_pipecat_lives_through_an_overload_and_speaks_when_it_is_over():
    plan = {"service": "elevenlabs", "texts": [ONE] * 7, "idle": 0.5}
    with running_server("--max-utterances", "1", "--min-utterances", "1") as url:
        lines, complaints = asyncio.run(hogged(url, plan, refusals=4))
        expected = asyncio.run(reference(url, ONE, 24000))
    (told,) = map(json.loads, lines)
    heard = [audio(turn) for turn in told["turns"]]

    assert heard[:4] == [bytes(1920)] * 4, complaints  # a little silence, or pipecat would give up after the third
    assert heard[-1] in expected
    assert told["usable"]


async def hogged(url: str, plan: dict[str, Any], refusals: int) -> tuple[list[str], str]:
    """Runs a plan while somebody else has the only place, until so many turns of it have been refused."""
    async with talking(url) as talk:
        await talk.say("text", "hog", text=LONG * 10)
        await talk.until_audio("hog")
        listening = asyncio.create_task(talk.until_closed())
        running = asyncio.create_task(asyncio.to_thread(ran, ["pipecat_bot.py", url, json.dumps(plan)], {**os.environ}))
        async with httpx.AsyncClient() as client:
            while refused((await client.get(f"{url}/metrics")).text) < refusals:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await talk.say("cancel", "hog")
        told = await running
        listening.cancel()
        return told


def refused(metrics: str) -> float:
    return sum(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith("voxgate_refusals_total{"))

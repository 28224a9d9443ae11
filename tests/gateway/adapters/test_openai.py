"""OpenAI's speech over HTTP, asked of a real server."""

import asyncio
import base64
import json
import subprocess
import time
from typing import Any

import httpx
import numpy as np
import pytest

from running import eventually, running_server
from voxgate.codecs.unpacking import unpacker

SENTENCE = "Hello there, this is a test. And here is a second sentence!"


def ask(url: str, **asked: Any) -> httpx.Response:
    headers = {"Authorization": "Bearer k"}
    return httpx.post(
        f"{url}/v1/audio/speech", json={"model": "tts-1", "voice": "alloy", **asked}, headers=headers, timeout=30
    )


def decoded(codec: str, body: bytes, rate: int = 24000) -> np.ndarray:
    if codec == "flac":
        command = ["flac", "--decode", "--silent", "--force-raw-format", "--endian=little", "--sign=signed", "-"]
        return np.frombuffer(subprocess.run(command, input=body, capture_output=True, check=True).stdout, np.int16)
    unpack = unpacker(codec, rate)
    return np.concatenate([unpack.push(body), unpack.finish()])


def active_streams(url: str) -> float:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("voxgate_streams_active "))


@pytest.mark.parametrize(
    ("format", "codec", "media_type"),
    [
        ("mp3", "mp3", "audio/mpeg"),
        ("opus", "ogg_opus", "audio/ogg; codecs=opus"),
        ("flac", "flac", "audio/flac"),
        ("wav", "wav", "audio/wav"),
        ("pcm", "pcm_s16le", "audio/pcm"),
    ],
)
def test_every_format_is_the_same_speech(server: str, format: str, codec: str, media_type: str):
    plain = np.frombuffer(ask(server, input=SENTENCE, response_format="pcm").content, np.int16)
    answer = ask(server, input=SENTENCE, response_format=format)
    pcm = decoded(codec, answer.content)

    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert answer.headers["x-accel-buffering"] == "no"
    assert len(plain) > 2.5 * 24000
    assert abs(len(pcm) - len(plain)) < 3 * 1152
    assert np.abs(pcm).max() == pytest.approx(np.abs(plain).max(), rel=0.3)


def test_mp3_is_what_is_sent_where_nothing_is_asked_for(server: str):
    assert ask(server, input="Hello.").headers["content-type"] == "audio/mpeg"


def test_events_carry_the_body_and_say_that_it_is_whole(server: str):
    plain = ask(server, input=SENTENCE, response_format="pcm").content
    answer = ask(server, input=SENTENCE, response_format="pcm", stream_format="sse")
    events = [json.loads(line.removeprefix("data: ")) for line in answer.text.split("\n\n") if line]

    assert answer.headers["content-type"] == "text/event-stream"
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(event["audio"]) for event in events[:-1]) == plain
    assert events[-1]["type"] == "speech.audio.done"
    assert events[-1]["usage"]["total_tokens"] == events[-1]["usage"]["input_tokens"] + round(
        len(plain) / 2 / 1200 + 0.5
    )


def test_speed_shortens(server: str):
    slow, fast = (len(ask(server, input=SENTENCE, response_format="pcm", speed=speed).content) for speed in (1, 2))

    assert fast < 0.7 * slow


@pytest.mark.parametrize("voice", ["alloy", {"id": "verse"}, "heart", "21m00Tcm4TlvDq8ikWAM", None])
def test_whatever_the_voice_is_called_somebody_speaks(server: str, voice: object):
    assert ask(server, input="Hello.", voice=voice, response_format="pcm").status_code == 200


def test_nothing_to_speak_is_an_empty_file_and_no_fault(server: str):
    answers = {format: ask(server, input=" … 🙂", response_format=format) for format in ("pcm", "wav", "opus")}

    assert {answer.status_code for answer in answers.values()} == {200}
    assert answers["pcm"].content == b""
    assert len(decoded("wav", answers["wav"].content)) == 0


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"input": ""},
        {"input": 7},
        {"input": "Hello.", "response_format": "aac"},
        {"input": "Hello.", "speed": 9},
        {"input": "Hello.", "stream_format": "telepathy"},
        {"input": "语音" * 20},
        {"input": "a " * 15_000},
    ],
)
def test_what_cannot_be_met_is_told_as_openai_tells_it(server: str, asked: dict[str, Any]):
    answer = ask(server, **asked)

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.json()["error"]["message"]


def test_a_body_that_is_no_json_or_too_long_is_refused(server: str):
    url = f"{server}/v1/audio/speech"

    assert httpx.post(url, content=b"\xff{").status_code == 400
    assert httpx.post(url, content=b"[" * 100_000).status_code == 400
    assert httpx.post(url, content=b"x" * 200_000).status_code == 413


def test_models_and_voices_are_listed(server: str):
    models = httpx.get(f"{server}/v1/models").json()
    voices = httpx.get(f"{server}/v1/audio/voices").json()["voices"]

    assert "tts-1" in [model["id"] for model in models["data"]]
    assert {"id": "heart", "name": "heart"} in voices
    assert {"id": "alloy", "name": "alloy"} in voices


async def test_a_client_that_hangs_up_is_not_spoken_to_any_more(server: str):
    text = "This sentence goes on and on until somebody has had enough of it. " * 100
    async with httpx.AsyncClient(timeout=30) as client:
        asked = {"input": text, "response_format": "pcm"}
        async with client.stream("POST", f"{server}/v1/audio/speech", json=asked) as answer:
            body = answer.aiter_raw()
            await anext(body)
            assert await asyncio.to_thread(active_streams, server) == 1
    await eventually("the stream has ended", lambda: active_streams(server) == 0)


async def test_a_body_that_nobody_reads_is_not_computed_on(tmp_path):
    text = "This sentence goes on and on until somebody has had enough of it. " * 100
    with running_server("--workers", "1", "--stall-s", "2") as url:
        reader, writer = await asyncio.open_connection(
            url.split("//")[1].split(":")[0], int(url.rpartition(":")[2]), limit=1024
        )
        body = json.dumps({"input": text, "response_format": "pcm"}).encode()
        writer.write(b"POST /v1/audio/speech HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await reader.readuntil(b"\r\n\r\n")
        began = time.monotonic()
        await eventually("the stalled body is cut", lambda: active_streams(url) == 0)
        whole = await asyncio.wait_for(_rest(reader), 10)

        assert time.monotonic() - began > 1.5
        assert not whole.endswith(b"0\r\n\r\n")
        writer.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    parts = []
    try:
        while part := await reader.read(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def test_keys_are_asked_for_and_a_full_server_says_when_to_come_back():
    with running_server(
        "--keys", "k", "--max-connections", "1", "--voice-names", "alloy=heart", "--workers", "1"
    ) as url:
        refused = httpx.post(f"{url}/v1/audio/speech", json={"input": "Hello."})
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
        assert httpx.get(f"{url}/v1/models").status_code == 401

        asked = {"input": "This sentence goes on and on. " * 200, "response_format": "pcm"}
        with httpx.stream(
            "POST", f"{url}/v1/audio/speech", json=asked, headers={"Authorization": "Bearer k"}
        ) as answer:
            body = answer.iter_raw()
            next(body)
            full = ask(url, input="Hello.")
        assert (full.status_code, full.headers["retry-after"]) == (503, "2")
        assert full.json()["error"]["type"] == "server_error"

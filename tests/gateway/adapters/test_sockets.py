"""What the clients of each wire say, as recorded, and what they must be answered (tests/vectors/wires)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from foreign import Foreign, audio_of, sound
from running import running_server
from tree import ROOT
from voxgate.gateway.adapters.sockets import dialect_for
from voxgate.gateway.adapters.window import BadRequest
from voxgate.gateway.dialect import Close

WIRES = ROOT / "tests" / "vectors" / "wires"
BYTES_PER_SECOND = 48_000


def agrees(said: Any, expected: Any) -> bool:
    """Whether all that is expected is there; more may be."""
    if isinstance(expected, dict):
        return isinstance(said, dict) and all(key in said and agrees(said[key], expected[key]) for key in expected)
    return said == expected


def check(said: list[Any], expected: list[str]) -> None:
    rest = list(said)
    for line in expected:
        if line.startswith("{"):
            assert rest, f"nothing comes, but {line}"
            assert agrees(rest[0], json.loads(line)), f"{rest[0]} comes, but {line}"
            rest.pop(0)
        elif line.startswith("CLOSE"):
            assert rest.pop(0) == Close(int(line.split()[1]))
        else:
            heard = next((i for i, message in enumerate(rest) if audio_of(message) is None), len(rest))
            assert len(sound(rest[:heard])) / BYTES_PER_SECOND == pytest.approx(float(line), abs=0.021)
            del rest[:heard]
    assert rest == []


@pytest.mark.parametrize("vector", sorted(WIRES.glob("*.txt")), ids=lambda path: path.stem)
def test_a_client_is_answered_as_it_must_be(vector: Path):
    wire: Foreign | None = None
    expected: list[str] = []
    for line in [*vector.read_text().splitlines(), "~"]:
        match line.partition(" ")[::2]:
            case ("CONNECT", url):
                wire = Foreign(url)
            case ("<", what):
                expected.append(what)
                continue
            case (kind, rest):
                assert wire is not None
                if expected:
                    check(wire.take(), expected)
                    expected = []
                if kind == ">":
                    wire.hear(json.loads(rest))
                else:
                    assert wire.take() == []
                    _ = wire.listen(float(rest)) if rest else wire.finish()


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/text-to-speech/v/multi-stream-input", {"output_format": "pcm_11025"}),
        ("/v1/text-to-speech/v/stream-input", {"output_format": "telepathy"}),
        ("/v1/text-to-speech/v/stream-input", {"output_format": "ulaw_16000"}),
        ("/v1/speak", {"encoding": "mp3"}),
        ("/v1/speak", {"encoding": "mulaw", "sample_rate": "16000"}),
        ("/v1/speak", {"sample_rate": "a lot"}),
    ],
)
def test_a_format_there_is_not_is_refused_before_the_upgrade(path: str, query: dict[str, str]):
    with pytest.raises(BadRequest):
        dialect_for(path, query, lambda name: None)


def test_other_paths_are_nobodys():
    assert dialect_for("/v1/text-to-speech/v/else", {}, lambda name: None) is None


async def refused(url: str, **options: Any) -> tuple[int, dict[str, str]]:
    with pytest.raises(InvalidStatus) as problem:
        async with connect(url, **options):
            pass
    response = problem.value.response
    return response.status_code, {name.lower(): value for name, value in response.headers.raw_items()}


async def test_keys_and_places_are_asked_for_in_the_handshake():
    with running_server("--keys", "k1", "--max-connections", "1", "--workers", "1") as url:
        ws = url.replace("http", "ws")
        elevenlabs = f"{ws}/v1/text-to-speech/v/stream-input?output_format=pcm_24000"
        status, headers = await refused(f"{ws}/v1/speak", additional_headers={"Authorization": "Token k2"})
        assert (status, headers["dg-error"]) == (401, "this key is not known here")
        assert (await refused(f"{ws}/tts/websocket"))[0] == 401
        assert (await refused(f"{ws}/tts/websocket?api_key=k1", origin="http://elsewhere.example"))[0] == 403
        assert (await refused(f"{elevenlabs}&xi-api-key=k2"))[0] == 401
        assert (await refused(f"{ws}/v1/nothing?api_key=k1"))[0] == 404

        async with connect(f"{ws}/v1/speak", subprotocols=["token", "k1"]) as socket:  # pyright: ignore[reportArgumentType]
            assert socket.subprotocol == "token"
            status, headers = await refused(f"{ws}/tts/websocket?api_key=k1")
            assert (status, headers["retry-after"]) == (503, "2")
        async with connect(elevenlabs) as socket:  # a browser: the key comes in the first message
            await socket.send(json.dumps({"text": " ", "xi-api-key": "k1"}))
            await socket.send(json.dumps({"text": "Hello."}))
            await socket.send(json.dumps({"text": ""}))
            said = [json.loads(message) async for message in socket]
            assert len(sound(said)) > 10_000
            assert said[-1] == {"audio": None, "isFinal": True}
        async with connect(elevenlabs) as socket:
            await socket.send(json.dumps({"text": " ", "xi-api-key": "k2"}))
            error = json.loads(await asyncio.wait_for(socket.recv(), 10))
            with pytest.raises(ConnectionClosed):
                await socket.recv()
            assert (error["error"], socket.close_code) == ("authentication_required", 1008)

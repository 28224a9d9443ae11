"""ElevenLabs over HTTP: `/v1/text-to-speech/{voice}`, `/stream`, `/stream/with-timestamps`, and its list of voices."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from ...codecs.packetizer import Format
from ...synth.engine import Voice
from .. import wire
from ..dialect import Spoken
from . import alignment
from .elevenlabs import start_of, with_speed
from .exchange import Raw, Utterance
from .window import Window


class _Request(msgspec.Struct, frozen=True):
    text: Annotated[str, msgspec.Meta(min_length=1)]
    voice_settings: Any = None


class ElevenLabsHttp:
    """The routes, over the window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        path = "/v1/text-to-speech/{voice}"
        self.routes = [
            Route(path, self._speech, methods=["POST"]),
            Route(f"{path}/stream", self._speech, methods=["POST"]),
            Route(f"{path}/stream/with-timestamps", self._timed, methods=["POST"]),
        ]

    async def _speech(self, request: Request) -> ASGIApp:
        return await self._speak(request, timed=False)

    async def _timed(self, request: Request) -> ASGIApp:
        return await self._speak(request, timed=True)

    async def _speak(self, request: Request, *, timed: bool) -> ASGIApp:
        voice, query = request.path_params["voice"], request.query_params

        def read(body: bytes) -> Utterance:
            return self._read(voice, query, body, timed)

        return await self._window.speak(request, fault, read)

    def _read(self, voice: str, query: Mapping[str, str], body: bytes, timed: bool) -> Utterance:
        asked = msgspec.json.decode(body, type=_Request)
        start = with_speed(start_of(voice, query, self._window.voice), asked.voice_settings)
        start = msgspec.structs.replace(start, timestamps=timed)
        return Utterance("elevenlabs", start, asked.text, Lines() if timed else Raw())


class Lines:
    """One JSON object a line: audio, and the characters it speaks with the first audio of a segment."""

    def __init__(self) -> None:
        self._told: list[dict[str, Any]] = []

    def media_type(self, form: Format) -> str:
        return "application/json"

    def spoken(self, said: Spoken) -> bytes:
        self._told.append(alignment.seconds(said))
        return b""

    def audio(self, payload: bytes) -> bytes:
        return self._line(payload)

    def done(self, done: wire.Done) -> bytes:
        return b"".join(self._line(b"") for _ in tuple(self._told))

    def _line(self, payload: bytes) -> bytes:
        aligned = self._told.pop(0) if self._told else None
        line = {"audio_base64": payload, "alignment": aligned, "normalized_alignment": aligned}
        return msgspec.json.encode(line) + b"\n"


def voices(listed: tuple[Voice, ...]) -> dict[str, list[dict[str, Any]]]:
    """`GET /v1/voices` for those who ask with an `xi-api-key`."""
    return {
        "voices": [
            {
                "voice_id": voice.id,
                "name": voice.id,
                "category": "premade",
                "labels": {"language": voice.language},
                "description": f"{voice.engine}, {voice.tier}",
            }
            for voice in listed
        ]
    }


def fault(status: int, code: str, message: str) -> bytes:
    """An error as ElevenLabs' clients read it."""
    return msgspec.json.encode({"detail": {"status": code, "message": message}})

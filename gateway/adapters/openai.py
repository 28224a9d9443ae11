"""OpenAI's `POST /v1/audio/speech`, raw and as server-sent events, and the lists that its clients ask for."""

import base64
import math
from typing import Annotated, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ...codecs.packetizer import Format
from .. import wire
from ..dialect import Spoken
from .exchange import NAME, Raw, Utterance
from .names import OPENAI
from .window import BadRequest, Window

RATE: wire.Rate = 24000  # of `pcm`, which has no header that could say so
CODECS = {"mp3": "mp3", "opus": "ogg_opus", "flac": "flac", "wav": "wav", "pcm": "pcm_s16le"}
MODELS = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
SLOWEST, FASTEST = 0.5, 2.0  # what voices here can do of the 0.25 to 4 that may be asked for

_TYPES = {400: "invalid_request_error", 401: "invalid_request_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class _Voice(msgspec.Struct, frozen=True):
    id: str


class _Request(msgspec.Struct, frozen=True):
    input: Annotated[str, msgspec.Meta(min_length=1)]
    model: str = "tts-1"
    voice: str | _Voice | None = None
    response_format: str = "mp3"
    speed: Annotated[float, msgspec.Meta(ge=0.25, le=4.0)] = 1.0
    stream_format: Literal["audio", "sse"] | None = None


class OpenAi:
    """The routes, over the window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self.routes = [
            Route("/v1/audio/speech", self._speech, methods=["POST"]),
            Route("/v1/audio/voices", self._voices),
            Route("/v1/models", self._models),
            Route("/v1/audio/models", self._models),
        ]

    async def _speech(self, request: Request) -> ASGIApp:
        return await self._window.speak(request, fault, self._read)

    def _read(self, body: bytes) -> Utterance:
        asked = msgspec.json.decode(body, type=_Request)
        if asked.response_format not in CODECS:
            raise BadRequest(f"response_format {asked.response_format!r} is not one of {', '.join(CODECS)}")
        voice = asked.voice.id if isinstance(asked.voice, _Voice) else asked.voice
        start = wire.Start(
            NAME,
            voice=self._window.voice(voice),
            codec=CODECS[asked.response_format],
            sample_rate=RATE,
            speed=min(max(asked.speed, SLOWEST), FASTEST),
        )
        shape = Events(len(asked.input)) if asked.stream_format == "sse" else Raw()
        return Utterance("openai", start, asked.input, shape)

    async def _voices(self, request: Request) -> Response:
        ids = dict.fromkeys([*(voice.id for voice in self._window.voices), *self._window.names.mapped, *OPENAI])
        return self._window.guarded(request, fault, {"voices": [{"id": id, "name": id} for id in ids]})

    async def _models(self, request: Request) -> Response:
        models = [{"id": id, "object": "model", "created": 0, "owned_by": "voxgate"} for id in MODELS]
        return self._window.guarded(request, fault, {"object": "list", "data": models})


class Events:
    """Server-sent events: audio in base64, and a count at the end that stands where its clients read tokens."""

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._rate = RATE

    def media_type(self, form: Format) -> str:
        self._rate = form.sample_rate
        return "text/event-stream"

    def audio(self, payload: bytes) -> bytes:
        return b'data: {"type":"speech.audio.delta","audio":"' + base64.b64encode(payload) + b'"}\n\n'

    def spoken(self, said: Spoken) -> bytes:
        return b""

    def done(self, done: wire.Done) -> bytes:
        read, said = math.ceil(self._characters / 4), math.ceil(done.samples / self._rate * 20)
        usage = {"input_tokens": read, "output_tokens": said, "total_tokens": read + said}
        return b"data: " + msgspec.json.encode({"type": "speech.audio.done", "usage": usage}) + b"\n\n"


def fault(status: int, code: str, message: str) -> bytes:
    """An error as OpenAI's clients read it."""
    type = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return msgspec.json.encode(
        {"error": {"message": message, "type": type, "code": _CODES.get(status, code), "param": None}}
    )

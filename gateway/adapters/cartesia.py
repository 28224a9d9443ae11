"""Cartesia's `/tts/websocket` and `POST /tts/bytes`.

Every message carries all settings, and the first one of a context counts. Every answer carries `context_id`, and
`done` is true in none but the last: clients tell messages apart by which fields they have.
"""

import logging
import math
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from ...codecs.packetizer import CODECS, SAMPLE_RATES, Format, Packet
from .. import wire
from ..context import Context
from ..dialect import Call, Event, Item, Reply, Spoken
from .exchange import NAME, STATUS, Raw, Utterance
from .names import Resolve
from .pieces import WAIT_MS, pieces, silence, text_of
from .turns import Turn, Turns
from .window import BadRequest, Window

logger = logging.getLogger("voxgate.adapters")

_CODECS = {"pcm_s16le": "pcm_s16le", "pcm_f32le": "pcm_s16le", "pcm_mulaw": "mulaw", "pcm_alaw": "alaw"}
_CONTAINERS = {"raw": None, "wav": "wav", "mp3": "mp3"}


class _OutputFormat(msgspec.Struct, frozen=True):
    container: str = "raw"
    encoding: str = "pcm_s16le"
    sample_rate: int = 44100


class _Generation(msgspec.Struct, frozen=True):
    speed: float | None = None


class _Message(msgspec.Struct, frozen=True):
    context_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None
    transcript: str = ""
    more: bool = msgspec.field(name="continue", default=False)
    cancel: bool = False
    flush: bool = False
    voice: Any = None
    output_format: _OutputFormat = _OutputFormat()
    add_timestamps: bool | None = False
    max_buffer_delay_ms: float | None = None
    speed: Any = None
    generation_config: _Generation | None = None


@dataclass(slots=True)
class _Turn(Turn):
    floats: bool = False
    codec: str = "pcm_s16le"
    rate: int = 24000
    flushes: deque[int] = field(default_factory=deque)  # of those asked for, or 0 for one of ours
    flush_id: int = 0


class Cartesia:
    """One connection's wire."""

    protocol = "cartesia"
    codecs = CODECS

    def __init__(self, resolve: Resolve, query: Mapping[str, str] | None = None) -> None:
        self.later: list[Call] = []
        self._resolve = resolve
        self._turns: Turns[_Turn] = Turns()

    # --- what it hears ---------------------------------------------------------------------------------------------

    def hear(self, message: str) -> Iterable[Call]:
        said = _decoded(message)
        id = said.context_id or str(uuid.uuid4())
        turn = self._turns.of_id(id)
        ends = said.cancel or not said.more
        if self._turns.is_dead(id, ends=ends):
            return ()
        if said.cancel:
            return () if turn is None else self._cancel(turn)
        if turn is not None and turn.ended:
            return (Reply(_error(id, "context_closed", f"context {id!r} has ended", 400)),)
        return self._take(id, turn, said)

    def _take(self, id: str, turn: _Turn | None, said: _Message) -> Iterator[Call]:
        if turn is None:
            try:
                start = _start(said, self._resolve)
            except BadRequest as problem:
                yield Reply(_error(id, "bad_message", str(problem), 400))
                return
            turn = _Turn(id, self._turns.new_name())
            turn.floats = said.output_format.encoding == "pcm_f32le"
            turn.codec, turn.rate = start.codec or "", start.sample_rate or 0
            self._turns.add(turn)
            yield msgspec.structs.replace(start, context=turn.name, timestamps=bool(said.add_timestamps))
        if said.transcript:
            yield wire.Text(turn.name, turn.text(said.transcript))
        if said.flush or (said.more and said.max_buffer_delay_ms == 0 and said.transcript.strip()):
            turn.flushed = True
            turn.flush_id += said.flush
            turn.flushes.append(turn.flush_id if said.flush else 0)
            yield wire.Flush(turn.name)
        if not said.more:
            turn.ended = True
            yield wire.End(turn.name)

    def _cancel(self, turn: _Turn) -> Iterator[Call]:
        self._turns.remove(turn)
        yield wire.Cancel(turn.name)

    # --- what it says ----------------------------------------------------------------------------------------------

    def say(self, event: Event, out: list[Item]) -> None:
        if isinstance(event, wire.Error):
            self._say_error(event, out)
            return
        turn = self._turns.of_name(getattr(event, "context", None))
        if turn is None:
            return
        match event:
            case Spoken(words=words) if words:
                table = {
                    "words": [word[0] for word in words],
                    "start": [word[1] for word in words],
                    "end": [word[2] for word in words],
                }
                out.append(_message(turn, "timestamps", word_timestamps=table))
            case wire.Flushed():
                if flush := turn.flushes.popleft():
                    out.append(_message(turn, "flush_done", flush_done=True, flush_id=flush))
            case wire.Done():
                out.append(_done(turn))
                self._turns.remove(turn)

    def audio(self, context: Context, packets: list[Packet], out: list[Item]) -> None:
        if (turn := self._turns.of_name(context.name)) is not None:
            turn.heard = True
            for piece in pieces(context.settings.form, packets):
                out.append(_message(turn, "chunk", data=_floats(piece) if turn.floats else piece, step_time=0.0))

    def _say_error(self, error: wire.Error, out: list[Item]) -> None:
        turn = self._turns.of_name(error.context) or self._turns.of_name(error.about)
        if turn is None:
            # pipecat reads the context of every message, and loses its connection over one that has none.
            logger.info("refused: %s", error.message)
            return
        out.append(_error(turn.id, error.code, error.message, STATUS.get(error.code, 500)))
        if error.context is None:
            return
        if not turn.heard:
            quiet = silence(turn.codec, turn.rate)
            out.append(_message(turn, "chunk", data=_floats(quiet) if turn.floats else quiet, step_time=0.0))
            out.append(_done(turn))
        self._turns.fail(turn)


def _decoded(message: str) -> _Message:
    try:
        return msgspec.json.decode(message, type=_Message)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as problem:
        raise wire.BadMessage(str(problem)) from None


def _start(said: _Message, resolve: Resolve) -> wire.Start:
    form = said.output_format
    codec = _CONTAINERS.get(form.container, "") or _CODECS.get(form.encoding)
    if codec is None or form.container not in _CONTAINERS:
        raise BadRequest(f"output_format: there is no {form.container}, {form.encoding} here")
    if form.sample_rate not in SAMPLE_RATES:
        raise BadRequest(f"output_format: sample_rate must be one of {', '.join(map(str, SAMPLE_RATES))}")
    if codec in ("mulaw", "alaw") and form.sample_rate != 8000:
        raise BadRequest(f"output_format: {form.encoding} has a sample_rate of 8000")
    speed = said.generation_config.speed if said.generation_config else said.speed
    return wire.Start(
        NAME,
        voice=resolve(_voice(said.voice)),
        codec=codec,
        sample_rate=cast(wire.Rate, form.sample_rate),
        speed=min(max(speed, 0.5), 2.0) if isinstance(speed, int | float) and math.isfinite(speed) else None,
        max_wait_ms=WAIT_MS,
    )


def _voice(voice: Any) -> str | None:
    """`{"mode": "id", "id": …}`, an embedding, or nothing but the id."""
    if isinstance(voice, dict):
        voice = voice.get("id")
    return voice if isinstance(voice, str) else None


def _message(turn: Turn, type: str, **fields: object) -> str:
    return text_of({"type": type, "context_id": turn.id, "done": False, "status_code": 206, **fields})


def _done(turn: Turn) -> str:
    return text_of({"type": "done", "context_id": turn.id, "done": True, "status_code": 200})


def _error(id: str, code: str, message: str, status: int) -> str:
    return text_of(
        {
            "type": "error",
            "context_id": id,
            "done": False,
            "status_code": status,
            "error_code": code,
            "title": code,
            "message": message,
            "error": message,
        }
    )


def _floats(payload: bytes) -> bytes:
    return (np.frombuffer(payload, "<i2").astype("<f4") / 32768).tobytes()


# --- over HTTP -----------------------------------------------------------------------------------------------------


class CartesiaHttp:
    """The routes, over the window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self.routes = [Route("/tts/bytes", self._bytes, methods=["POST"])]

    async def _bytes(self, request: Request) -> ASGIApp:
        return await self._window.speak(request, fault, self._read)

    def _read(self, body: bytes) -> Utterance:
        said = msgspec.json.decode(body, type=_Message)
        start = _start(said, self._window.voice)
        floats = said.output_format.container == "raw" and said.output_format.encoding == "pcm_f32le"
        return Utterance("cartesia", start, said.transcript, _Floats() if floats else Raw())


class _Floats(Raw):
    def media_type(self, form: Format) -> str:
        return "audio/pcm"

    def audio(self, payload: bytes) -> bytes:
        return _floats(payload)


def fault(status: int, code: str, message: str) -> bytes:
    """An error as Cartesia's clients read it."""
    return msgspec.json.encode({"error_code": code, "title": code, "message": message, "status_code": status})

"""Deepgram's `/v1/speak` and `/v2/speak` (Flux): binary audio without any tag, one turn after the other.

A turn lasts from the first text to its `Flush`. Nothing tells a client whose audio it gets, so the next turn waits
until the last one has been sent whole, and what was cleared is never heard of again.
"""

import math
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from ...codecs.packetizer import CODECS, SAMPLE_RATES, Packet
from .. import errors, wire
from ..context import Context
from ..dialect import Call, Close, Event, Item, Reply
from .exchange import NAME, Raw, Utterance
from .names import Resolve
from .pieces import WAIT_MS, pieces, silence, text_of
from .turns import Turn
from .window import BadRequest, Window

WAITING_CHARS = 20_000  # of turns that wait for the one before them
WAITING = 256
_STREAMED = {"linear16": "pcm_s16le", "mulaw": "mulaw", "alaw": "alaw"}
_FILES = {**_STREAMED, "mp3": "mp3", "opus": "ogg_opus", "flac": "flac"}
_RATES = {"mp3": 22050, "opus": 48000, "mulaw": 8000, "alaw": 8000}


class _Message(msgspec.Struct, frozen=True):
    type: str
    text: str = ""
    speed: float | None = None


class _Body(msgspec.Struct, frozen=True):
    text: str


@dataclass(slots=True)
class _Turn(Turn):
    calls: list[Call] = field(default_factory=list)  # what waits for the turn before
    characters: int = 0
    failed: bool = False


class Deepgram:
    """One connection's wire. `flux`: it is the second version."""

    protocol = "deepgram"
    codecs = CODECS

    def __init__(self, query: Mapping[str, str], resolve: Resolve, *, flux: bool = False) -> None:
        """Raises `BadRequest`."""
        self.later: list[Call] = []
        self._start = start_of(query, resolve, _STREAMED)
        self._model = query.get("model", "")
        self._flux = flux
        self._turns: deque[_Turn] = deque()  # the first one is spoken, the others wait
        self._count = 0
        self._sequence = 0
        self._audio_ms = self._characters = 0  # of all turns

    # --- what it hears ---------------------------------------------------------------------------------------------

    def hear(self, message: str) -> Iterable[Call]:
        try:
            said = msgspec.json.decode(message, type=_Message)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as problem:
            raise wire.BadMessage(str(problem)) from None
        match said.type:
            case "Speak":
                return self._speak(said.text)
            case "Flush":
                return self._flush()
            case "Clear" | "Interrupt":
                return self._clear()
            case "Close":
                turns = self._drop()
                return (*turns, *self._farewell(), Reply(Close(errors.CLOSE_NORMAL)))
            case "Configure":
                return self._configure(said.speed)
            case "KeepAlive":
                return ()
            case unknown:
                return (Reply(_warning("UNKNOWN_MESSAGE", f"there is no message {unknown[:40]!r}")),)

    def _speak(self, text: str) -> Iterator[Call]:
        if not text:
            return
        if sum(turn.characters for turn in list(self._turns)[1:]) + len(text) > WAITING_CHARS:
            yield Reply(_warning("TEXT_LENGTH", f"more than {WAITING_CHARS} characters wait: these were not taken"))
            return
        turn, opened = self._open_turn()
        yield from opened
        if not turn.failed:
            turn.characters += len(text)
            yield from self._ask(turn, wire.Text(turn.name, turn.text(text)))

    def _flush(self) -> Iterator[Call]:
        if len(self._turns) >= WAITING:
            yield Reply(_warning("EXCEEDED_FLUSHES", "too many flushes wait: this one was not taken"))
            return
        turn, opened = self._open_turn()
        yield from opened
        turn.ended = True
        if turn.failed:
            self._turns.popleft()
            yield from (Reply(message) for message in self._ending(turn, 0))
        else:
            yield from self._ask(turn, wire.End(turn.name))

    def _open_turn(self) -> tuple[_Turn, list[Call]]:
        """The turn that takes text, and what opens it."""
        if self._turns and not self._turns[-1].ended:
            return self._turns[-1], []
        self._count += 1
        turn = _Turn("", str(self._count))
        self._turns.append(turn)
        return turn, list(self._ask(turn, msgspec.structs.replace(self._start, context=turn.name)))

    def _ask(self, turn: _Turn, call: Call) -> Iterator[Call]:
        if turn is self._turns[0]:
            yield call
        else:
            turn.calls.append(call)

    def _clear(self) -> Iterator[Call]:
        live = [turn for turn in self._turns if turn.heard or not turn.failed]
        yield from self._drop()
        if not self._flux:
            yield Reply(text_of({"type": "Cleared", "sequence_id": self._next_sequence()}))
        elif live:
            yield Reply(text_of({"type": "SpeechInterrupted", **self._interrupted(live[0])}))

    def _drop(self) -> list[Call]:
        """Ends every turn; of those that wait the session has not heard."""
        cancelled: list[Call] = [wire.Cancel(turn.name) for turn in list(self._turns)[:1] if not turn.failed]
        self._turns.clear()
        return cancelled

    def _configure(self, speed: float | None) -> tuple[Call, ...]:
        if speed is not None and math.isfinite(speed):
            self._start = msgspec.structs.replace(self._start, speed=min(max(speed, 0.5), 2.0))
        return (Reply(text_of({"type": "ConfigureSuccess", "applied": {"speed": self._start.speed or 1.0}})),)

    # --- what it says ----------------------------------------------------------------------------------------------

    def say(self, event: Event, out: list[Item]) -> None:
        match event:
            case wire.Ready():
                out.append(self._greeting())
            case wire.Started() if self._flux:
                out.append(text_of({"type": "SpeechStarted", "speech_id": _speech_id(event.context)}))
            case wire.Done(context=name, samples=samples) if self._is_first(name):
                turn = self._turns.popleft()
                out += self._ending(turn, samples)
                self._next_turn()
            case wire.Error():
                out.append(text_of({"type": "Error", "code": event.code.upper(), "description": event.message}))
                if self._is_first(event.context):
                    self._fail(self._turns[0], out)

    def audio(self, context: Context, packets: list[Packet], out: list[Item]) -> None:
        if self._is_first(context.name):
            self._turns[0].heard = True
            out += pieces(context.settings.form, packets)

    def _is_first(self, name: str | None) -> bool:
        return bool(self._turns) and self._turns[0].name == name

    def _fail(self, turn: _Turn, out: list[Item]) -> None:
        """It stays until its flush, which is answered: what comes of it until then has nobody to speak it."""
        turn.failed = True
        if not turn.heard:
            out.append(silence(self._start.codec or "", self._start.sample_rate or 0))
        if turn.ended:
            self._turns.popleft()
            out += self._ending(turn, 0)
            self._next_turn()

    def _next_turn(self) -> None:
        if self._turns:
            turn = self._turns[0]
            self.later += turn.calls
            turn.calls = []

    def _ending(self, turn: _Turn, samples: int) -> list[str]:
        self._audio_ms += samples * 1000 // (self._start.sample_rate or 1)
        self._characters += turn.characters
        if not self._flux:
            return [text_of({"type": "Flushed", "sequence_id": self._next_sequence()})]
        id = _speech_id(turn.name)
        return [
            text_of({"type": "Flushed", "speech_id": id}),
            text_of({"type": "SpeechMetadata", **self._metadata(turn, samples)}),
        ]

    def _metadata(self, turn: _Turn, samples: int) -> dict[str, Any]:
        return {
            "speech_id": _speech_id(turn.name),
            "audio_duration_ms": samples * 1000 // (self._start.sample_rate or 1),
            "input_character_count": turn.characters,
            "billable_character_count": turn.characters,
            "controls_applied": {"pauses_applied": 0, "pronunciations_applied": 0},
        }

    def _interrupted(self, turn: _Turn) -> dict[str, Any]:
        return {"audio_played_ms": self._audio_ms, "metadata": self._metadata(turn, 0)}

    def _greeting(self) -> str:
        told = {"request_id": str(uuid.uuid4()), "model_name": self._model, "model_version": "voxgate"}
        if self._flux:
            return text_of({"type": "Connected", **told, "model_uuids": [str(uuid.uuid4())]})
        return text_of({"type": "Metadata", **told, "model_uuid": str(uuid.uuid4())})

    def _farewell(self) -> list[Call]:
        if not self._flux:
            return []
        totals = {
            "total_audio_duration_ms": self._audio_ms,
            "total_input_character_count": self._characters,
            "total_billable_character_count": self._characters,
        }
        return [Reply(text_of({"type": "SessionMetadata", **totals}))]

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence - 1


def _speech_id(name: str) -> str:
    return f"dg_sp_{int(name):012x}"


def _warning(code: str, message: str) -> str:
    return text_of({"type": "Warning", "code": code, "description": message, "warn_msg": message, "warn_code": code})


def start_of(query: Mapping[str, str], resolve: Resolve, codecs: Mapping[str, str]) -> wire.Start:
    """What a turn begins with. Raises `BadRequest` for a format there is not."""
    encoding = query.get("encoding") or next(iter(codecs))
    rate = query.get("sample_rate") or str(_RATES.get(encoding, 24000))
    if encoding not in codecs:
        raise BadRequest(f"encoding {encoding!r} is not one of {', '.join(codecs)}")
    if not rate.isdecimal() or int(rate) not in SAMPLE_RATES:
        raise BadRequest(f"sample_rate {rate!r} is not one of {', '.join(map(str, SAMPLE_RATES))}")
    if encoding in ("mulaw", "alaw") and int(rate) != 8000:
        raise BadRequest(f"encoding {encoding} has a sample_rate of 8000")
    return wire.Start(
        NAME,
        voice=resolve(query.get("model")),
        codec=codecs[encoding],
        sample_rate=cast(wire.Rate, int(rate)),
        speed=_speed(query.get("speed")),
        max_wait_ms=WAIT_MS,
    )


def _speed(value: str | None) -> float | None:
    try:
        speed = float(value or "nan")
    except ValueError:
        return None
    return min(max(speed, 0.5), 2.0) if math.isfinite(speed) else None


# --- over HTTP -----------------------------------------------------------------------------------------------------


class DeepgramHttp:
    """The routes, over the window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self.routes = [
            Route("/v1/speak", self._speech, methods=["POST"]),
            Route("/v2/speak", self._speech, methods=["POST"]),
        ]

    async def _speech(self, request: Request) -> ASGIApp:
        return await self._window.speak(request, fault, self._reader(request.query_params))

    def _reader(self, query: Mapping[str, str]) -> Callable[[bytes], Utterance]:
        def read(body: bytes) -> Utterance:
            asked = msgspec.json.decode(body, type=_Body)
            wanted = {"encoding": "mp3", **query}
            codecs = dict(_FILES)
            if wanted.get("container") == "wav" or ("encoding" in query and "container" not in query):
                codecs["linear16"] = "wav"
            start = start_of(wanted, self._window.voice, codecs)
            return Utterance("deepgram", start, asked.text, Raw())

        return read


def fault(status: int, code: str, message: str) -> bytes:
    """An error as Deepgram's clients read it."""
    return msgspec.json.encode({"err_code": code.upper(), "err_msg": message, "request_id": str(uuid.uuid4())})

"""ElevenLabs' `multi-stream-input` and `stream-input`.

There is no word for a cancel. A `close_context` right behind a flush without text ends a context as its clients do
when they have said everything; any other one, and a repeated one, is a barge-in. Which clock the alignment is told in
is known by `sync_alignment`, which LiveKit sends and pipecat does not (alignment.py).
"""

import logging
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

import msgspec

from ...codecs.packetizer import CODECS, SAMPLE_RATES, Packet
from .. import errors, wire
from ..context import Context
from ..dialect import Call, Close, Event, Item, Reply, Spoken
from . import alignment
from .exchange import NAME
from .names import Resolve
from .pieces import WAIT_MS, pieces, silence, text_of
from .turns import Turn, Turns
from .window import BadRequest

logger = logging.getLogger("voxgate.adapters")

DEFAULT_FORMAT = "mp3_44100_128"
DEFAULT_CONTEXT = "default"
_CODECS = {"pcm": "pcm_s16le", "mp3": "mp3", "opus": "ogg_opus", "ulaw": "mulaw", "alaw": "alaw", "wav": "wav"}

_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Message(msgspec.Struct, frozen=True):
    text: str | None = None
    context_id: _Id | None = None
    contextId: _Id | None = None
    flush: bool | None = False
    close_context: bool | None = False
    close_socket: bool | None = False
    voice_settings: Any = None
    authorization: str | None = None
    xi_api_key: str | None = msgspec.field(name="xi-api-key", default=None)


@dataclass(slots=True)
class _Turn(Turn):
    bare_flush: bool = False  # the last message asked to speak what there is, and had no text
    alignments: deque[dict[str, Any]] = field(default_factory=deque)  # not told yet


def start_of(voice: str, query: Mapping[str, str], resolve: Resolve) -> wire.Start:
    """What a context begins with. Raises `BadRequest` for a format there is not."""
    wanted = query.get("output_format") or DEFAULT_FORMAT
    kind, _, rest = wanted.partition("_")
    rate = rest.partition("_")[0]
    codec = _CODECS.get(kind)
    if codec is None or not rate.isdecimal() or int(rate) not in SAMPLE_RATES:
        raise BadRequest(f"output_format {wanted!r} is not one there is here: {', '.join(_CODECS)} and a rate")
    if codec in ("mulaw", "alaw") and int(rate) != 8000:
        raise BadRequest(f"output_format {wanted!r}: {kind} has a rate of 8000")
    return wire.Start(
        NAME, voice=resolve(voice), codec=codec, sample_rate=cast(wire.Rate, int(rate)), timestamps=True,
        max_wait_ms=WAIT_MS,
    )  # fmt: skip


def with_speed(start: wire.Start, settings: Any) -> wire.Start:
    """`voice_settings` know a speed; whatever else they ask for is not to be had."""
    speed = settings.get("speed") if isinstance(settings, dict) else None
    if not isinstance(speed, int | float) or not math.isfinite(speed):
        return start
    return msgspec.structs.replace(start, speed=min(max(float(speed), 0.5), 2.0))


def decoded(message: str) -> Message:
    """Raises `wire.BadMessage`."""
    try:
        return msgspec.json.decode(message, type=Message)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as problem:
        raise wire.BadMessage(str(problem)) from None


class _Wire:
    """What both sockets say of audio and errors."""

    def __init__(self, start: wire.Start, query: Mapping[str, str], *, tagged: bool) -> None:
        self.turns: Turns[_Turn] = Turns()
        self.start = start
        self._absolute = query.get("sync_alignment", "").lower() == "true"
        self._tagged = tagged

    def open(self, id: str, settings: Any) -> tuple[_Turn, wire.Start]:
        turn = self.turns.add(_Turn(id, self.turns.new_name()))
        return turn, with_speed(msgspec.structs.replace(self.start, context=turn.name), settings)

    def spoken(self, said: Spoken) -> None:
        if (turn := self.turns.of_name(said.context)) is not None:
            turn.alignments.append(alignment.milliseconds(said, absolute=self._absolute))

    def audio(self, context: Context, packets: list[Packet], out: list[Item]) -> None:
        if (turn := self.turns.of_name(context.name)) is not None:
            turn.heard = True
            for piece in pieces(context.settings.form, packets):
                out.append(self._speech(turn, piece))

    def rest(self, turn: _Turn, out: list[Item]) -> None:
        """Alignments that no audio has carried."""
        while turn.alignments:
            out.append(self._speech(turn, b""))

    def final(self, turn: _Turn) -> str:
        tag = {"contextId": turn.id} if self._tagged else {"audio": None}
        return text_of({**tag, "isFinal": True})

    def quiet(self, turn: _Turn, out: list[Item]) -> None:
        assert self.start.codec is not None
        if not turn.heard and (nothing := silence(self.start.codec, self.start.sample_rate or 0)):
            out.append(self._speech(turn, nothing))

    def fault(self, error: wire.Error, turn: _Turn | None) -> str:
        tag = {"contextId": turn.id} if turn is not None and self._tagged else {}
        return text_of({"message": error.message, "error": error.code, "code": errors.CLOSE_POLICY, **tag})

    def turn_of(self, error: wire.Error) -> _Turn | None:
        return self.turns.of_name(error.context) or self.turns.of_name(error.about)

    def _speech(self, turn: _Turn, audio: bytes) -> str:
        aligned = turn.alignments.popleft() if turn.alignments else None
        tag = {"contextId": turn.id} if self._tagged else {}
        return text_of({"audio": audio, "isFinal": None, "alignment": aligned, "normalizedAlignment": aligned, **tag})


class Multi:
    """Many contexts on one socket."""

    protocol = "elevenlabs"
    codecs = CODECS

    def __init__(self, voice: str, query: Mapping[str, str], resolve: Resolve) -> None:
        """Raises `BadRequest`."""
        self.later: list[Call] = []
        self._wire = _Wire(start_of(voice, query, resolve), query, tagged=True)
        self._turns = self._wire.turns
        self._auto = query.get("auto_mode", "").lower() == "true"

    def hear(self, message: str) -> Iterable[Call]:
        said = decoded(message)
        if said.close_socket:
            return (*(wire.Cancel(turn.name) for turn in self._turns.live()), Reply(Close(errors.CLOSE_NORMAL)))
        id = said.context_id or said.contextId or DEFAULT_CONTEXT
        if self._turns.is_dead(id, ends=bool(said.close_context)):
            return ()
        return self._take(id, said)

    def _take(self, id: str, said: Message) -> Iterator[Call]:
        turn = self._turns.of_id(id)
        if said.text and (turn is None or turn.ended):
            if turn is not None:  # a new one of this name before the old one has been heard out
                self._turns.remove(turn)
                yield wire.Cancel(turn.name)
            turn, start = self._wire.open(id, said.voice_settings)
            yield start
        if turn is None:
            return  # a keepalive, or a flush for what never began
        if not turn.ended and (said.text or said.flush):
            yield from self._speak(turn, said.text or "", flush=bool(said.flush))
        if said.close_context:
            normal = turn.bare_flush and not turn.ended
            turn.ended = True
            yield wire.End(turn.name) if normal else wire.Cancel(turn.name)

    def _speak(self, turn: _Turn, text: str, *, flush: bool) -> Iterator[Call]:
        if text.strip() or turn.tail:
            yield wire.Text(turn.name, turn.text(text))
        turn.bare_flush = flush and not text
        if flush or (self._auto and text.strip()):
            turn.flushed = True
            yield wire.Flush(turn.name)

    def say(self, event: Event, out: list[Item]) -> None:
        match event:
            case Spoken():
                self._wire.spoken(event)
            case wire.Done(context=name) | wire.Cancelled(context=name):
                if (turn := self._turns.of_name(name)) is not None:
                    if isinstance(event, wire.Done):
                        self._wire.rest(turn, out)
                    out.append(self._wire.final(turn))
                    self._turns.remove(turn)
            case wire.Error():
                turn = self._wire.turn_of(event)
                out.append(self._wire.fault(event, turn))
                if turn is not None and event.context is not None:
                    self._wire.quiet(turn, out)
                    out.append(self._wire.final(turn))
                    self._turns.fail(turn)

    def audio(self, context: Context, packets: list[Packet], out: list[Item]) -> None:
        self._wire.audio(context, packets, out)


class Single:
    """One context, which is the socket: an empty text ends it, and the server closes behind its last audio."""

    protocol = "elevenlabs"
    codecs = CODECS

    def __init__(self, voice: str, query: Mapping[str, str], resolve: Resolve) -> None:
        """Raises `BadRequest`."""
        self.later: list[Call] = []
        self._wire = _Wire(start_of(voice, query, resolve), query, tagged=False)
        self._turn: _Turn | None = None
        self._auto = query.get("auto_mode", "").lower() == "true"

    def hear(self, message: str) -> Iterator[Call]:
        said = decoded(message)
        if self._turn is None:
            self._turn, start = self._wire.open(DEFAULT_CONTEXT, said.voice_settings)
            yield start
        turn = self._turn
        if turn.ended:
            return
        text = said.text or ""
        if text.strip() or (text and turn.tail):
            yield wire.Text(turn.name, turn.text(text))
        if said.flush or (self._auto and text.strip()):
            turn.flushed = True
            yield wire.Flush(turn.name)
        elif said.text == "":
            turn.ended = True
            yield wire.End(turn.name)

    def say(self, event: Event, out: list[Item]) -> None:
        match event:
            case Spoken():
                self._wire.spoken(event)
            case wire.Done(context=name) if (turn := self._wire.turns.of_name(name)) is not None:
                self._wire.rest(turn, out)
                out += [self._wire.final(turn), Close(errors.CLOSE_NORMAL)]
            case wire.Error():
                out.append(self._wire.fault(event, None))
                if event.context is not None:
                    overloaded = event.code in ("overloaded", "voice_loading", "rate_limited")
                    out.append(Close(errors.CLOSE_OVERLOADED if overloaded else errors.CLOSE_POLICY))

    def audio(self, context: Context, packets: list[Packet], out: list[Item]) -> None:
        self._wire.audio(context, packets, out)

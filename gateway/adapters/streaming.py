"""`/tts/ws`, the wire of livekit-streaming-tts and livekit-plugins-pocket: one turn at a time, nothing tagged.

Every turn begins with a `config`; what is still spoken then is stopped first. A cancelled turn has no `final`.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, cast

import msgspec

from ...codecs.packetizer import CODECS, SAMPLE_RATES, Packet
from .. import wire
from ..context import Context
from ..dialect import Call, Event, Item, Reply
from .exchange import NAME
from .names import Resolve
from .pieces import WAIT_MS, pieces, text_of
from .turns import Turn

_FORMATS = {"pcm": "pcm_s16le", "wav": "wav", "mp3": "mp3", "opus": "ogg_opus", "mulaw": "mulaw", "alaw": "alaw"}


class _Data(msgspec.Struct, frozen=True):
    text: str = ""
    sample_rate: int = 24000
    format: str = "pcm"
    binary: bool = True
    voice: str | None = None
    speed: Annotated[float, msgspec.Meta(gt=0)] | None = None


class _Message(msgspec.Struct, frozen=True):
    type: str
    data: _Data | None = None


class Streaming:
    """One connection's wire."""

    protocol = "streaming-tts"
    codecs = CODECS

    def __init__(self, resolve: Resolve) -> None:
        self.later: list[Call] = []
        self._resolve = resolve
        self._config = _Data()
        self._start = wire.Start(NAME, codec="pcm_s16le", sample_rate=24000, max_wait_ms=WAIT_MS)
        self._turn: Turn | None = None
        self._count = 0

    def hear(self, message: str) -> Iterable[Call]:
        try:
            said = msgspec.json.decode(message, type=_Message)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as problem:
            raise wire.BadMessage(str(problem)) from None
        data = said.data or _Data()
        match said.type:
            case "config":
                return self._configure(data)
            case "text":
                return self._text(data.text)
            case "flush":
                return self._flush()
            case "cancel":
                return self._cancel()
            case "ping":
                return (Reply(text_of({"type": "pong"})),)
            case unknown:
                raise wire.BadMessage(f"there is no message {unknown[:40]!r}")

    def _configure(self, data: _Data) -> Iterator[Call]:
        codec = _FORMATS.get(data.format)
        if codec is None or data.sample_rate not in SAMPLE_RATES:
            raise wire.BadMessage(f"there is no {data.format} of {data.sample_rate} Hz here")
        if codec in ("mulaw", "alaw") and data.sample_rate != 8000:
            raise wire.BadMessage(f"{data.format} has a sample_rate of 8000")
        yield from self._cancel()
        self._config = data
        self._start = wire.Start(
            NAME,
            voice=self._resolve(data.voice),
            codec=codec,
            sample_rate=cast(wire.Rate, data.sample_rate),
            speed=None if data.speed is None else min(max(data.speed, 0.5), 2.0),
            max_wait_ms=WAIT_MS,
        )
        yield from self._open()
        yield Reply(self._event("config_accepted"))

    def _open(self) -> Iterator[Call]:
        self._count += 1
        self._turn = Turn("", str(self._count))
        yield msgspec.structs.replace(self._start, context=self._turn.name)

    def _text(self, text: str) -> Iterator[Call]:
        if self._turn is None:
            yield from self._open()
        turn = self._turn
        assert turn is not None
        if text and not turn.ended:
            yield wire.Text(turn.name, turn.text(text))

    def _flush(self) -> Iterator[Call]:
        if self._turn is None:
            yield Reply(self._event("final"))
        elif not self._turn.ended:
            self._turn.ended = True
            yield wire.End(self._turn.name)

    def _cancel(self) -> Iterator[Call]:
        turn, self._turn = self._turn, None
        if turn is not None:
            yield wire.Cancel(turn.name)

    def say(self, event: Event, out: list[Item]) -> None:
        match event:
            case wire.Done(context=name) if self._is_current(name):
                out.append(self._event("final"))
                self._turn = None
            case wire.Error():
                out.append(text_of({"type": "error", "data": {"message": event.message, "code": event.code}}))
                if self._is_current(event.context):
                    self._turn = None

    def audio(self, context: Context, packets: list[Packet], out: list[Item]) -> None:
        if not self._is_current(context.name):
            return
        for piece in pieces(context.settings.form, packets):
            out.append(piece if self._config.binary else self._in_json(piece))

    def _is_current(self, name: str | None) -> bool:
        return self._turn is not None and self._turn.name == name

    def _in_json(self, piece: bytes) -> str:
        data = {"audio": piece, "sample_rate": self._config.sample_rate, "format": self._config.format}
        return text_of({"type": "audio", "data": data})

    def _event(self, type: str) -> str:
        data: dict[str, Any] = {"event_type": type, "request_id": f"r{self._count}"}
        return text_of({"type": "event", "data": data})

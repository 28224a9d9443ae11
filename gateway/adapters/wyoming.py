"""Wyoming, which Home Assistant speaks: events over plain TCP, each a line of JSON, then its data, then its payload.

The text of a stream comes twice, the second time as a `synthesize` for servers that cannot stream: it is left out.
There are no keys in this protocol; whoever reaches the port is served.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from ...codecs.packetizer import CODECS, Packet, pack_audio
from ...synth.engine import Voice
from .. import wire
from ..context import Context
from ..dialect import Call, Event, Item, Reply
from .exchange import LEAD_MS, NAME
from .names import Resolve
from .pieces import WAIT_MS
from .turns import Turn

VERSION = "1.10.0"
WIDTH, CHANNELS = 2, 1


class _Voice(msgspec.Struct, frozen=True):
    name: str | None = None
    language: str | None = None


class _Data(msgspec.Struct, frozen=True):
    text: str | None = None
    voice: _Voice | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str
    data: _Data = _Data()


class Wyoming:
    """One connection's wire; what it hears is an event as JSON with its data in place, what it says is framed."""

    protocol = "wyoming"
    codecs = CODECS

    def __init__(self, resolve: Resolve, voices: Callable[[], Iterable[Voice]]) -> None:
        self.later: list[Call] = []
        self._resolve = resolve
        self._voices = voices
        self._turn: Turn | None = None
        self._streams = False  # the turn takes text piece by piece
        self._rate = 0  # told with its first audio
        self._count = 0

    def hear(self, message: str) -> Iterable[Call]:
        try:
            said = msgspec.json.decode(message, type=_Event)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as problem:
            raise wire.BadMessage(str(problem)) from None
        text = said.data.text or ""
        match said.type:
            case "describe":
                return (Reply(framed("info", self._info())),)
            case "ping":
                return (Reply(framed("pong", {"text": said.data.text})),)
            case "synthesize-start":
                return self._open(said.data.voice, streams=True)
            case "synthesize-chunk":
                return self._speak(text)
            case "synthesize-stop":
                return self._end()
            case "synthesize" if not self._streams:
                return (*self._open(said.data.voice, streams=False), *self._speak(text), *self._end())
        return ()

    def _open(self, voice: _Voice | None, *, streams: bool) -> Iterator[Call]:
        if self._turn is not None:
            yield wire.Cancel(self._turn.name)
        self._count += 1
        self._turn, self._streams, self._rate = Turn("", str(self._count)), streams, 0
        start = wire.Start(NAME, codec="pcm_s16le", lead_ms=LEAD_MS, max_wait_ms=WAIT_MS)
        name = self._resolve(voice.name) if voice else None
        yield msgspec.structs.replace(start, context=self._turn.name, voice=name)

    def _speak(self, text: str) -> Iterator[Call]:
        if text and self._turn is not None and not self._turn.ended:
            yield wire.Text(self._turn.name, self._turn.text(text))

    def _end(self) -> Iterator[Call]:
        if self._turn is not None and not self._turn.ended:
            self._turn.ended = True
            yield wire.End(self._turn.name)

    def say(self, event: Event, out: list[Item]) -> None:
        match event:
            case wire.Started(context=name, sample_rate=rate) if self._is_current(name):
                self._rate = rate
                out.append(framed("audio-start", self._format()))
            case wire.Done(context=name) if self._is_current(name):
                out.append(framed("audio-stop", {}))
                self._close(out)
            case wire.Error():
                out.append(framed("error", {"text": event.message, "code": event.code}))
                if self._is_current(event.context):
                    if self._rate:
                        out.append(framed("audio-stop", {}))
                    self._close(out)

    def _close(self, out: list[Item]) -> None:
        if self._streams:
            out.append(framed("synthesize-stopped", {}))
        self._turn, self._streams = None, False

    def audio(self, context: Context, packets: list[Packet], out: list[Item]) -> None:
        if self._is_current(context.name):
            out.append(framed("audio-chunk", self._format(), pack_audio(context.settings.form, packets)))

    def _is_current(self, name: str | None) -> bool:
        return self._turn is not None and self._turn.name == name

    def _format(self) -> dict[str, int]:
        return {"rate": self._rate, "width": WIDTH, "channels": CHANNELS}

    def _info(self) -> dict[str, Any]:
        def artifact(name: str, description: str) -> dict[str, Any]:
            attribution = {"name": "voxgate", "url": ""}
            return {
                "name": name,
                "attribution": attribution,
                "installed": True,
                "description": description,
                "version": None,
            }

        voices = [
            {**artifact(voice.id, f"{voice.engine}, {voice.tier}"), "languages": [voice.language], "speakers": None}
            for voice in self._voices()
        ]
        program = artifact("voxgate", "real-time voice gateway")
        return {"tts": [{**program, "voices": voices, "supports_synthesize_streaming": True}]}


def framed(type: str, data: dict[str, Any], payload: bytes = b"") -> bytes:
    """One event as it goes over the wire."""
    body = msgspec.json.encode(data) if data else b""
    header: dict[str, Any] = {"type": type, "version": VERSION}
    if body:
        header["data_length"] = len(body)
    if payload:
        header["payload_length"] = len(payload)
    return msgspec.json.encode(header) + b"\n" + body + payload

"""The messages of `voxgate.v1` as types, both ways, and the header of an audio message.

Owns names, shapes and parsing. Knows nothing of sockets, contexts in flight or time.
"""

import struct
from typing import Any, get_args

import msgspec

from .errors import ProtocolError

PROTOCOL = "voxgate.v1"


# From the client.


class Start(msgspec.Struct, tag="start", frozen=True, omit_defaults=True):
    """A field left at None is not sent: the connection's own default (query parameter, server) holds."""

    context: str
    voice: str | None = None
    codec: str | None = None
    sample_rate: int | None = None  # Hz
    speed: float | None = None
    frame_ms: float | None = None
    timestamps: bool | None = None
    lead_ms: float | None = None
    tier: str | None = None
    seed: int | None = None
    max_wait_ms: float | None = None


class Text(msgspec.Struct, tag="text", frozen=True):
    context: str
    text: str


class Flush(msgspec.Struct, tag="flush", frozen=True):
    context: str


class End(msgspec.Struct, tag="end", frozen=True):
    context: str


class Cancel(msgspec.Struct, tag="cancel", frozen=True, omit_defaults=True):
    context: str
    played: int | None = None  # samples


class Played(msgspec.Struct, tag="played", frozen=True):
    context: str
    samples: int


ClientMessage = Start | Text | Flush | End | Cancel | Played


# From the server.


class VoiceInfo(msgspec.Struct, frozen=True):
    id: str
    language: str = ""
    engine: str = ""
    tier: str = ""
    sample_rate: int = 0  # Hz


class Ready(msgspec.Struct, tag="ready", frozen=True):
    protocol: str
    voices: tuple[VoiceInfo, ...] = ()
    limits: dict[str, Any] = {}


class Started(msgspec.Struct, tag="started", frozen=True):
    """What is really sent: everything asked for is answered here as it was settled."""

    context: str
    stream: int
    voice: str
    tier: str
    codec: str
    sample_rate: int  # Hz
    channels: int
    frame_samples: int  # per packet, at sample_rate
    pre_skip: int  # samples at sample_rate that a decoder drops first


class Word(msgspec.Struct, frozen=True, array_like=True):
    text: str
    start: float  # seconds from the first sample of the context
    end: float
    offset: int  # code points into the text as sent


class Words(msgspec.Struct, tag="words", frozen=True):
    context: str
    words: tuple[Word, ...]
    estimated: bool = False


class Flushed(msgspec.Struct, tag="flushed", frozen=True):
    """All audio of the text before the flush has been sent."""

    context: str


class TextWarning(msgspec.Struct, tag="warning", frozen=True):
    """Something of the text was left out; the context goes on."""

    context: str
    code: str
    message: str = ""
    span: tuple[int, int] | None = None  # code points into the text as sent


class Done(msgspec.Struct, tag="done", frozen=True):
    context: str
    samples: int  # exact length of the context


class Cancelled(msgspec.Struct, tag="cancelled", frozen=True):
    context: str
    sent: int = 0  # samples
    heard: int = 0  # samples
    text: str = ""  # of the source, up to `heard`


class Error(msgspec.Struct, tag="error", frozen=True):
    """With `context` set it ends that context; else it changed nothing, and `about` may name whom it concerns."""

    code: str
    context: str | None = None
    about: str | None = None
    message: str = ""
    retry_after: float | None = None  # seconds


class Pong(msgspec.Struct, tag="pong", frozen=True):
    pass


ServerMessage = Ready | Started | Words | Flushed | TextWarning | Done | Cancelled | Error | Pong


class Audio(msgspec.Struct, frozen=True, gc=False):
    """One binary message. `start` counts samples of the context at the output rate, pre-skip already taken off."""

    stream: int
    sequence: int  # 0, 1, 2, … in the context
    start: int
    payload: bytes
    first: bool  # the first audio of the context
    received_at: float  # monotonic seconds, when the bytes came off the socket

    def packets(self) -> list[bytes]:
        """The Opus packets of an `opus` payload, undecoded. For every other codec the payload is the audio itself."""
        packets, at, payload = [], 0, self.payload
        while at < len(payload):
            size = int.from_bytes(payload[at : at + 2])
            packet = payload[at + 2 : at + 2 + size]
            if len(packet) < size or at + 2 > len(payload):
                raise ProtocolError(f"audio message {self.sequence} ends inside a packet")
            packets.append(packet)
            at += 2 + size
        return packets

    def packet_count(self) -> int:
        """How many Opus packets there are, from their lengths alone: for who counts seconds and plays nothing."""
        count, at, payload = 0, 0, self.payload
        while at < len(payload):
            at += 2 + int.from_bytes(payload[at : at + 2])
            count += 1
        if at != len(payload):
            raise ProtocolError(f"audio message {self.sequence} ends inside a packet")
        return count


Event = Started | Audio | Words | Flushed | TextWarning | Error | Done | Cancelled


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ServerMessage).decode
_HEADER = struct.Struct("!BBHIQ")  # version, flags, stream, sequence, start sample
_FIRST = 1
_KNOWN_TYPES = frozenset(kind.__struct_config__.tag for kind in get_args(ServerMessage))


class _Typed(msgspec.Struct):
    type: str


def encode(message: ClientMessage) -> bytes:
    return _encode(message)


def decode(data: bytes) -> ServerMessage | None:
    """One text message; None for a type this client does not know. Raises `ProtocolError`."""
    try:
        return _decode(data)
    except msgspec.DecodeError as broken:  # a ValidationError is one, too
        try:
            kind = msgspec.json.decode(data, type=_Typed).type
        except msgspec.DecodeError:
            raise ProtocolError(f"not a message: {broken}") from broken
        if kind in _KNOWN_TYPES:
            raise ProtocolError(f"malformed {kind!r} message: {broken}") from broken
        return None


def decode_audio(data: bytes, received_at: float) -> Audio:
    """One binary message. Raises `ProtocolError`."""
    if len(data) < _HEADER.size or data[0] != 1:
        raise ProtocolError("an audio message without a header of version 1")
    _, flags, stream, sequence, start = _HEADER.unpack_from(data)
    return Audio(stream, sequence, start, data[_HEADER.size :], bool(flags & _FIRST), received_at)

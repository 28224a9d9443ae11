"""The wire `voxgate.v1`: its messages as types, their parsing and serializing, and the header of binary audio.

Owns the shape of what is said, not the meaning of it: what may be said when is the session's (session.py).
"""

import struct
from typing import Annotated, Literal

import msgspec

PROTOCOL = "voxgate.v1"

ContextId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Samples = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Speed = Annotated[float, msgspec.Meta(ge=0.5, le=2.0)]
Rate = Literal[8000, 16000, 22050, 24000, 44100, 48000]
Tier = Literal["auto", "realtime", "quality"]


class ClientMessage(msgspec.Struct, tag_field="type", tag=str.lower, frozen=True):
    """What a client may say."""


class Start(ClientMessage, frozen=True):
    """Opens a context. A field left out takes the connection's default (query parameters), else the server's."""

    context: ContextId
    voice: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    codec: Annotated[str, msgspec.Meta(max_length=32)] | None = None
    sample_rate: Rate | None = None
    speed: Speed | None = None
    frame_ms: Annotated[float, msgspec.Meta(ge=2.5, le=120)] = 20
    timestamps: bool = False
    lead_ms: Annotated[float, msgspec.Meta(ge=0, le=30_000)] = 2000
    tier: Tier = "auto"
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    max_wait_ms: Annotated[float, msgspec.Meta(ge=0, le=60_000)] = 200


class Text(ClientMessage, frozen=True):
    """A delta of the context's text, joined verbatim to what came before."""

    context: ContextId
    text: str


class Flush(ClientMessage, frozen=True):
    """Speak what is buffered; the context goes on."""

    context: ContextId


class End(ClientMessage, frozen=True):
    """No more text will come."""

    context: ContextId


class Cancel(ClientMessage, frozen=True):
    """Barge-in: stop at once. `played`: samples the listener has heard."""

    context: ContextId
    played: Samples | None = None


class Played(ClientMessage, frozen=True):
    """How many samples of the context the listener has heard so far."""

    context: ContextId
    samples: Samples


class Ping(ClientMessage, frozen=True):
    """Answered by `pong`."""


ContextMessage = Text | Flush | End | Cancel | Played
AnyClientMessage = Start | Text | Flush | End | Cancel | Played | Ping


class ServerMessage(msgspec.Struct, tag_field="type", tag=str.lower, frozen=True):
    """What the server may say."""


class VoiceInfo(msgspec.Struct, frozen=True):
    """A voice as `ready` and `GET /v1/voices` list it."""

    id: str
    language: str
    engine: str
    tier: str
    sample_rate: int


class EngineState(msgspec.Struct, frozen=True):
    """How an engine stands with newcomers when the connection begins. `state`: normal, degraded, half_open (it is
    being tried) or open (it takes nothing new); `causes`: memory, time, failures; `since`: in seconds since 1970."""

    state: str
    causes: tuple[str, ...]
    since: float


class LimitsInfo(msgspec.Struct, frozen=True):
    """The limits a client of this connection meets, told in `ready`."""

    contexts: int
    message_bytes: int
    pending_chars: int
    context_chars: int
    messages_per_second: float
    engines: dict[str, EngineState]  # by name


class Ready(ServerMessage, frozen=True):
    """The first message on every connection."""

    voices: tuple[VoiceInfo, ...]
    limits: LimitsInfo
    protocol: str = PROTOCOL


class Started(ServerMessage, frozen=True):
    """The context is admitted; the fields are what will really be sent."""

    context: str
    stream: int
    voice: str
    tier: str
    codec: str
    sample_rate: int
    channels: int
    frame_samples: int
    pre_skip: int


class Words(ServerMessage, frozen=True, omit_defaults=True):
    """Words of audio that follows: text, start and end in seconds of the context, offset in its text in code points."""

    context: str
    words: tuple[tuple[str, float, float, int], ...]
    estimated: bool = False


class Flushed(ServerMessage, frozen=True):
    """Answers one `flush`, after the last audio it covers."""

    context: str


class Warning(ServerMessage, frozen=True):
    """Something is wrong with the text; the context goes on. `span`: code points of the context's text.

    `unsupported_text`: these words are left out. `repeated_text`: a delta began with all the text before it; it is
    spoken as it came, but text is wanted as deltas, not as all of it again and again.
    """

    context: str
    code: str
    span: tuple[int, int]
    message: str


class Done(ServerMessage, frozen=True):
    """The context has been sent whole: `samples` is its exact length."""

    context: str
    samples: int


class Cancelled(ServerMessage, frozen=True):
    """The context was cancelled: samples sent, samples heard, and the text up to what was heard."""

    context: str
    sent: int
    heard: int
    text: str


class Error(ServerMessage, frozen=True):
    """With `context`, the end of that context; without, a message that was refused and changed nothing."""

    code: str
    message: str
    context: str | None = None
    about: str | msgspec.UnsetType = msgspec.UNSET
    retry_after: float | msgspec.UnsetType = msgspec.UNSET


class Pong(ServerMessage, frozen=True):
    """Answers `ping`."""


AnyServerMessage = Ready | Started | Words | Flushed | Warning | Done | Cancelled | Error | Pong


class BadMessage(ValueError):
    """What came is no message of this protocol. `about`: the context it names, where that can be read.

    `start`: it was meant to open that context, so that what follows under its name was meant for other settings.
    """

    def __init__(self, reason: str, about: str | None = None, start: bool = False) -> None:
        super().__init__(reason)
        self.about = about
        self.start = start


class _Named(msgspec.Struct):
    type: str | None = None
    context: str | None = None


# A field that is not ours is skipped by recursion, so a deep one is a RecursionError and no DecodeError.
_UNREADABLE = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)
_decoder = msgspec.json.Decoder(AnyClientMessage)
_named_decoder = msgspec.json.Decoder(_Named)
_encoder = msgspec.json.Encoder()


def parse(message: str) -> AnyClientMessage:
    """The client message in one WebSocket text message; raises `BadMessage`."""
    try:
        return _decoder.decode(message)
    except _UNREADABLE as problem:
        raise _bad_message(str(problem), message) from None


def serialize(message: ServerMessage) -> str:
    """The WebSocket text message that says `message`."""
    return _encoder.encode(message).decode()


def _bad_message(reason: str, message: str) -> BadMessage:
    try:
        named = _named_decoder.decode(message)
    except _UNREADABLE:
        return BadMessage(reason)
    return BadMessage(reason, named.context[:128] if named.context else None, named.type == "start")


HEADER = struct.Struct("!BBHIQ")
HEADER_VERSION = 1
FLAG_FIRST = 1


def audio_header(*, first: bool, stream: int, sequence: int, start: int) -> bytes:
    """The 16 bytes before the payload of a binary audio message.

    `stream`: as told in `started`; `sequence`: gapless from 0 per context, modulo 2**32; `start`: the payload's first
    sample in the context at the output rate.
    """
    return HEADER.pack(HEADER_VERSION, FLAG_FIRST if first else 0, stream, sequence & 0xFFFFFFFF, start)

"""What the gateway and an engine worker say to each other: length-prefixed msgspec messages on a stream socket.

Owns the message types, their encoding and the length prefix. Knows neither processes nor sockets: it turns messages
into bytes and a payload back into a message.
"""

import math
import struct
from typing import TypeVar

import msgspec

from .engine import EngineInfo
from .segment import Segment, Style
from .text.limits import TEXT_CODE_POINTS, VALUE_CODE_POINTS

PREFIX = struct.Struct("!I")  # payload length
# A segment and its lead-in in four bytes each, every other code point of it a word that is marked, and all the rest.
MAX_REQUEST_BYTES = 4 * (2 * TEXT_CODE_POINTS + TEXT_CODE_POINTS // 2 * (VALUE_CODE_POINTS + 8)) + 4096
MAX_REPLY_BYTES = 32 * 1024 * 1024  # a minute of 24 kHz PCM is under 3 MB


class BadMessage(ValueError):
    """A length or a payload this protocol does not allow: the connection cannot be trusted any longer."""


class Synthesize(msgspec.Struct, frozen=True, array_like=True, tag="synthesize"):
    """`covered_until`, here and below: when the listener runs dry, on the machine's monotonic clock; -inf: has heard
    nothing yet."""

    job: int
    segment: Segment
    style: Style
    covered_until: float = -math.inf


class Cancel(msgspec.Struct, frozen=True, array_like=True, tag="cancel"):
    """Stepwise engines only, like all that follow: drop this job, answer nothing more of it."""

    job: int


class Hold(msgspec.Struct, frozen=True, array_like=True, tag="hold"):
    """Do not go on with this job (or, not `held`, go on)."""

    job: int
    held: bool


class Cover(msgspec.Struct, frozen=True, array_like=True, tag="cover"):
    """The listener of this job has more or less audio in hand than was sent to it would tell."""

    job: int
    until: float


class Narrow(msgspec.Struct, frozen=True, array_like=True, tag="narrow"):
    """Only so many slots for what is new."""

    width: int


Request = Synthesize | Cancel | Hold | Cover | Narrow


class Ready(msgspec.Struct, frozen=True, array_like=True, tag="ready"):
    """The first message of a worker: its engine is loaded and warm."""

    info: EngineInfo


class NotReady(msgspec.Struct, frozen=True, array_like=True, tag="notready"):
    """Or the first and last one: why there is no engine."""

    message: str


class Spoken(msgspec.Struct, frozen=True, array_like=True, tag="spoken"):
    job: int
    pcm: bytes  # int16, mono, native byte order: both ends are the same machine
    compute_s: float  # time in the engine alone
    last: bool = True  # False: a stepwise engine is not done with this segment
    times: bytes = b""  # of the words, as `Speech` has them


class Figures(msgspec.Struct, frozen=True, array_like=True, tag="figures"):
    """How a stepwise engine stands: told when that changes, and as a sign of life while it has any job."""

    batch: int  # rows of its last step
    idle_bytes: int  # reserved for slots and used by none


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """The one job failed; the worker goes on."""

    job: int
    message: str
    broken: bool = False  # the engine's fault and not that of the text


Reply = Ready | NotReady | Spoken | Figures | Failed

_T = TypeVar("_T")
_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(Request)
_reply_decoder = msgspec.msgpack.Decoder(Reply)


def encode(message: Request | Reply) -> bytearray:
    """The message as it goes on the socket, prefix included."""
    data = bytearray(PREFIX.size)
    _encoder.encode_into(message, data, PREFIX.size)
    PREFIX.pack_into(data, 0, len(data) - PREFIX.size)
    return data


def payload_length(prefix: bytes | bytearray | memoryview, limit: int) -> int:
    """The length a prefix announces; raises `BadMessage` when it is over `limit`."""
    (length,) = PREFIX.unpack(prefix)
    if length > limit:
        raise BadMessage(f"a message of {length} bytes is over the limit of {limit}")
    return length


def decode_request(payload: bytes | bytearray) -> Request:
    return _decode(_request_decoder, payload)


def decode_reply(payload: bytes | bytearray) -> Reply:
    return _decode(_reply_decoder, payload)


def _decode(decoder: msgspec.msgpack.Decoder[_T], payload: bytes | bytearray) -> _T:
    try:
        return decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise BadMessage(f"a message that cannot be read: {error}") from error

"""What the gateway and an engine worker say to each other: length-prefixed msgspec messages on a stream socket.

Owns the message types, their encoding and the length prefix. Knows neither processes nor sockets: it turns messages
into bytes and a payload back into a message.
"""

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
    job: int
    segment: Segment
    style: Style


class Ready(msgspec.Struct, frozen=True, array_like=True, tag="ready"):
    """The first message of a worker: its engine is loaded and warm."""

    info: EngineInfo


class Spoken(msgspec.Struct, frozen=True, array_like=True, tag="spoken"):
    job: int
    pcm: bytes  # int16, mono, native byte order: both ends are the same machine
    compute_s: float  # time in the engine alone
    times: bytes = b""  # of the words, as `Speech` has them


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """The one job failed; the worker goes on."""

    job: int
    message: str
    broken: bool = False  # the engine's fault and not that of the text


Reply = Ready | Spoken | Failed

_T = TypeVar("_T")
_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(Synthesize)
_reply_decoder = msgspec.msgpack.Decoder(Reply)


def encode(message: Synthesize | Reply) -> bytearray:
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


def decode_request(payload: bytes | bytearray) -> Synthesize:
    return _decode(_request_decoder, payload)


def decode_reply(payload: bytes | bytearray) -> Reply:
    return _decode(_reply_decoder, payload)


def _decode(decoder: msgspec.msgpack.Decoder[_T], payload: bytes | bytearray) -> _T:
    try:
        return decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise BadMessage(f"a message that cannot be read: {error}") from error

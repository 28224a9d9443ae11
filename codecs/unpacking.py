"""Payloads of one context back into PCM, for every codec of the wire; pre-skip and end are left to the caller.

Knows no messages and no lengths of contexts. MP3 needs the library of sndfile.py, the others what encoding does.
"""

import struct
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from . import g711, sndfile
from .ogg import GRANULE_RATE, OggOpusReader
from .opus import OpusDecoder
from .wav import WavReader

LENGTH = struct.Struct("!H")  # before each Opus packet of a payload

_NOTHING = np.zeros(0, np.int16)


class Unpacker(Protocol):
    """One stream, in order. Both methods raise `ValueError` or `OpusError` for what is no such stream."""

    def push(self, payload: bytes) -> NDArray[np.int16]:
        """The samples that are certain after this payload."""
        ...

    def finish(self) -> NDArray[np.int16]:
        """What was held back."""
        ...


def unpacker(codec: str, sample_rate: int) -> Unpacker:
    """For the payloads of `codec`, into samples at `sample_rate`, the rate of the stream.

    Raises `ValueError` for an unknown codec and `sndfile.MissingLibrary`.
    """
    match codec:
        case "opus":
            return _Packets(sample_rate)
        case "ogg_opus":
            return _Ogg(sample_rate)
        case "pcm_s16le":
            return _Pcm()
        case "wav":
            return _Wav()
        case "mulaw" | "alaw":
            return _G711(codec)
        case "mp3":
            sndfile.require()
            return _Mp3()
    raise ValueError(f"cannot decode {codec!r}")


class _Packets:
    """Opus packets behind their lengths."""

    def __init__(self, sample_rate: int):
        self._opus = OpusDecoder(sample_rate)

    def push(self, payload: bytes) -> NDArray[np.int16]:
        pieces: list[NDArray[np.int16]] = []
        at = 0
        while at < len(payload):
            if at + LENGTH.size > len(payload):
                raise ValueError("a payload that ends inside the length of a packet")
            (length,) = LENGTH.unpack_from(payload, at)
            at += LENGTH.size
            if at + length > len(payload):
                raise ValueError(f"a packet of {length} bytes, but {len(payload) - at} are left of the payload")
            pieces.append(self._opus.decode(payload[at : at + length]))
            at += length
        return np.concatenate(pieces) if pieces else _NOTHING

    def finish(self) -> NDArray[np.int16]:
        return _NOTHING


class _Ogg:
    """Trims by pre-skip and by the last granule, as a player does."""

    def __init__(self, sample_rate: int):
        self._reader = OggOpusReader()
        self._opus = OpusDecoder(sample_rate)
        self._factor = GRANULE_RATE // sample_rate
        self._decoded = 0  # samples, pre-skip included

    def push(self, payload: bytes) -> NDArray[np.int16]:
        pieces = [self._opus.decode(packet) for packet in self._reader.push(payload)]
        if not pieces:
            return _NOTHING
        pcm = np.concatenate(pieces)
        assert self._reader.pre_skip is not None
        first = max(0, self._reader.pre_skip // self._factor - self._decoded)
        end = len(pcm) if self._reader.end is None else self._reader.end // self._factor - self._decoded
        self._decoded += len(pcm)
        return pcm[first : max(first, end)]

    def finish(self) -> NDArray[np.int16]:
        if self._reader.end is None:
            raise ValueError("an Ogg stream without its last page")
        return _NOTHING


class _Pcm:
    def push(self, payload: bytes) -> NDArray[np.int16]:
        if len(payload) % 2:
            raise ValueError("a payload that ends inside a sample")
        return np.frombuffer(payload, "<i2").astype(np.int16)

    def finish(self) -> NDArray[np.int16]:
        return _NOTHING


class _Wav:
    def __init__(self) -> None:
        self._reader = WavReader()
        self._pcm = _Pcm()

    def push(self, payload: bytes) -> NDArray[np.int16]:
        return self._pcm.push(self._reader.push(payload))

    def finish(self) -> NDArray[np.int16]:
        return _NOTHING


class _G711:
    def __init__(self, law: g711.Law):
        self._law: g711.Law = law

    def push(self, payload: bytes) -> NDArray[np.int16]:
        return g711.decode(payload, self._law)

    def finish(self) -> NDArray[np.int16]:
        return _NOTHING


class _Mp3:
    """Holds everything until the end: the library reads files, not streams."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def push(self, payload: bytes) -> NDArray[np.int16]:
        self._pieces.append(payload)
        return _NOTHING

    def finish(self) -> NDArray[np.int16]:
        data = b"".join(self._pieces)
        return sndfile.read_mp3(data) if data else _NOTHING

"""PCM of one context in, packets out: which samples each one holds, to the sample, and the way back.

With Opus, packet k begins at `max(0, k * frame_samples - pre_skip)`: the encoder is late by `pre_skip`, so a decoder
drops that many samples first and, at the end, what exceeds the length of the context. Knows no sockets, no time and
no message headers.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .opus import OPUS_FRAME_MS, OPUS_RATES, OpusDecoder, OpusEncoder, lookahead
from .resample import Resampler, resampled_length

CODECS = ("opus", "pcm_s16le")
SAMPLE_RATES = (8000, 16000, 22050, 24000, 44100, 48000)  # Hz, what a client may ask for
FRAME_MS = OPUS_FRAME_MS

_LENGTH = struct.Struct("!H")  # before each Opus packet of a payload


class UnsupportedCodec(ValueError):
    """No such codec, rate or frame length here; the message names those there are."""


@dataclass(frozen=True, slots=True)
class Format:
    """What is really sent; sample counts are at `sample_rate`."""

    codec: str
    sample_rate: int  # Hz
    frame_samples: int
    pre_skip: int  # decoded samples to drop first; 0 but for Opus
    channels: int = 1


@dataclass(frozen=True, slots=True)
class Packet:
    """One encoded frame, and the samples of the context it adds to what a listener has: `start` up to `end`."""

    payload: bytes
    start: int
    end: int


def choose_format(codec: str, sample_rate: int, frame_ms: float, source_rate: int) -> Format:
    """What a client that asks for this gets from a voice at `source_rate` Hz.

    Opus has no 22050 and 44100 Hz: the next rate above is sent and stated. A frame is the nearest whole number of
    samples. Raises `UnsupportedCodec`.
    """
    if codec not in CODECS:
        raise UnsupportedCodec(f"codec {codec!r} is not one of {_listed(CODECS)}")
    if sample_rate not in SAMPLE_RATES:
        raise UnsupportedCodec(f"sample_rate {sample_rate} is not one of {_listed(SAMPLE_RATES)}")
    if frame_ms not in FRAME_MS:
        raise UnsupportedCodec(f"frame_ms {frame_ms} is not one of {_listed(FRAME_MS)}")
    if source_rate < 1:
        raise ValueError(f"source_rate {source_rate} is not a sample rate")
    if codec == "opus":
        sample_rate = min(rate for rate in OPUS_RATES if rate >= sample_rate)
    return Format(
        codec=codec,
        sample_rate=sample_rate,
        frame_samples=round(sample_rate * frame_ms / 1000),
        pre_skip=lookahead(sample_rate) if codec == "opus" else 0,
    )


class Packetizer:
    """The one encoder of a context, from its first sample to its last; used by one thread at a time.

    Between pushes it keeps less than a frame, and with resampling what the filter holds back; a stream that starves
    simply is not finished. Any cutting of the same samples gives the same packets.
    """

    def __init__(self, format: Format, source_rate: int):
        self._format = format
        self._source_rate = source_rate
        self._resampler = Resampler(source_rate, format.sample_rate) if source_rate != format.sample_rate else None
        self._opus = OpusEncoder(format.sample_rate, format.frame_samples) if format.codec == "opus" else None
        self._pushed = 0  # samples at source_rate
        self._packets = 0
        self._remainder = np.zeros(0, np.int16)  # less than a frame at the output rate
        self._finished = False

    @property
    def samples(self) -> int:
        """Length at the output rate of all that was pushed: what is decoded in the end, after both trims."""
        return resampled_length(self._pushed, self._source_rate, self._format.sample_rate)

    def push(self, pcm: NDArray[np.int16]) -> list[Packet]:
        """The packets that `pcm` (mono, at the source rate) completes."""
        if self._finished:
            raise RuntimeError("push after finish")
        self._pushed += len(pcm)
        return self._frames(self._resampler.push(pcm) if self._resampler else pcm)

    def finish(self) -> list[Packet]:
        """The end of the context: the last packets, padded so that a decoder gets all of `samples`."""
        packets = self._frames(self._resampler.finish()) if self._resampler and not self._finished else []
        self._finished = True
        if self._opus:
            frame, samples = self._format.frame_samples, self.samples
            needed = -(-(samples + self._format.pre_skip) // frame) if samples else 0
            padding = (needed - self._packets) * frame - len(self._remainder)
            packets += self._frames(np.zeros(padding, np.int16))
        elif len(self._remainder):
            packets += self._wrap([_bytes(self._remainder)])
            self._remainder = self._remainder[:0]
        return packets

    def _frames(self, pcm: NDArray[np.int16]) -> list[Packet]:
        """Encode the whole frames of what is there, keep the rest."""
        frame = self._format.frame_samples
        pcm = np.concatenate((self._remainder, pcm))
        whole = len(pcm) // frame * frame
        self._remainder = pcm[whole:].copy()  # a copy, so that it does not keep all of pcm alive
        if self._opus:
            return self._wrap(self._opus.encode(pcm[:whole]))
        return self._wrap([_bytes(pcm[at : at + frame]) for at in range(0, whole, frame)])

    def _wrap(self, payloads: list[bytes]) -> list[Packet]:
        frame, pre_skip, samples = self._format.frame_samples, self._format.pre_skip, self.samples
        packets: list[Packet] = []
        for payload in payloads:
            end = (self._packets + 1) * frame - pre_skip
            packets.append(Packet(payload, max(0, end - frame), min(max(0, end), samples)))
            self._packets += 1
        return packets


def pack_audio(format: Format, packets: Iterable[Packet]) -> bytes:
    """The payload of one binary message: each Opus packet behind its length, other codecs as they are."""
    if format.codec == "opus":
        return b"".join(_LENGTH.pack(len(packet.payload)) + packet.payload for packet in packets)
    return b"".join(packet.payload for packet in packets)


class StreamDecoder:
    """Payloads of one context back into PCM at the output rate, for tests and benchmarks.

    It stays one frame behind, because only the end tells how much of the last one counts: all that `push` and
    `finish` give is exactly the context.
    """

    def __init__(self, format: Format):
        self._format = format
        self._opus = OpusDecoder(format.sample_rate) if format.codec == "opus" else None
        self._skip = format.pre_skip
        self._given = 0
        self._held = np.zeros(0, np.int16)

    def push(self, payload: bytes) -> NDArray[np.int16]:
        """The samples that are certain after the payload of one binary message."""
        decoded = np.concatenate((self._held, *self._decode(payload)))
        skipped = min(self._skip, len(decoded))
        self._skip -= skipped
        decoded = decoded[skipped:]
        certain = max(0, len(decoded) - self._format.frame_samples)
        self._held = decoded[certain:]
        self._given += certain
        return decoded[:certain]

    def finish(self, samples: int) -> NDArray[np.int16]:
        """The rest of a context of `samples`; ValueError if the stream cannot have been that long."""
        rest = samples - self._given
        if not 0 <= rest <= len(self._held):
            got = self._given + len(self._held)
            raise ValueError(f"a context of {samples} samples, but {self._given} to {got} were decoded")
        return self._held[:rest]

    def _decode(self, payload: bytes) -> list[NDArray[np.int16]]:
        if not self._opus:
            return [np.frombuffer(payload, "<i2").astype(np.int16)]
        pieces: list[NDArray[np.int16]] = []
        at = 0
        while at < len(payload):
            (length,) = _LENGTH.unpack_from(payload, at)
            at += _LENGTH.size
            if at + length > len(payload):
                raise ValueError(f"a packet of {length} bytes, but {len(payload) - at} are left of the payload")
            pieces.append(self._opus.decode(payload[at : at + length]))
            at += length
        return pieces


def _bytes(pcm: NDArray[np.int16]) -> bytes:
    return pcm.astype("<i2", copy=False).tobytes()


def _listed(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)

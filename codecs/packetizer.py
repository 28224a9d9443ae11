"""PCM of one context in, packets out: which samples each one holds, to the sample, and the way back.

With Opus, packet k begins at `max(0, k * frame_samples - pre_skip)`: the encoder is late by `pre_skip`, so a decoder
drops that many samples first and, at the end, what exceeds the length of the context. MP3 is counted the same way.
Knows no sockets, no time and no message headers.

    UnsupportedCodec
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from . import g711, mp3, sndfile, wav
from .ogg import GRANULE_RATE, OggOpusWriter
from .opus import OPUS_FRAME_MS, OPUS_RATES, OpusEncoder, economical, lookahead
from .resample import Resampler, resampled_length
from .unpacking import LENGTH, unpacker

SAMPLE_RATES = (8000, 16000, 22050, 24000, 32000, 44100, 48000)  # Hz, what a client may ask for
FRAME_MS = OPUS_FRAME_MS
PAGE_SECONDS = 0.1  # of Ogg, at most: 32 bytes on 700

_MEDIA_TYPES = {
    "opus": "application/octet-stream",  # packets behind their lengths are nobody's format but ours
    "ogg_opus": "audio/ogg; codecs=opus",
    "pcm_s16le": "audio/pcm",
    "mulaw": "audio/basic",
    "alaw": "audio/x-alaw-basic",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
}
CODECS = tuple(_MEDIA_TYPES)
WIRE_CODECS = tuple(codec for codec in CODECS if codec != "flac")  # what `start` may ask for; FLAC is for HTTP bodies


class UnsupportedCodec(ValueError):
    """No such codec, rate or frame length here; the message names those there are."""


@dataclass(frozen=True, slots=True)
class Format:
    """What is really sent; sample counts are at `sample_rate`."""

    codec: str
    sample_rate: int  # Hz
    frame_samples: int
    pre_skip: int  # decoded samples to drop first; 0 but for Opus and MP3, since Ogg tells its decoder itself
    channels: int = 1
    economy: bool = False  # of Opus: with less care, for less CPU

    @property
    def media_type(self) -> str:
        """For the Content-Type of an HTTP body."""
        return _MEDIA_TYPES[self.codec]


class Packet(msgspec.Struct, frozen=True, gc=False):
    """One encoded frame (of Ogg: one page), and the samples of the context it adds: `start` up to `end`.

    Fifty are made for each second of each listener: a struct that the garbage collector need not look at.
    """

    payload: bytes
    start: int
    end: int


def choose_format(codec: str, sample_rate: int, frame_ms: float, source_rate: int, *, economy: bool = False) -> Format:
    """What a client that asks for this gets from a voice at `source_rate` Hz.

    Where the codec does not have the rate, another one is sent and stated: Opus has no 22050 and 44100 Hz and takes the
    next above, G.711 is 8000 Hz. A frame is the nearest whole number of samples, and MP3 and FLAC have their own.
    Raises `UnsupportedCodec`.
    """
    if codec not in CODECS:
        raise UnsupportedCodec(f"codec {codec!r} is not one of {_listed(CODECS)}")
    if sample_rate not in SAMPLE_RATES:
        raise UnsupportedCodec(f"sample_rate {sample_rate} is not one of {_listed(SAMPLE_RATES)}")
    if frame_ms not in FRAME_MS:
        raise UnsupportedCodec(f"frame_ms {frame_ms} is not one of {_listed(FRAME_MS)}")
    if source_rate < 1:
        raise ValueError(f"source_rate {source_rate} is not a sample rate")
    pre_skip = 0
    match codec:
        case "opus" | "ogg_opus":
            sample_rate = min(rate for rate in OPUS_RATES if rate >= sample_rate)
            pre_skip = lookahead(sample_rate) if codec == "opus" else 0
        case "mulaw" | "alaw":
            sample_rate = g711.RATE
        case "mp3":
            return Format(codec, sample_rate, mp3.frame_samples(sample_rate), mp3.DELAY)
        case "flac":
            try:
                sndfile.require()
            except sndfile.MissingLibrary as missing:
                usable = _listed(name for name in CODECS if name != codec)
                raise UnsupportedCodec(f"codec 'flac' is not installed here ({missing}); there are {usable}") from None
            return Format(codec, sample_rate, sndfile.FLAC_FRAME_SAMPLES, 0)
    return Format(codec, sample_rate, round(sample_rate * frame_ms / 1000), pre_skip, economy=economy)


class Packetizer:
    """The one encoder of a context, from its first sample to its last; used by one thread at a time.

    Between pushes it keeps less than a frame, with resampling what the filter holds back, and with MP3 and FLAC what
    their encoders do (up to three frames, and one); a stream that starves simply is not finished. Any cutting of the
    same samples gives the same packets, but that Ogg makes at least one page of each push.

    What is a file by itself (Ogg, WAV, MP3, FLAC) is one for a context of no samples, too: headers, or a frame that a
    decoder drops. Headers come with the first audio, never alone before it.
    """

    def __init__(self, format: Format, source_rate: int):
        self._format = format
        self._source_rate = source_rate
        self._resampler = Resampler(source_rate, format.sample_rate) if source_rate != format.sample_rate else None
        self._pushed = 0  # samples at source_rate
        self._framed = 0  # frames given to the encoder
        self._packets = 0
        self._remainder = np.zeros(0, np.int16)  # less than a frame at the output rate
        self._finished = False
        self._delay = format.pre_skip  # samples by which the encoder is late
        self._least_packets = 0
        self._drain: Callable[[], list[bytes]] | None = None
        self._pages: _Pages | None = None
        self._header = b""
        self._encode = self._make_encoder()

    def _make_encoder(self) -> Callable[[NDArray[np.int16]], list[bytes]]:
        """What turns frames into payloads, one for each; some are late and give the rest to `_drain`."""
        rate, frame = self._format.sample_rate, self._format.frame_samples
        settings = economical(rate) if self._format.economy else None
        match self._format.codec:
            case "opus":
                return OpusEncoder(rate, frame, settings).encode
            case "ogg_opus":
                self._pages, self._delay, self._least_packets = _Pages(rate, frame), lookahead(rate), 1
                return OpusEncoder(rate, frame, settings).encode
            case "mulaw" | "alaw" as law:
                return lambda pcm: _split(g711.encode(pcm, law), frame)
            case "mp3":
                lame, self._least_packets = mp3.Mp3Encoder(rate), mp3.LEAST_FRAMES
                self._drain = lame.drain
                return lame.encode
            case "flac":
                flac = sndfile.FlacEncoder(rate)
                self._drain = flac.drain
                return flac.encode
            case "wav":
                self._header = wav.stream_header(rate)
        return lambda pcm: _split(_bytes(pcm), 2 * frame)

    @property
    def samples(self) -> int:
        """Length at the output rate of all that was pushed: what is decoded in the end, after both trims."""
        return resampled_length(self._pushed, self._source_rate, self._format.sample_rate)

    def push(self, pcm: NDArray[np.int16]) -> list[Packet]:
        """The packets that `pcm` (mono, at the source rate) completes."""
        if self._finished:
            raise RuntimeError("push after finish")
        self._pushed += len(pcm)
        packets = self._frames(self._resampler.push(pcm) if self._resampler else pcm)
        return self._pages.of(packets) if self._pages else packets

    def finish(self) -> list[Packet]:
        """The end of the context: the last packets, padded so that a decoder gets all of `samples`."""
        if self._finished:
            return []
        packets = self._frames(self._resampler.finish()) if self._resampler else []
        self._finished = True
        if self._delay:
            packets += self._finish_late()
        else:
            rest = self._encode(self._remainder) if len(self._remainder) else []
            packets += self._wrap(rest + (self._drain() if self._drain else []))
        if self._header:
            packets.append(Packet(self._header, 0, 0))
        return self._pages.of(packets, last=True) if self._pages else packets

    def _finish_late(self) -> list[Packet]:
        """Silence behind the last sample until the encoder has given it; what holds nothing else is left out."""
        frame, samples = self._format.frame_samples, self.samples
        needed = max(self._least_packets, -(-(samples + self._delay) // frame) if samples else 0)
        padding = (needed - self._framed) * frame - len(self._remainder)
        packets = self._frames(np.zeros(padding, np.int16))
        if self._drain:
            packets += self._wrap(self._drain()[: needed - self._packets])
        return packets

    def _frames(self, pcm: NDArray[np.int16]) -> list[Packet]:
        """Encode the whole frames of what is there, keep the rest."""
        frame = self._format.frame_samples
        pcm = np.concatenate((self._remainder, pcm))
        frames = len(pcm) // frame
        whole = frames * frame
        self._framed += frames
        self._remainder = pcm[whole:].copy()  # a copy, so that it does not keep all of pcm alive
        return self._wrap(self._encode(pcm[:whole]))

    def _wrap(self, payloads: list[bytes]) -> list[Packet]:
        if self._header and payloads:
            payloads[0] = self._header + payloads[0]
            self._header = b""
        frame, delay, samples = self._format.frame_samples, self._delay, self.samples
        packets: list[Packet] = []
        for payload in payloads:
            end = (self._packets + 1) * frame - delay
            packets.append(Packet(payload, min(max(0, end - frame), samples), min(max(0, end), samples)))
            self._packets += 1
        return packets


class _Pages:
    """Opus packets into Ogg pages: the first one alone on its page, so that it leaves at once, then a few on each."""

    def __init__(self, rate: int, frame_samples: int):
        self._factor = GRANULE_RATE // rate  # whole for every rate of Opus
        self._frame = frame_samples * self._factor
        self._pre_skip = lookahead(rate) * self._factor
        self._writer = OggOpusWriter(self._pre_skip, rate)
        self._packets = 0
        self._most = max(1, int(PAGE_SECONDS * rate) // frame_samples)

    def of(self, packets: list[Packet], *, last: bool = False) -> list[Packet]:
        """As few pages as hold these; with `last`, the last of all. There must be a packet then."""
        pages: list[Packet] = []
        at = 0
        while at < len(packets):
            first = self._packets == 0
            group = packets[at : at + (1 if first else self._most)]
            at += len(group)
            self._packets += len(group)
            ends = last and at == len(packets)
            granule = self._pre_skip + group[-1].end * self._factor if ends else self._packets * self._frame
            page = self._writer.headers() if first else b""
            page += self._writer.page([packet.payload for packet in group], granule, last=ends)
            pages.append(Packet(page, group[0].start, group[-1].end))
        return pages


def pack_audio(format: Format, packets: Iterable[Packet]) -> bytes:
    """The payload of one binary message: each Opus packet behind its length, other codecs as they are."""
    if format.codec == "opus":
        return b"".join(LENGTH.pack(len(packet.payload)) + packet.payload for packet in packets)
    return b"".join(packet.payload for packet in packets)


class StreamDecoder:
    """Payloads of one context back into PCM at the output rate, for tests and benchmarks.

    It stays one frame behind, because only the end tells how much of the last one counts: all that `push` and
    `finish` give is exactly the context.
    """

    def __init__(self, format: Format):
        self._format = format
        self._unpacker = unpacker(format.codec, format.sample_rate)
        self._skip = format.pre_skip
        self._given = 0
        self._held = np.zeros(0, np.int16)

    def push(self, payload: bytes) -> NDArray[np.int16]:
        """The samples that are certain after the payload of one binary message."""
        self._hold(self._unpacker.push(payload))
        certain = max(0, len(self._held) - self._format.frame_samples)
        pcm, self._held = self._held[:certain], self._held[certain:]
        self._given += certain
        return pcm

    def finish(self, samples: int) -> NDArray[np.int16]:
        """The rest of a context of `samples`; ValueError if the stream cannot have been that long."""
        self._hold(self._unpacker.finish())
        rest = samples - self._given
        if not 0 <= rest <= len(self._held):
            got = self._given + len(self._held)
            raise ValueError(f"a context of {samples} samples, but {self._given} to {got} were decoded")
        return self._held[:rest]

    def _hold(self, pcm: NDArray[np.int16]) -> None:
        skipped = min(self._skip, len(pcm))
        self._skip -= skipped
        self._held = np.concatenate((self._held, pcm[skipped:]))


def _bytes(pcm: NDArray[np.int16]) -> bytes:
    return pcm.astype("<i2", copy=False).tobytes()


def _split(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def _listed(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)

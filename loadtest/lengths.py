"""Where the sound of an audio message ends, told from its bytes alone: nothing is decoded, and no codec is loaded.

Exact for whole messages of every codec of the wire; the last message of MP3 and Opus may hold up to a frame more than
the context, whose length `done` tells.
"""

from ..client import Audio, ProtocolError, Started

_WAV_HEADER = 44
_OGG_RATE = 48_000
# ISO 11172-3 and 13818-3, kbit/s of layer III by the header's four bits, for MPEG 1 and for the low rates.
_MPEG1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}  # by version bits


class Lengths:
    """One context's messages, in order."""

    def __init__(self, started: Started) -> None:
        self._started = started
        self._frames = 0
        self._pre_skip = 0  # of Ogg, at 48 kHz, as its head says
        self._unread = b""  # of MP3, whose frames go on from message to message

    def end_of(self, audio: Audio) -> int:
        """The sample behind it, at the output rate; `ProtocolError` for what is no such stream."""
        started, payload = self._started, audio.payload
        match started.codec:
            case "opus":
                self._frames += audio.packet_count()
                return self._frames * started.frame_samples - started.pre_skip
            case "pcm_s16le":
                return audio.start + len(payload) // 2
            case "mulaw" | "alaw":
                return audio.start + len(payload)
            case "wav":
                return audio.start + (len(payload) - _WAV_HEADER * payload.startswith(b"RIFF")) // 2
            case "ogg_opus":
                return self._ogg(audio.start, payload)
            case "mp3":
                self._mp3(payload)
                return max(audio.start, self._frames * started.frame_samples - started.pre_skip)
        return audio.start

    def _ogg(self, start: int, payload: bytes) -> int:
        if (head := payload.find(b"OpusHead")) >= 0:
            self._pre_skip = int.from_bytes(payload[head + 10 : head + 12], "little")
        page = payload.rfind(b"OggS")
        if page < 0:
            return start
        granule = int.from_bytes(payload[page + 6 : page + 14], "little")
        return max(start, (granule - self._pre_skip) * self._started.sample_rate // _OGG_RATE)

    def _mp3(self, payload: bytes) -> None:
        data, at = self._unread + payload, 0
        while at + 4 <= len(data):
            size = _frame_bytes(data[at : at + 4])
            if at + size > len(data):
                break
            self._frames += 1
            at += size
        self._unread = data[at:]


def _frame_bytes(header: bytes) -> int:
    word = int.from_bytes(header)
    version, bits, rate = word >> 19 & 3, word >> 12 & 15, word >> 10 & 3
    if word >> 21 != 0x7FF or version == 1 or bits in (0, 15) or rate == 3:
        raise ProtocolError(f"no MP3 frame begins with {header.hex()}")
    kbits = (_MPEG1 if version == 3 else _MPEG2)[bits]
    return (144 if version == 3 else 72) * kbits * 1000 // _RATES[version][rate] + (word >> 9 & 1)

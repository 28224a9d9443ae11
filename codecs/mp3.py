"""LAME: mono 16-bit PCM into MPEG layer III frames of constant bitrate. The only file that touches the library.

A stream of frames says nowhere how long it is: a decoder gives `DELAY` samples before the first one and silence after
the last. LAME makes everything 0.45 dB quieter at these bitrates, so that what its noise adds does not clip. Knows no
streams of ours and no decoder. An encoder may be used by one thread at a time.
"""

import lameenc
import numpy as np
from numpy.typing import NDArray

# Samples by which decoded audio comes late: 576 of the encoder (lame.h, lame_get_encoder_delay) and 529 of every
# decoder. libmpg123 and ffmpeg measured: the same at each of our rates.
DELAY = 1105

LEAST_FRAMES = 2  # libmpg123 takes a frame for one only where another one follows

_QUALITY = 5  # 0 best … 9; 0.0026 core per stream at 24 kHz against 0.0071 with 2
_BITRATES = {8000: 32, 16000: 48, 22050: 64, 24000: 64, 32000: 80, 44100: 96, 48000: 96}  # kbit/s

# ISO 11172-3 and 13818-3, table of the header's four bits, layer III.
_MPEG1_KBITS = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG2_KBITS = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}  # by version bits


def frame_samples(rate: int) -> int:
    """Samples per frame: MPEG 2 and 2.5, for the low rates, have half of MPEG 1's."""
    return 1152 if rate >= 32000 else 576


class Mp3Encoder:
    """One stream at `rate` Hz, one of packetizer.SAMPLE_RATES; 480 KiB of memory."""

    def __init__(self, rate: int):
        self._lame = lameenc.Encoder()
        self._lame.silence()
        self._lame.set_channels(1)
        self._lame.set_in_sample_rate(rate)
        self._lame.set_out_sample_rate(rate)
        self._lame.set_bit_rate(_BITRATES[rate])
        self._lame.set_quality(_QUALITY)
        self._unframed = b""

    def encode(self, pcm: NDArray[np.int16]) -> list[bytes]:
        """The frames that are complete; about two fewer than were pushed."""
        return self._frames(self._lame.encode(pcm.tobytes()))

    def drain(self) -> list[bytes]:
        """The rest, at least all that was pushed. Nothing may follow."""
        self._lame.encode(b"")  # else an encoder that never got anything cannot be flushed
        return self._frames(self._lame.flush())

    def _frames(self, data: bytes | bytearray) -> list[bytes]:
        """LAME gives bits as they come, a frame's last ones with those of the next frame."""
        self._unframed += data
        frames: list[bytes] = []
        while len(self._unframed) >= 4:
            size = _frame_bytes(self._unframed)
            if len(self._unframed) < size:
                break
            frames.append(self._unframed[:size])
            self._unframed = self._unframed[size:]
        return frames


def _frame_bytes(header: bytes) -> int:
    version, padding = header[1] >> 3 & 3, header[2] >> 1 & 1
    if header[0] != 0xFF or header[1] >> 5 != 7 or version == 1:
        raise ValueError(f"no MPEG frame: {header[:4].hex()}")
    kbits = (_MPEG1_KBITS if version == 3 else _MPEG2_KBITS)[header[2] >> 4]
    return (144 if version == 3 else 72) * kbits * 1000 // _RATES[version][header[2] >> 2 & 3] + padding

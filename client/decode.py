"""Payloads of one context to PCM, for clients that want samples. The only file of the client that needs decoders.

The rest of the client does not import it, so whoever only counts, forwards or records needs none.
"""

import numpy as np
from numpy.typing import NDArray

from ..codecs.opus import OpusError
from ..codecs.unpacking import unpacker
from .errors import ProtocolError
from .messages import Audio, Started

DECODABLE = ("opus", "ogg_opus", "pcm_s16le", "wav", "mulaw", "alaw", "mp3")


class Decoder:
    """Audio messages of one context, in order, to 16-bit little-endian mono PCM at `Started.sample_rate`.

    Only MP3 is held back, whole, until `finish`. An Opus stream can give up to a packet more than `Done.samples` at its
    very end, and MP3 a few frames; who needs the exact length cuts it there.
    """

    def __init__(self, started: Started) -> None:
        """Raises `ValueError` for a codec that is not in `DECODABLE`, `ImportError` where its library is missing."""
        if started.codec not in DECODABLE:
            raise ValueError(f"cannot decode {started.codec!r}, only {', '.join(DECODABLE)}")
        self._unpacker = unpacker(started.codec, started.sample_rate)
        self._skip = started.pre_skip

    def push(self, audio: Audio) -> bytes:
        """Raises `ProtocolError` for a payload that is not what was announced."""
        try:
            return self._skipped(self._unpacker.push(audio.payload))
        except (ValueError, OpusError) as broken:
            raise ProtocolError(f"audio message {audio.sequence}: {broken}") from broken

    def finish(self) -> bytes:
        """What was held back, after the last message. Raises `ProtocolError` where a stream ends too early."""
        try:
            return self._skipped(self._unpacker.finish())
        except (ValueError, OpusError) as broken:
            raise ProtocolError(f"the end of the audio: {broken}") from broken

    def _skipped(self, pcm: NDArray[np.int16]) -> bytes:
        skipped = min(self._skip, len(pcm))
        self._skip -= skipped
        return pcm[skipped:].astype("<i2", copy=False).tobytes()

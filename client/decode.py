"""Payloads of one context to PCM, for clients that want samples. The only file of the client that needs libopus.

The rest of the client does not import it, so whoever only counts, forwards or records needs no decoder.
"""

from ..codecs.opus import OpusDecoder, OpusError
from .errors import ProtocolError
from .messages import Audio, Started

DECODABLE = ("opus", "pcm_s16le")


class Decoder:
    """Audio messages of one context, in order, to 16-bit little-endian mono PCM at `Started.sample_rate`.

    Nothing is held back, so an Opus stream can give up to a packet more than `Done.samples` at its very end; who needs
    the exact length cuts it there.
    """

    def __init__(self, started: Started) -> None:
        """Raises `ValueError` for a codec that is not in `DECODABLE`."""
        if started.codec not in DECODABLE:
            raise ValueError(f"cannot decode {started.codec!r}, only {', '.join(DECODABLE)}")
        self._opus = OpusDecoder(started.sample_rate) if started.codec == "opus" else None
        self._skip_bytes = started.pre_skip * 2

    def push(self, audio: Audio) -> bytes:
        """Raises `ProtocolError` for a payload that is not what was announced."""
        if self._opus is None:
            if len(audio.payload) % 2:
                raise ProtocolError(f"audio message {audio.sequence} ends inside a sample")
            return audio.payload
        try:
            pcm = b"".join(self._opus.decode(packet).astype("<i2", copy=False).tobytes() for packet in audio.packets())
        except OpusError as broken:
            raise ProtocolError(f"audio message {audio.sequence}: {broken}") from broken
        skipped = min(self._skip_bytes, len(pcm))
        self._skip_bytes -= skipped
        return pcm[skipped:]

"""The header of a WAV file whose length nobody knows yet, and reading one away.

Knows no samples. A file that is written whole gets its header from the standard library's `wave`.
"""

import struct

UNKNOWN = 0xFFFFFFFF  # bytes; as ffmpeg writes to a pipe, and what readers take for "up to the end"

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_CHUNK = struct.Struct("<4sI")
_RIFF_BYTES = 12
_PCM = 1
_MOST_HEADER_BYTES = 4096


def stream_header(rate: int) -> bytes:
    """The one header of a stream of mono 16-bit samples at `rate` Hz; nothing but samples may follow."""
    return _HEADER.pack(
        *(b"RIFF", UNKNOWN, b"WAVE"), *(b"fmt ", 16, _PCM, 1, rate, 2 * rate, 2, 16), *(b"data", UNKNOWN)
    )


class WavReader:
    """Takes the header off a stream of mono 16-bit samples."""

    def __init__(self) -> None:
        self.rate: int | None = None  # Hz, once the header has come
        self._header: bytes | None = b""  # None: behind it

    def push(self, data: bytes) -> bytes:
        """What of `data` is samples. Raises `ValueError` for a header of something else."""
        if self._header is None:
            return data
        self._header += data
        begin = self._data_at(self._header)
        if begin is None:
            if len(self._header) > _MOST_HEADER_BYTES:
                raise ValueError("no samples after 4 KiB of WAV header")
            return b""
        samples, self._header = self._header[begin:], None
        return samples

    def _data_at(self, header: bytes) -> int | None:
        if header[:4] != b"RIFF"[: len(header)] or header[8:12] != b"WAVE"[: max(0, len(header) - 8)]:
            raise ValueError(f"no WAV header: {header[:12]!r}")
        at = _RIFF_BYTES
        while at + _CHUNK.size <= len(header):
            name, size = _CHUNK.unpack_from(header, at)
            at += _CHUNK.size
            if name == b"data":
                return at
            if name == b"fmt " and at + 16 <= len(header):
                kind, channels, self.rate, _, _, bits = struct.unpack_from("<HHIIHH", header, at)
                if (kind, channels, bits) != (_PCM, 1, 16):
                    raise ValueError(
                        f"WAV of kind {kind}, {channels} channels, {bits} bits: only mono 16-bit PCM is read"
                    )
            at += size + size % 2
        return None

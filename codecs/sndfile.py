"""libsndfile: mono 16-bit PCM into FLAC, and whole MP3 streams back into PCM. The only file that touches the library.

It comes with the extra `flac`, and is imported when first used.

    MissingLibrary
"""

import importlib.util
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLAC_FRAME_SAMPLES = 4096  # the block of libFLAC at _COMPRESSION, whatever the rate

_COMPRESSION = 0.625  # level 5 of 8, libFLAC's own default: under 0.001 core per stream at 24 kHz, like level 0
_FRAME_SYNC = b"\xff\xf8"


class MissingLibrary(ImportError):
    """soundfile is not installed; the message names the extra."""


def require() -> None:
    """Raises `MissingLibrary` where it is not installed. Loads nothing, which takes up to 0.15 s the first time."""
    if importlib.util.find_spec("soundfile") is None:
        raise MissingLibrary("soundfile is not installed; it comes with the extra: pip install 'voxgate[flac]'")


class FlacEncoder:
    """One stream at `rate` Hz. An encoder may be used by one thread at a time.

    The header says neither length nor checksum of the whole, which a stream cannot know; each frame has its own.
    """

    def __init__(self, rate: int):
        """Raises `MissingLibrary`."""
        self._sink = _Sink()
        self._file = _open(self._sink, rate)
        self._written = False
        self._header = b""

    def encode(self, pcm: NDArray[np.int16]) -> list[bytes]:
        """The frames that are complete, the header before the first one; the last one pushed is still missing."""
        self._written = self._written or len(pcm) > 0
        self._file.write(pcm)
        return self._frames()

    def drain(self) -> list[bytes]:
        """The rest. Of a stream without samples: the header alone. Nothing may follow."""
        if self._written:
            self._file.close()
            return self._frames()
        self._file.write(np.zeros(1, np.int16))  # libFLAC writes no header before it has something to say
        self._file.close()
        return [b"".join(piece for piece in self._sink.take() if not piece.startswith(_FRAME_SYNC))]

    def _frames(self) -> list[bytes]:
        """libFLAC writes each frame in one piece, and its header in several, with the first samples."""
        frames: list[bytes] = []
        for piece in self._sink.take():
            if piece.startswith(_FRAME_SYNC):
                frames.append(self._header + piece)
                self._header = b""
            else:
                self._header += piece
        return frames


def write_flac(path: str, rate: int) -> Any:
    """A file to `write` samples into and to `close`, with length and checksum. Raises `MissingLibrary`."""
    return _open(path, rate)


def read_mp3(data: bytes) -> NDArray[np.int16]:
    """The samples of a whole MP3 stream. Raises `MissingLibrary`, and `ValueError` for anything else."""
    require()
    import soundfile

    try:
        pcm, _ = soundfile.read(io.BytesIO(data), dtype="int16", always_2d=True)
    except soundfile.LibsndfileError as broken:
        raise ValueError(str(broken)) from broken
    return pcm[:, 0].astype(np.int16)


def _open(file: Any, rate: int) -> Any:
    require()
    import soundfile

    return soundfile.SoundFile(
        file, "w", samplerate=rate, channels=1, format="FLAC", subtype="PCM_16", compression_level=_COMPRESSION
    )


class _Sink:
    """A file as libsndfile wants it. What is written a second time, the header in the end, is too late for a stream."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0
        self._end = 0

    def write(self, data: Any) -> int:
        piece = bytes(data)
        if self._at == self._end:
            self._pieces.append(piece)
            self._end += len(piece)
        self._at += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = (0, self._at, self._end)[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def take(self) -> list[bytes]:
        pieces, self._pieces = self._pieces, []
        return pieces

"""Where the audio of `voxgate say` goes: a file, a pipe or a program that plays it. Knows no connection."""

import asyncio
import os
import shutil
import sys
import wave
from typing import Protocol

from ...codecs import sndfile

DEFAULT_FILE = "voxgate.wav"

RECORDED = {".ogg": "ogg_opus", ".opus": "ogg_opus", ".mp3": "mp3"}  # files that are what comes over the wire
WRITTEN = (".wav", ".flac", ".pcm")  # files made here, of samples
OUTPUTS = f"{', '.join((*WRITTEN, *RECORDED))}, or - for raw 16-bit mono on stdout, which .pcm is, too"

# In order of preference; all take raw mono 16-bit samples from stdin. pw-play is second, having learned it only lately.
PLAYERS: dict[str, tuple[str, ...]] = {
    "paplay": ("--raw", "--rate={rate}", "--channels=1", "--format=s16le", "--latency-msec=60"),
    "pw-play": ("--raw", "--rate={rate}", "--channels=1", "--format=s16", "-"),
    "aplay": ("-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", "{rate}", "-"),
    "ffplay": ("-nodisp", "-autoexit", "-loglevel", "error", "-f", "s16le", "-ar", "{rate}", "-i", "-"),
}


def choose_out(path: str | None, play: bool, codec: str | None = None) -> "Out":
    """Where the audio goes. Raises `ValueError` where that is impossible, also with `codec`. Opens nothing yet."""
    if codec == "mp3" and not (path or "").lower().endswith(".mp3"):
        _require_library("decode MP3")
    if path is None:
        player = next(filter(shutil.which, PLAYERS), None)
        if player is not None:
            return Player(player)
        if play:
            raise ValueError(f"nothing to play with: none of {', '.join(PLAYERS)} is installed; write a file with -o")
        print(f"voxgate say: nothing to play with, writing {DEFAULT_FILE}", file=sys.stderr)
        path = DEFAULT_FILE
    suffix = os.path.splitext(path)[1].lower()
    if suffix in RECORDED:
        if codec not in (None, RECORDED[suffix]):
            raise ValueError(f"{path!r} takes --codec {RECORDED[suffix]} as it comes, not {codec}")
        return Recording(path, RECORDED[suffix])
    if path != "-" and suffix not in WRITTEN:
        raise ValueError(f"cannot tell the format of {path!r}: {OUTPUTS}")
    if suffix == ".flac":
        _require_library("write FLAC")
    return File(path, suffix)


def _require_library(doing: str) -> None:
    try:
        sndfile.require()
    except sndfile.MissingLibrary as missing:
        raise ValueError(f"cannot {doing}: {missing}") from None


class Out(Protocol):
    """Takes 16-bit little-endian mono PCM, or with a `codec` the bytes of that codec as they come.

    `close` gets the exact length in samples, None when it never came.
    """

    codec: str | None

    async def open(self, sample_rate: int) -> None: ...

    async def write(self, pcm: bytes) -> None: ...

    async def close(self, samples: int | None) -> None: ...


class File:
    """A .wav or .flac file with an exact header, or bare samples into a file or, for `-`, stdout.

    Written as it comes but for a tail, which waits for the length of the context.
    """

    codec: str | None = None

    def __init__(self, path: str, suffix: str) -> None:
        self._path = path
        self._make_writer = {".wav": _WavWriter, ".flac": _FlacWriter}.get(suffix, _RawWriter)
        self._writer: _Writer | None = None
        self._tail = b""
        self._tail_bytes = 0
        self._written_bytes = 0

    async def open(self, sample_rate: int) -> None:
        self._writer = self._make_writer(self._path, sample_rate)
        self._tail_bytes = sample_rate // 4 * 2  # longer than the longest packet with its pre-skip

    async def write(self, pcm: bytes) -> None:
        assert self._writer is not None
        kept = self._tail + pcm
        certain = max(0, len(kept) - self._tail_bytes)
        self._tail = kept[certain:]
        self._written_bytes += certain
        self._writer.write(kept[:certain])

    async def close(self, samples: int | None) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        rest = len(self._tail) if samples is None else samples * 2 - self._written_bytes
        try:
            writer.write(self._tail[: max(0, rest)])
        finally:
            writer.close()


class Recording:
    """A file of just the bytes that come, whose codec is a file format."""

    def __init__(self, path: str, codec: str) -> None:
        self.codec: str | None = codec
        self._path = path
        self._writer: _Writer | None = None

    async def open(self, sample_rate: int) -> None:
        self._writer = _RawWriter(self._path, sample_rate)

    async def write(self, pcm: bytes) -> None:
        assert self._writer is not None
        self._writer.write(pcm)

    async def close(self, samples: int | None) -> None:
        if self._writer is not None:
            self._writer.close()


class _Writer(Protocol):
    def write(self, pcm: bytes) -> None: ...

    def close(self) -> None: ...


class _WavWriter:
    def __init__(self, path: str, sample_rate: int) -> None:
        self._wave = wave.open(path, "wb")  # noqa: SIM115
        self._wave.setparams((1, 2, sample_rate, 0, "NONE", ""))

    def write(self, pcm: bytes) -> None:
        self._wave.writeframesraw(pcm)

    def close(self) -> None:
        self._wave.close()


class _FlacWriter:
    def __init__(self, path: str, sample_rate: int) -> None:
        self._file = sndfile.write_flac(path, sample_rate)

    def write(self, pcm: bytes) -> None:
        self._file.buffer_write(pcm, dtype="int16")

    def close(self) -> None:
        self._file.close()


class _RawWriter:
    """Unbuffered: what listens on a pipe hears at once, and a broken pipe leaves nothing to be flushed at exit."""

    def __init__(self, path: str, sample_rate: int) -> None:
        stdout = path == "-"
        self._file = open(sys.stdout.fileno() if stdout else path, "wb", buffering=0, closefd=not stdout)  # noqa: SIM115

    def write(self, pcm: bytes) -> None:
        left = memoryview(pcm)
        while left:
            left = left[self._file.write(left) :]

    def close(self) -> None:
        self._file.close()


class Player:
    """A program that plays what it is piped; how fast it takes it is how fast we read."""

    codec: str | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self._process: asyncio.subprocess.Process | None = None

    async def open(self, sample_rate: int) -> None:
        arguments = [argument.format(rate=sample_rate) for argument in PLAYERS[self.name]]
        # A session of its own: Ctrl+C is for us, and we silence it.
        self._process = await asyncio.create_subprocess_exec(
            self.name,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )

    async def write(self, pcm: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(pcm)
        try:
            await self._process.stdin.drain()
        except ConnectionError:
            raise self._stopped() from None

    async def close(self, samples: int | None) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        if await self._process.wait() != 0:
            raise self._stopped()
        self._process = None

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()

    def _stopped(self) -> OSError:
        self._process = None
        return OSError(f"{self.name} stopped playing; is there a sound device? -o FILE writes a file")

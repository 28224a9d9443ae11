"""`voxgate say`: speak a text through a server, to the sound card, a file or a pipe. A client like any other.

Owns the ways out of the audio and what is told about it on stderr. Knows nothing of the server but its address.
"""

import argparse
import asyncio
import codecs
import os
import shutil
import sys
import threading
import time
import wave
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from ...client import (
    Audio,
    Cancelled,
    Context,
    Done,
    Error,
    PlayoutClock,
    Started,
    TextWarning,
    VoiceError,
    connect,
)
from ...client.connection import stream_url
from ...client.decode import DECODABLE, Decoder

DEFAULT_FILE = "voxgate.wav"
_STDIN = 0
FILE_LEAD_MS = 30_000  # the most a server grants: nobody listens in real time, so sooner is better
GOODBYE_SECONDS = 2.0  # how long an interrupted `say` waits for the server to confirm

# In order of preference; all take raw mono 16-bit samples from stdin. pw-play is second, having learned it only lately.
PLAYERS: dict[str, tuple[str, ...]] = {
    "paplay": ("--raw", "--rate={rate}", "--channels=1", "--format=s16le", "--latency-msec=60"),
    "pw-play": ("--raw", "--rate={rate}", "--channels=1", "--format=s16", "-"),
    "aplay": ("-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", "{rate}", "-"),
    "ffplay": ("-nodisp", "-autoexit", "-loglevel", "error", "-f", "s16le", "-ar", "{rate}", "-i", "-"),
}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("say", help="speak a text through a server")
    parser.add_argument("text", nargs="?", help="what to say; without it stdin is spoken as it arrives")
    out = parser.add_mutually_exclusive_group()
    out.add_argument("-o", "--output", metavar="FILE", help=".wav, .pcm (raw 16-bit mono) or - for raw on stdout")
    out.add_argument("--play", action="store_true", help=f"play it with one of {', '.join(PLAYERS)}")
    parser.add_argument("--url", default="ws://127.0.0.1:8080", help="the server (default: %(default)s)")
    parser.add_argument("--key", default=os.environ.get("VOXGATE_KEY"), help="API key (default: $VOXGATE_KEY)")
    parser.add_argument("--voice", help="a voice of `voxgate voices` (default: the server's)")
    parser.add_argument("--codec", choices=DECODABLE, help="on the wire (default: opus to play, pcm_s16le for files)")
    parser.add_argument("--speed", type=float, help="1.0 is natural")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    try:
        out = choose_out(args.output, args.play)
        stream_url(args.url)
    except ValueError as wrong:
        return _complain(wrong, 2)
    try:
        return asyncio.run(_say(args, out))
    except KeyboardInterrupt:
        return 130
    except (VoiceError, OSError) as failed:
        return _complain(failed, 1)


def choose_out(path: str | None, play: bool) -> "File | Player":
    """Where the audio goes. Raises `ValueError` where that is impossible. Opens nothing yet."""
    if path is None:
        player = next(filter(shutil.which, PLAYERS), None)
        if player is not None:
            return Player(player)
        if play:
            raise ValueError(f"nothing to play with: none of {', '.join(PLAYERS)} is installed; write a file with -o")
        print(f"voxgate say: nothing to play with, writing {DEFAULT_FILE}", file=sys.stderr)
        path = DEFAULT_FILE
    if path != "-" and not path.endswith((".wav", ".pcm")):
        raise ValueError(f"cannot tell the format of {path!r}: .wav, .pcm or - is possible")
    return File(path)


async def _say(args: argparse.Namespace, out: "File | Player") -> int:
    playing = isinstance(out, Player)
    codec = args.codec or ("opus" if playing else "pcm_s16le")
    lead_ms = None if playing else FILE_LEAD_MS
    async with connect(args.url, args.key) as connection:
        context = await connection.start(voice=args.voice, codec=codec, speed=args.speed, lead_ms=lead_ms)
        hearing = Hearing(out)
        writing = asyncio.create_task(_write(context, args.text, hearing))
        try:
            await hearing.listen(context)
            await out.close(hearing.samples)  # a player has seconds left to play; an interrupt of that is one, too
        except asyncio.CancelledError:
            await _interrupt(context, hearing)
            raise
        finally:
            writing.cancel()
            await out.close(hearing.samples)
    print(hearing.summary(), file=sys.stderr)
    return 0


async def _write(context: Context, text: str | None, hearing: "Hearing") -> None:
    """The text into the context. A connection that fails meanwhile is told by the listening side."""
    with suppress(VoiceError):
        if text is not None:
            hearing.asked_at = time.monotonic()
            await context.send(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        else:
            async for piece in _stdin():
                hearing.asked_at = hearing.asked_at or time.monotonic()
                await context.send(piece)
        hearing.complete_at = time.monotonic()
        await context.end()


async def _stdin() -> AsyncIterator[str]:
    """Text as it arrives, cut nowhere inside a character. A thread reads, because a file cannot be awaited."""
    if os.isatty(_STDIN):
        print("voxgate say: speaking what you type; Ctrl+D ends", file=sys.stderr)
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    room = threading.Semaphore(1)  # at most one piece waits in the queue: the reader waits where the socket does

    def hand_over(piece: str | None) -> None:
        room.acquire()
        loop.call_soon_threadsafe(pieces.put_nowait, piece)

    def read() -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with suppress(RuntimeError):  # the loop is gone: nobody wants more
            with suppress(OSError):
                while data := os.read(_STDIN, 4096):
                    hand_over(decoder.decode(data))
            hand_over(decoder.decode(b"", final=True))
            hand_over(None)

    threading.Thread(target=read, daemon=True).start()  # a daemon, so that an interrupt need not wait for input
    while (piece := await pieces.get()) is not None:
        room.release()
        if piece:
            yield piece


async def _interrupt(context: Context, hearing: "Hearing") -> None:
    """Barge-in: silence first, then tell the server what was heard."""
    if isinstance(hearing.out, Player):
        hearing.out.kill()
    with suppress(VoiceError, TimeoutError):
        async with asyncio.timeout(GOODBYE_SECONDS):
            await context.cancel(played=hearing.heard(time.monotonic()))
            async for event in context:
                if isinstance(event, Cancelled):
                    print(f"\nvoxgate say: stopped after “{event.text}”", file=sys.stderr)


@dataclass(slots=True)
class Hearing:
    """The listening side of one context, and what it noticed."""

    out: "Out"
    asked_at: float | None = None  # the first text went out
    complete_at: float | None = None  # the last text went out
    clock: PlayoutClock | None = None
    samples: int | None = None  # of the whole context, once that is known
    received: int = 0  # samples
    underruns: int = 0
    underrun_seconds: float = 0.0

    async def listen(self, context: Context) -> None:
        """Until the context ends. Raises `VoiceError`, and `OSError` where the way out breaks."""
        decoder: Decoder | None = None
        async for event in context:
            match event:
                case Started():
                    decoder = Decoder(event)
                    self.clock = PlayoutClock(event.sample_rate, asked_at=self.asked_at or time.monotonic())
                    await self.out.open(event.sample_rate)
                case Audio() if decoder is not None:
                    self._noted(event)
                    pcm = decoder.push(event)
                    self.received += len(pcm) // 2
                    await self.out.write(pcm)
                case TextWarning(message=message):
                    print(f"voxgate say: {message}", file=sys.stderr)
                case Error(code=code, message=message):
                    raise VoiceError(f"{code}: {message}")
                case Done(samples=samples):
                    self.samples = samples

    def heard(self, now: float) -> int | None:
        return None if self.clock is None else self.clock.heard(self.received, now)

    def summary(self) -> str:
        if self.clock is None or self.samples is None or self.clock.time_to_first_audio is None:
            return "nothing to speak"
        spoken = self.samples / self.clock.sample_rate
        told = f"first audio after {self.clock.time_to_first_audio * 1000:.1f} ms, {spoken:.2f} s spoken, "
        if not self.underruns:
            return told + "no underruns"
        return told + f"{self.underruns} underruns of {self.underrun_seconds * 1000:.0f} ms together"

    def _noted(self, audio: Audio) -> None:
        """Count what came late, unless it waited for text: then it is no fault of the server."""
        assert self.clock is not None
        gap = self.clock.feed(audio.start, audio.received_at)
        if gap and self.complete_at is not None and audio.received_at - gap >= self.complete_at:
            self.underruns += 1
            self.underrun_seconds += gap


# Ways out.


class Out(Protocol):
    """Takes 16-bit little-endian mono PCM. `close` gets the exact length in samples, None when it never came."""

    async def open(self, sample_rate: int) -> None: ...

    async def write(self, pcm: bytes) -> None: ...

    async def close(self, samples: int | None) -> None: ...


class File:
    """A .wav file with an exact header, or bare samples into a file or, for `-`, stdout.

    Written as it comes but for a tail, which waits for the length of the context.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._writer: _Writer | None = None
        self._tail = b""
        self._tail_bytes = 0
        self._written_bytes = 0

    async def open(self, sample_rate: int) -> None:
        self._writer = _WavWriter(self._path, sample_rate) if self._path.endswith(".wav") else _RawWriter(self._path)
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


class _RawWriter:
    """Unbuffered: what listens on a pipe hears at once, and a broken pipe leaves nothing to be flushed at exit."""

    def __init__(self, path: str) -> None:
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


def _complain(about: Exception, code: int) -> int:
    print(f"voxgate say: {about}", file=sys.stderr)
    return code

"""`voxgate say`: speak a text through a server, to the sound card, a file or a pipe. A client like any other.

Owns what goes to the server and what is told about it on stderr. Knows nothing of the server but its address, and
nothing of where the audio goes (say_out.py).
"""

import argparse
import asyncio
import codecs
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

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
from .say_out import OUTPUTS, PLAYERS, Out, Player, choose_out

_STDIN = 0
FILE_LEAD_MS = 30_000  # the most a server grants: nobody listens in real time, so sooner is better
GOODBYE_SECONDS = 2.0  # how long an interrupted `say` waits for the server to confirm


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("say", help="speak a text through a server")
    parser.add_argument("text", nargs="?", help="what to say; without it stdin is spoken as it arrives")
    out = parser.add_mutually_exclusive_group()
    out.add_argument("-o", "--output", metavar="FILE", help=OUTPUTS)
    out.add_argument("--play", action="store_true", help=f"play it with one of {', '.join(PLAYERS)}")
    parser.add_argument("--url", default="ws://127.0.0.1:8080", help="the server (default: %(default)s)")
    parser.add_argument("--key", default=os.environ.get("VOXGATE_KEY"), help="API key (default: $VOXGATE_KEY)")
    parser.add_argument("--voice", help="a voice of `voxgate voices` (default: the server's)")
    parser.add_argument("--codec", choices=DECODABLE, help="on the wire (default: opus to play, pcm_s16le for files)")
    parser.add_argument("--speed", type=float, help="1.0 is natural")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    try:
        out = choose_out(args.output, args.play, args.codec)
        stream_url(args.url)
    except ValueError as wrong:
        return _complain(wrong, 2)
    try:
        return asyncio.run(_say(args, out))
    except KeyboardInterrupt:
        return 130
    except (VoiceError, OSError) as failed:
        return _complain(failed, 1)


async def _say(args: argparse.Namespace, out: Out) -> int:
    playing = isinstance(out, Player)
    codec = args.codec or out.codec or ("opus" if playing else "pcm_s16le")
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

    out: Out
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
                    decoder = Decoder(event) if self.out.codec is None else None
                    self.clock = PlayoutClock(event.sample_rate, asked_at=self.asked_at or time.monotonic())
                    await self.out.open(event.sample_rate)
                case Audio() if decoder is not None:
                    self._noted(event)
                    await self._write(decoder.push(event))
                case Audio(start=start, payload=payload):
                    self._noted(event)
                    self.received = start  # what came before it; how much it adds only a decoder knows
                    await self.out.write(payload)
                case TextWarning(message=message):
                    print(f"voxgate say: {message}", file=sys.stderr)
                case Error(code=code, message=message):
                    raise VoiceError(f"{code}: {message}")
                case Done(samples=samples):
                    self.samples = samples
                    if decoder is not None:
                        await self._write(decoder.finish())

    async def _write(self, pcm: bytes) -> None:
        self.received += len(pcm) // 2
        await self.out.write(pcm)

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


def _complain(about: Exception, code: int) -> int:
    print(f"voxgate say: {about}", file=sys.stderr)
    return code

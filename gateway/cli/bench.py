"""`voxgate bench`: what this machine does, beside what is promised. It starts a server and speaks to it as a client.

`ttfa` compares time to first audio through the socket with the bare engine and encoder on the same first segment, in
one run and in turns, so that a noisy machine is noisy for both. Every sentence holds words in an order that was never
said before, so no cache can answer.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import numpy as np
from numpy.typing import NDArray

from ...client import Audio, Connection, VoiceError, connect
from .bench_texts import Names, five_thousand_characters, forty_words, seven_words, twenty_characters

START_SECONDS = 120.0
IDLE_CONNECTIONS = 500
CANCELS = 12
PAUSE_SECONDS = 0.1  # between two measurements, for what the last one left behind to be over

PROMISED_OVERHEAD_MS = 3.0
PROMISED_LONG_SENTENCE_MS = 25.0
PROMISED_RATIO = 1.2
PROMISED_CANCEL_MS = 20.0  # beyond one engine step
PROMISED_IDLE_KIB = 40.0


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("bench", help="measure this machine against what is promised")
    benchmarks = parser.add_subparsers(title="benchmarks", metavar="BENCHMARK", required=True)
    ttfa = benchmarks.add_parser("ttfa", help="time to first audio, cancel to silence, memory of idle connections")
    ttfa.add_argument("--rounds", type=_positive, default=50, help="measurements per figure (default: %(default)s)")
    ttfa.add_argument("--json", metavar="FILE", help="write the figures as JSON, too; - for stdout, without the table")
    ttfa.add_argument("--check", action="store_true", help="exit with 1 when a promise is missed")
    ttfa.set_defaults(func=run)
    from . import bench_afternoon, bench_capacity, bench_quality

    bench_capacity.register(benchmarks)
    bench_quality.register(benchmarks)
    bench_afternoon.register(benchmarks)


def run(args: argparse.Namespace) -> int:
    try:
        figures = asyncio.run(_measure(args.rounds))
    except KeyboardInterrupt:
        return 130
    except (VoiceError, OSError) as failed:
        print(f"voxgate bench: {failed}", file=sys.stderr)
        return 1
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    record = json.dumps({"rounds": args.rounds, **machine, "figures": [asdict(figure) for figure in figures]}, indent=2)
    if args.json == "-":
        print(record)
    else:
        print(table(figures))
        if args.json:
            Path(args.json).write_text(record + "\n")
    return int(args.check and missed(figures))


# What is told.


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report. `kept` is None for a figure nothing is promised about."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    promise: str = ""
    kept: bool | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kept", None if self.limit is None else self.value <= self.limit)


def missed(figures: list[Figure]) -> bool:
    return any(figure.kept is False for figure in figures)


def table(figures: list[Figure]) -> str:
    width = max(len(figure.name) for figure in figures)
    return "\n".join(_line(figure, width) for figure in figures)


def _line(figure: Figure, width: int) -> str:
    measured = f"{figure.name:{width}}  {figure.value:8.2f} {figure.unit:3}"
    if figure.limit is None:
        return measured.rstrip()
    verdict = "kept" if figure.kept else "MISSED"
    return f"{measured}  {verdict:6}  {figure.limit:.2f} {figure.unit} promised: {figure.promise}"


# What is measured.


@dataclass(slots=True)
class Case:
    """One kind of text, and its times in ms, one of each per round."""

    name: str
    text: Callable[[Names], str]
    synthesize: list[float] = field(default_factory=list)
    encode_first: list[float] = field(default_factory=list)  # the first packet of the segment
    encode_all: list[float] = field(default_factory=list)  # all packets of the segment
    wire: list[float] = field(default_factory=list)  # text sent whole -> first audio received

    def raw(self, encode: list[float]) -> float:
        return statistics.median(map(sum, zip(self.synthesize, encode, strict=True)))


async def _measure(rounds: int) -> list[Figure]:
    seven = Case("7 words", seven_words)
    forty = Case("40 words", forty_words)
    short = Case("20 characters", twenty_characters)
    long = Case("5,000 characters", five_thousand_characters)
    names = Names()
    raw = RawVoice()
    async with server() as (url, process_id), connect(url) as connection:
        for round in range(-3, rounds):  # what is below 0 is for warming up
            for case in (seven, forty, short, long):
                await _take_turns(case, case.text(names), raw, connection, warm=round >= 0)
        silences = [
            await _cancel_to_silence(five_thousand_characters(names), at % 3, connection) for at in range(CANCELS)
        ]
        late = connection.dropped
        idle_kib = await _idle_connection_kib(url, process_id)
    return [
        *_first_audio(seven),
        *_first_audio(forty),
        Figure(
            "first audio, 40 words, p50, absolute",
            statistics.median(forty.wire),
            "ms",
            PROMISED_LONG_SENTENCE_MS,
            "a clause ends within the first 12 words",
        ),
        Figure("first audio, 20 characters, p50", statistics.median(short.wire), "ms"),
        Figure("first audio, 5,000 characters, p50", statistics.median(long.wire), "ms"),
        Figure(
            "first audio, 5,000 over 20 characters",
            statistics.median(long.wire) / statistics.median(short.wire),
            "x",
            PROMISED_RATIO,
            "the length of the text does not matter",
        ),
        Figure(
            f"cancel to last audio, worst of {CANCELS}",
            max(silences),
            "ms",
            statistics.median(seven.synthesize) + PROMISED_CANCEL_MS,
            "one engine step + 20 ms",
        ),
        Figure("audio messages after `cancelled`", late, "", 0, "none"),
        *([] if idle_kib is None else [_idle_figure(idle_kib)]),
    ]


def _first_audio(case: Case) -> list[Figure]:
    first, whole = case.raw(case.encode_first), case.raw(case.encode_all)
    return [
        Figure(f"raw, {case.name}, engine, p50", statistics.median(case.synthesize), "ms"),
        Figure(f"raw, {case.name}, engine + first packet, p50", first, "ms"),
        Figure(f"raw, {case.name}, engine + whole segment encoded, p50", whole, "ms"),
        Figure(
            f"first audio, {case.name}, p50",
            statistics.median(case.wire),
            "ms",
            whole + PROMISED_OVERHEAD_MS,
            "raw engine + encoder for the first segment + 3 ms",
        ),
        Figure(f"first audio, {case.name}, p95", sorted(case.wire)[len(case.wire) * 95 // 100], "ms"),
    ]


def _idle_figure(kib: float) -> Figure:
    return Figure(
        f"memory per idle connection, over {IDLE_CONNECTIONS}", kib, "KiB", PROMISED_IDLE_KIB, "40 KiB of the gateway"
    )


class RawVoice:
    """The engine and the encoder in this process, with nothing around them."""

    def __init__(self) -> None:
        # Here, not above: every other command would load the model's libraries, too.
        from ...codecs.packetizer import Packetizer, choose_format
        from ...synth.engines.hibari import HibariEngine
        from ...synth.segment import Style
        from ...synth.text.segmenter import Segmenter

        self._engine = HibariEngine()
        self._engine.warm()
        self._style = Style(self._engine.info.voices[0].id)
        self._segmenter = Segmenter
        rate = self._engine.info.sample_rate
        form = choose_format("opus", 24000, 20, rate)
        self._packetizer = lambda: Packetizer(form, rate)
        self._first_samples = form.frame_samples * -(-rate // form.sample_rate)

    @property
    def sample_rate(self) -> int:
        return self._engine.info.sample_rate

    def synthesize(self, text: str) -> NDArray[np.int16]:
        """All of `text` by the bare engine: cut into sentences only, as its own front end does it."""
        from ...synth.segment import Boundary, Segment

        segment = Segment(0, text, 0, len(text), Boundary.START, Boundary.END)
        return self._engine.synthesize(segment, self._style).pcm

    def encode(self, pcm: NDArray[np.int16]) -> None:
        """All of `pcm` by the encoder as it ships."""
        self._packetizer().push(pcm)

    def speak(self, text: str) -> tuple[float, float, float]:
        """Synthesize the first segment of `text`, encode its first packet, encode all of it: ms each."""
        segmenter = self._segmenter()
        segment = (segmenter.push(text) + segmenter.end())[0]
        began_at = time.perf_counter()
        pcm = self._engine.synthesize(segment, self._style).pcm
        spoken_at = time.perf_counter()
        self._packetizer().push(pcm[: self._first_samples])
        first_at = time.perf_counter()
        self._packetizer().push(pcm)
        return (
            (spoken_at - began_at) * 1000,
            (first_at - spoken_at) * 1000,
            (time.perf_counter() - first_at) * 1000,
        )


async def _take_turns(case: Case, text: str, raw: RawVoice, connection: Connection, *, warm: bool) -> None:
    """The same text raw and through the socket, one after the other."""
    synthesize, encode_first, encode_all = raw.speak(text)
    wire = await _first_audio_ms(text, connection)
    if warm:
        case.synthesize.append(synthesize)
        case.encode_first.append(encode_first)
        case.encode_all.append(encode_all)
        case.wire.append(wire)


async def _first_audio_ms(text: str, connection: Connection) -> float:
    context = await connection.start(codec="opus")
    asked_at = time.monotonic()
    await context.send(text)
    await context.end()
    first_at = None
    async for event in context:
        if isinstance(event, Audio) and first_at is None:
            first_at = event.received_at
            await context.cancel()
    await asyncio.sleep(PAUSE_SECONDS)
    if first_at is None:
        raise VoiceError(f"the server had nothing to say to {text[:40]!r}")
    return (first_at - asked_at) * 1000


async def _cancel_to_silence(text: str, after: int, connection: Connection) -> float:
    """From the cancel, sent on audio message `after`, to the last audio message received, in ms.

    The first messages are the burst up to the lead, those behind them are paced.
    """
    context = await connection.start(codec="opus")
    await context.send(text)
    await context.end()
    cancelled_at, last_at = None, 0.0
    async for event in context:
        if isinstance(event, Audio):
            last_at = event.received_at
            if cancelled_at is None and event.sequence >= after:
                cancelled_at = time.monotonic()
                await context.cancel()
    await asyncio.sleep(PAUSE_SECONDS)  # what comes now comes after `cancelled`, and the connection counts it
    return max(0.0, last_at - (cancelled_at or last_at)) * 1000


async def _idle_connection_kib(url: str, process_id: int) -> float | None:
    """Resident memory of the gateway process per connection; None where the system does not tell it (not Linux)."""
    async with AsyncExitStack() as held:
        await _hold(held, url, IDLE_CONNECTIONS // 5)  # what only the first ones cost
        before = _resident_kib(process_id)
        await _hold(held, url, IDLE_CONNECTIONS)
        after = _resident_kib(process_id)
    return None if before is None or after is None else (after - before) / IDLE_CONNECTIONS


async def _hold(held: AsyncExitStack, url: str, count: int) -> None:
    for _ in range(count):
        await held.enter_async_context(connect(url))
    await asyncio.sleep(PAUSE_SECONDS)


def _resident_kib(process_id: int) -> float | None:
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return None
    return next((float(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")), None)


# The server.


@asynccontextmanager
async def server(*arguments: str) -> AsyncIterator[tuple[str, int]]:
    """A server of our own: address and process id. Raises `OSError` when it does not come up."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOXGATE_")}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "voxgate", "serve", "--host", "127.0.0.1", "--port", "0"),
            *arguments,
            cwd=folder,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                url = await _address(process)
                if url is None or not await _ready(url, process):
                    log.seek(0)
                    status = await process.wait()
                    raise OSError(f"the server did not start (exit {status}): {log.read()[-2000:].strip()}")
            yield url, process.pid
        finally:
            await _stop(process)


async def _address(process: asyncio.subprocess.Process) -> str | None:
    assert process.stdout is not None
    async for line in process.stdout:
        if b"listening on" in line:
            return line.split()[-1].decode()
    return None


async def _ready(url: str, process: asyncio.subprocess.Process) -> bool:
    """Whether it became ready; False when it ended instead."""
    while process.returncode is None:
        try:
            await asyncio.to_thread(build_opener(ProxyHandler({})).open, f"{url}/health/ready", timeout=5)
        except URLError:
            await asyncio.sleep(0.05)
        else:
            return True
    return False


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(10):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number

"""`voxgate bench capacity`: how many listeners this machine serves, beside what engine and encoder alone would allow.

The limit is computed from the cost of the bare engine and of libopus with the shipped settings, measured in this run
before and after; the plateau is found by closed listeners in real time, with the load tool in a process of its own on
the same cores.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...client import VoiceError
from ...loadtest.corpus import TextMaker
from ...loadtest.plan import DEFAULT_MIX
from ..supervisor import cores
from .bench import Figure, RawVoice, missed, server, table

RAMP_S = 8.0
STEP_S = 15.0  # at each level while the plateau is looked for …
FIRST_LEVEL, STEP = 0.4, 0.08  # … from this share of the limit, in steps of this share
FEW, FEW_S = 10, 60.0  # streams, to compare the time to first audio with; so long, because they begin so seldom
# Of admission only the forecast is left: the limit is what is looked for.
UNLIMITED = "--max-utterances", "100000", "--min-utterances", "100000"
# Texts such as the listeners ask for, in the same proportions.
RAW_TEXTS = [kind for kind, weight in DEFAULT_MIX for _ in range(round(weight * 0.3))]

GAPLESS = 0.995
SLOWEST_FIRST_AUDIO_S = 0.100
PROMISED_SHARE = 0.65
PROMISED_CPU = 1.2
PROMISED_FLATNESS = 1.2


@dataclass(frozen=True, slots=True)
class Level:
    """What a number of listeners heard, and what it cost the server."""

    streams: int
    gapless: float  # share of all utterances asked for: one that is refused is not heard without a gap either
    first_audio_p50_s: float
    first_audio_p95_s: float
    refused: int  # and errors
    cpu_per_audio_s: float
    client_cpu_share: float

    @property
    def holds(self) -> bool:
        return self.gapless >= GAPLESS and self.first_audio_p95_s <= SLOWEST_FIRST_AUDIO_S


def register(benchmarks: Any) -> None:
    """Adds the benchmark to those of `voxgate bench`."""
    parser = benchmarks.add_parser("capacity", help="how many listeners at once, beside what engine and encoder allow")
    parser.add_argument("--duration", type=float, default=60.0, metavar="S", help="at the plateau (%(default)g)")
    parser.add_argument("--gateways", default="1", metavar="N", help="gateway processes of the server (%(default)s)")
    parser.add_argument("--workers", default="0", metavar="M", help="worker processes of the server (one per core)")
    parser.add_argument(
        "--json", metavar="FILE", help="write the figures as JSON, too; - for stdout, without the table"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 when a promise is missed")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """The exit status: 1 when the benchmark could not run, or with `--check` when a promise is missed."""
    try:
        figures, levels = asyncio.run(_measure(args))
    except KeyboardInterrupt:
        return 130
    except (VoiceError, OSError) as failed:
        print(f"voxgate bench: {failed}", file=sys.stderr)
        return 1
    record = {
        "figures": [{"name": figure.name, "value": figure.value, "unit": figure.unit} for figure in figures],
        "levels": levels,
    }
    if args.json == "-":
        print(json.dumps(record, indent=2))
    else:
        print(table(figures))
        if args.json:
            Path(args.json).write_text(json.dumps(record, indent=2) + "\n")
    return int(args.check and missed(figures))


async def _measure(args: argparse.Namespace) -> tuple[list[Figure], list[dict[str, Any]]]:
    raw = [_raw_cost(seed=1)]
    limit = cores() / sum(raw[0])
    tried: list[Level] = []
    arguments = ("--gateways", args.gateways, "--workers", args.workers, *UNLIMITED)
    async with server(*arguments) as (url, process_id):
        few = await _level(url, process_id, FEW, FEW_S, tried)
        plateau = await _plateau(url, process_id, limit, args.duration, tried)
    raw.append(_raw_cost(seed=2))
    engine_s, encoder_s = (statistics.mean(costs) for costs in zip(*raw, strict=True))
    limit = cores() / (engine_s + encoder_s)
    return _figures(engine_s, encoder_s, limit, few, plateau), [_told(level) for level in tried]


def _figures(engine_s: float, encoder_s: float, limit: float, few: Level, plateau: Level) -> list[Figure]:
    cpu = plateau.cpu_per_audio_s / (engine_s + encoder_s)
    flatness = plateau.first_audio_p50_s / few.first_audio_p50_s
    return [
        Figure("raw engine, CPU per second of audio", engine_s * 1000, "ms"),
        Figure("raw encoder, CPU per second of audio", encoder_s * 1000, "ms"),
        Figure("limit: cores over both", limit, "streams"),
        Figure("plateau", plateau.streams, "streams"),
        Figure("limit short of the plateau", 1 - plateau.streams / limit, "", 1 - PROMISED_SHARE, "0.65 of the limit"),
        Figure("gaps, share of utterances", 1 - plateau.gapless, "", 1 - GAPLESS, "99.5 % without a gap"),
        Figure(f"first audio at {FEW} streams, p50", few.first_audio_p50_s * 1000, "ms"),
        Figure("first audio at the plateau, p50", plateau.first_audio_p50_s * 1000, "ms"),
        Figure("first audio, plateau over few, p50", flatness, "x", PROMISED_FLATNESS, "flat"),
        Figure(
            "first audio at the plateau, p95",
            plateau.first_audio_p95_s * 1000,
            "ms",
            SLOWEST_FIRST_AUDIO_S * 1000,
            "100 ms",
        ),
        Figure("server CPU over raw, at the plateau", cpu, "x", PROMISED_CPU, "all processes counted"),
        Figure("load tool's CPU, share of a core", plateau.client_cpu_share, ""),
    ]


async def _plateau(url: str, process_id: int, limit: float, duration: float, tried: list[Level]) -> Level:
    """The highest level that holds for `duration`, looked for upwards in short runs, then confirmed downwards."""
    best = 0
    for streams in _levels(limit):
        found = await _level(url, process_id, streams, STEP_S, tried)
        if not found.holds:
            break
        best = streams
    step = max(1, round(limit * STEP / 2))
    streams = best or round(limit * FIRST_LEVEL)
    while True:
        found = await _level(url, process_id, streams, duration, tried)
        if found.holds or streams <= step:
            return found
        streams -= step


def _levels(limit: float) -> Iterator[int]:
    share = FIRST_LEVEL
    while share <= 1.2:
        yield round(limit * share)
        share += STEP


async def _level(url: str, process_id: int, streams: int, duration: float, tried: list[Level]) -> Level:
    found = await level(url, process_id, streams, duration, len(tried))
    tried.append(found)
    return found


async def level(
    url: str, process_id: int, streams: int, duration: float, seed: int, codec: str = "opus", max_wait_ms: int = 200
) -> Level:
    """What so many closed listeners of a server hear. Raises `OSError` when the load tool fails."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "voxgate", "loadtest", "--url", url, "--server-pid", f"{process_id}", "--json", "-"),
        *("--streams", f"{streams}", "--ramp", f"{RAMP_S}", "--duration", f"{duration}", "--seed", f"{seed}"),
        *("--codec", codec, "--max-wait", f"{max_wait_ms}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    told, _ = await process.communicate()
    if process.returncode:
        raise OSError(f"the load tool ended with {process.returncode}: {told.decode()[-500:]}")
    found = _read(streams, json.loads(told))
    print(
        f"{streams:5} listeners: {found.gapless:.2%} gapless, first audio p50 {found.first_audio_p50_s * 1000:.0f} ms, "
        f"p95 {found.first_audio_p95_s * 1000:.0f} ms, {found.cpu_per_audio_s * 1000:.2f} ms CPU per second",
        file=sys.stderr,
    )
    return found


def _read(streams: int, told: dict[str, Any]) -> Level:
    refused = sum(times["count"] for kind in ("errors", "refused") for times in told[kind].values())
    play_out = told["play_out"]
    return Level(
        streams=streams,
        gapless=play_out["gapless"] / max(1, play_out["judged"] + refused),
        first_audio_p50_s=told["ttfa_seconds"]["p50"],
        first_audio_p95_s=told["ttfa_seconds"]["p95"],
        refused=refused,
        cpu_per_audio_s=told["server"]["cpu_seconds_per_audio_second"],
        client_cpu_share=told["client"]["cpu_share"],
    )


def _told(level: Level) -> dict[str, Any]:
    return {name: getattr(level, name) for name in Level.__slots__}


def _raw_cost(seed: int) -> tuple[float, float]:
    """CPU seconds per second of audio, of the engine and of the encoder."""
    raw, texts = RawVoice(), TextMaker(seed)
    engine_s = encoder_s = audio_s = 0.0
    for number, kind in enumerate(("medium", "medium", *RAW_TEXTS), -2):  # what is below 0 is for warming up
        began_at = time.process_time()
        pcm = raw.synthesize(texts.make(kind).text)
        spoken_at = time.process_time()
        raw.encode(pcm)
        if number >= 0:
            engine_s += spoken_at - began_at
            encoder_s += time.process_time() - spoken_at
            audio_s += len(pcm) / raw.sample_rate
    return engine_s / audio_s, encoder_s / audio_s

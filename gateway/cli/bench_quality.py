"""`voxgate bench quality`: whether speech is right, beside what is promised. Its parts are in quality/.

text        nothing of a text is lost, and what writing it out costs
lengths     every codec gives back as many samples as went in
level       the voice's loudness and peaks
joins       no join can be told from the sound around it
pesq        what each codec costs in quality (needs the package pesq)
understood  what a recognizer writes down, over the wire and beside it
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from ...client import VoiceError
from .bench import Figure, missed, table

Measure = Callable[[int], Awaitable[list[Figure]]]

# Where each part is, and how many sentences (or joins, or lengths) it takes.
PARTS = {
    "text": ("texts", "measure", 1000),
    "lengths": ("formats", "lengths", 10),
    "level": ("levels", "measure", 600),
    "joins": ("joined", "measure", 1000),
    "pesq": ("formats", "pesq", 8),
    "understood": ("understood", "measure", 104),
}


def register(benchmarks: Any) -> None:
    """Adds the benchmark to those of `voxgate bench`."""
    parser = benchmarks.add_parser("quality", help="speech that is right: words, joins, levels, codecs")
    parser.add_argument("--parts", type=_parts, default=tuple(PARTS), metavar="PART,…", help=f"of {','.join(PARTS)}")
    parser.add_argument(
        "--count", type=int, metavar="N", help="sentences (joins) of each part instead of its own number"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write the figures as JSON, too; - for stdout, without the table"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 when a promise is missed")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """The exit status: 1 when the benchmark could not run, or with `--check` when a promise is missed."""
    figures: dict[str, list[Figure]] = {}
    try:
        for part in args.parts:
            began_at = time.monotonic()
            figures[part] = asyncio.run(_measure(part, args.count))
            if args.json != "-":
                print(f"{part} ({time.monotonic() - began_at:.0f} s)")
                print(table(figures[part]) if figures[part] else "not measured: a package is missing", flush=True)
    except KeyboardInterrupt:
        return 130
    except ImportError as missing:
        print(f"voxgate bench: {missing.name} is not installed; the extra `quality` has it", file=sys.stderr)
        return 1
    except (VoiceError, OSError) as failed:
        print(f"voxgate bench: {failed}", file=sys.stderr)
        return 1
    record = json.dumps({part: [asdict(figure) for figure in each] for part, each in figures.items()}, indent=2)
    if args.json == "-":
        print(record)
    elif args.json:
        Path(args.json).write_text(record + "\n")
    return int(args.check and any(map(missed, figures.values())))


async def _measure(part: str, count: int | None) -> list[Figure]:
    module, function, usual = PARTS[part]
    measure: Measure = getattr(import_module(f".quality.{module}", __package__), function)
    return await measure(count or usual)


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(filter(None, text.split(",")))
    if not parts or not set(parts) <= set(PARTS):
        raise argparse.ArgumentTypeError(f"parts are {', '.join(PARTS)}")
    return parts

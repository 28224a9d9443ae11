"""`voxgate loadtest`: many listeners at once against a running server, and what they heard. A client like any other.

Owns flags, the progress line, files and the exit status; the work is done in `loadtest/`.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...client import HandshakeRefused, VoiceError, connect
from ...client.connection import stream_url
from ...loadtest.caches import CacheUse, cache_use
from ...loadtest.conversation import Target
from ...loadtest.corpus import SENTENCES_OF
from ...loadtest.page import page
from ...loadtest.plan import DEFAULT_MIX, Load
from ...loadtest.report import INTERRUPTED, figures, text, verdict
from ...loadtest.run import Progress, ServerUse, Stop, run
from ...loadtest.statistics import Statistics

_PROGRESS_SECONDS = 10  # between two lines where there is no terminal to rewrite one on
_FULL = frozenset({429, 503})


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("loadtest", help="many listeners at once, and what they heard")
    load = parser.add_mutually_exclusive_group(required=True)
    load.add_argument("--rate", type=_positive, metavar="R", help="open: R utterances a second, at random instants")
    load.add_argument("--streams", type=_count, metavar="N", help="closed: N listeners, one utterance after the other")
    timing = parser.add_argument_group("when")
    timing.add_argument("--duration", type=_positive, default=30.0, metavar="S", help="after the ramp (%(default)g)")
    timing.add_argument(
        "--ramp", type=_seconds, default=5.0, metavar="S", help="until the load is all there (%(default)g)"
    )
    timing.add_argument("--think", type=_seconds, default=0.0, metavar="S", help="mean pause between utterances (0)")
    timing.add_argument("--seed", type=int, metavar="N", help="the same seed plans the same run (default: a new one)")
    what = parser.add_argument_group("what")
    what.add_argument("--mix", type=_mix, default=DEFAULT_MIX, metavar="MIX", help=f"lengths of texts ({_told_mix()})")
    what.add_argument(
        "--tokens-per-second",
        type=_seconds,
        default=0.0,
        metavar="T",
        help="how fast text is written; 0: sent whole (0)",
    )
    what.add_argument("--slow-readers", type=_share, default=0.0, metavar="SHARE", help="who read at half the pace (0)")
    what.add_argument("--barge-ins", type=_share, default=0.0, metavar="SHARE", help="who interrupt (0)")
    what.add_argument("--codec", default="opus", help="(%(default)s)")
    what.add_argument("--max-wait", type=_seconds, metavar="MS", help="before the first audio (the server's choice)")
    what.add_argument("--lead", type=_seconds, metavar="MS", help="audio the server may be ahead (the server's choice)")
    what.add_argument("--voice", help="(the server's choice)")
    how = parser.add_argument_group("how")
    how.add_argument("--url", default=os.environ.get("VOXGATE_URL", "http://127.0.0.1:8080"), help="(%(default)s)")
    how.add_argument("--key", default=os.environ.get("VOXGATE_KEY"), help="(default: VOXGATE_KEY)")
    how.add_argument("--contexts-per-connection", type=_count, default=1, metavar="N", help="(%(default)s)")
    how.add_argument(
        "--processes", type=_count, default=1, metavar="P", help="to spread the listeners over (%(default)s)"
    )
    how.add_argument("--server-pid", type=_count, metavar="PID", help="report what it and its children use")
    how.add_argument("--json", metavar="FILE", help="the figures, too; - for stdout, without the text")
    how.add_argument("--html", metavar="FILE", help="the figures with plots")
    parser.set_defaults(func=main)


def main(arguments: argparse.Namespace) -> int:
    import uvloop

    try:
        stream_url(arguments.url)
    except ValueError as wrong:
        return _complain(wrong, 2)
    if arguments.server_pid is not None and not Path(f"/proc/{arguments.server_pid}").exists():
        return _complain(f"there is no process {arguments.server_pid}", 2)
    for file in (arguments.json, arguments.html):
        if file and file != "-" and not _can_write(Path(file)):
            return _complain(f"{file} cannot be written", 2)
    load = Load(
        rate=arguments.rate,
        streams=arguments.streams,
        ramp=arguments.ramp,
        duration=arguments.duration,
        think=arguments.think,
        mix=arguments.mix,
        tokens_per_second=arguments.tokens_per_second,
        slow_readers=arguments.slow_readers,
        barge_ins=arguments.barge_ins,
        seed=random.randrange(1 << 31) if arguments.seed is None else arguments.seed,
    )
    target = Target(
        arguments.url,
        arguments.key,
        arguments.codec,
        arguments.lead,
        arguments.voice,
        arguments.contexts_per_connection,
        arguments.max_wait,
    )
    _allow_sockets()
    gc.freeze()
    try:
        statistics, server, cache = uvloop.run(_loadtest(load, target, arguments))
        _write(figures(statistics, target, server, cache), statistics, arguments)
    except KeyboardInterrupt:  # before the run began: later it ends the run
        return 130
    except (VoiceError, OSError) as failed:
        return _complain(failed, 1)
    failed = verdict(statistics)
    return _complain(failed, 1) if failed else 0


def _write(told: dict[str, Any], statistics: Statistics, arguments: argparse.Namespace) -> None:
    if arguments.json == "-":
        print(json.dumps(told))
    else:
        print(text(told))
        if arguments.json:
            Path(arguments.json).write_text(json.dumps(told, indent=1) + "\n")
    if arguments.html:
        Path(arguments.html).write_text(page(told, text(told), statistics.ttfa))


async def _loadtest(
    load: Load, target: Target, arguments: argparse.Namespace
) -> tuple[Statistics, ServerUse | None, CacheUse | None]:
    await _knock(target)
    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.request, INTERRUPTED)
    line = _ProgressLine(load)
    before = await cache_use(target.url, target.key)
    statistics, server = await run(
        load,
        target,
        processes=arguments.processes,
        server_pid=arguments.server_pid,
        on_progress=line.show,
        stop=stop,
    )
    line.end()
    after = await cache_use(target.url, target.key)
    return statistics, server, after.since(before) if before and after else None


async def _knock(target: Target) -> None:
    """Raises what is wrong from the start; a full house is not."""
    try:
        async with connect(target.url, target.key):
            pass
    except HandshakeRefused as refused:
        if refused.status not in _FULL:
            raise


class _ProgressLine:
    """One line on a terminal, rewritten; elsewhere a new one now and then."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._terminal = sys.stderr.isatty()
        self._next = 0.0

    def show(self, elapsed: float, now: Progress) -> None:
        if not self._terminal and elapsed < self._next:
            return
        self._next = elapsed + _PROGRESS_SECONDS
        ttfa = now.ttfa.quantile(0.95)
        line = (
            f"{elapsed:4.0f} of {self._load.until:g} s: {now.live} live, {now.done} done, {now.refused} refused, "
            f"{now.failed} failed, first audio p95 {'-' if ttfa is None else f'{ttfa * 1000:.0f} ms'}, "
            f"underruns {now.underrun_seconds:.2f} s"
        )
        print(
            f"\r\x1b[K{line}" if self._terminal else line,
            end="" if self._terminal else "\n",
            file=sys.stderr,
            flush=True,
        )

    def end(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _can_write(file: Path) -> bool:
    """Known before a run, because a run is long."""
    return os.access(file if file.exists() else file.parent, os.W_OK) and not file.is_dir()


def _allow_sockets() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _complain(about: object, code: int) -> int:
    print(f"voxgate loadtest: {about}", file=sys.stderr)
    return code


def _mix(told: str) -> tuple[tuple[str, float], ...]:
    mix = []
    for part in told.split(","):
        kind, _, weight = part.partition("=")
        if kind not in SENTENCES_OF:
            raise argparse.ArgumentTypeError(f"no length {kind!r}; there are: {', '.join(SENTENCES_OF)}")
        mix.append((kind, _seconds(weight or "1")))
    if not sum(weight for _, weight in mix):
        raise argparse.ArgumentTypeError("all weights are 0")
    return tuple(mix)


def _told_mix() -> str:
    return ",".join(f"{kind}={weight:g}" for kind, weight in DEFAULT_MIX)


def _count(told: str) -> int:
    if (number := int(told)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _seconds(told: str) -> float:
    number = float(told)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError("0 or more")
    return number


def _positive(told: str) -> float:
    if not (number := _seconds(told)):
        raise argparse.ArgumentTypeError("more than 0")
    return number


def _share(told: str) -> float:
    if (number := _seconds(told)) > 1:
        raise argparse.ArgumentTypeError("a share, 0 to 1")
    return number

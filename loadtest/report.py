"""What a run tells: figures as plain values for JSON, the same as text, and the verdict. Pure."""

import dataclasses
from typing import Any

from .caches import CacheUse
from .conversation import Target
from .histogram import Histogram
from .listening import Outcome
from .run import ServerUse
from .statistics import Reasons, Statistics

INTERRUPTED = "interrupted"  # by whoever started the run: what was heard until then counts
LAG_WARNING_SECONDS = 0.010
PACING_WARNING_SECONDS = 0.020
CPU_WARNING_SHARE = 0.85
_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def verdict(statistics: Statistics) -> str:
    """Why the run failed; empty when it did not. What an overloaded server refuses is a result, not a failure."""
    heard = statistics.outcomes[Outcome.DONE.value] + statistics.outcomes[Outcome.CANCELLED.value]
    if statistics.cut_short and statistics.cut_short != INTERRUPTED:
        return statistics.cut_short
    if heard:
        return ""
    if statistics.refusals.count or statistics.connect_refusals.count:
        return "nothing was heard: everything was refused"
    if statistics.cut_short:
        return "nothing was heard: interrupted before any utterance was over"
    if not statistics.utterances and not statistics.connect_failures.count:
        return "nothing was heard: no utterance began between ramp and end; a longer run measures some"
    return "nothing was heard: no utterance was heard to its end"


def figures(
    statistics: Statistics, target: Target, server: ServerUse | None, cache: CacheUse | None = None
) -> dict[str, Any]:
    """All of it; times in seconds. The key of the target is left out."""
    load, client = statistics.load, statistics.client
    outcomes = {outcome.value: statistics.outcomes[outcome.value] for outcome in Outcome}
    rate = statistics.audio_seconds / statistics.plateau_seconds if statistics.plateau_seconds else 0.0
    return {
        "load": {name: value for name, value in dataclasses.asdict(load).items() if name not in ("part", "parts")},
        "target": {name: value for name, value in dataclasses.asdict(target).items() if name != "key"},
        "cut_short": statistics.cut_short,
        "failed": verdict(statistics),
        "warnings": warnings(statistics),
        "connections": {
            "connect_seconds": _quantiles(statistics.connects),
            "refused": _reasons(statistics.connect_refusals),
            "failed": _reasons(statistics.connect_failures),
        },
        "utterances": {"begun": statistics.utterances, **outcomes, "slow_readers": statistics.slow},
        "ttfa_seconds": _quantiles(statistics.ttfa),
        "play_out": {
            "judged": statistics.judged,
            "gapless": statistics.gapless,
            "gapless_share": statistics.gapless / statistics.judged if statistics.judged else None,
            "underruns": statistics.underruns,
            "underrun_seconds": statistics.underrun_seconds,
            "largest_gap_seconds": statistics.largest_gap,
            "waited_for_text_seconds": statistics.waits,
        },
        "cancel": {
            "to_last_audio_seconds": _quantiles(statistics.silence),
            "to_confirmed_seconds": _quantiles(statistics.confirmed),
        },
        "refused": _reasons(statistics.refusals),
        "errors": _reasons(statistics.failures),
        "audio_seconds": statistics.audio_seconds,
        "audio_seconds_per_second": rate,
        "client": {
            "loop_lag_seconds": _quantiles(client.loop_lag),
            "pacing_error_seconds": _quantiles(client.pacing),
            "cpu_share": _cpu_share(statistics),
            "cpu_seconds": client.cpu_seconds,
            "arrivals_not_begun": client.not_begun,
        },
        "server": None if server is None else _server(server, rate),
        "cache": None if cache is None else {"hits": cache.hits, "misses": cache.misses, "hit_share": cache.share},
        "timeline": _timeline(statistics),
    }


def warnings(statistics: Statistics) -> list[str]:
    """Reasons to blame the load generator, or to look twice."""
    client, found = statistics.client, list[str]()
    lag, pacing = client.loop_lag.quantile(0.99) or 0.0, client.pacing.quantile(0.99) or 0.0
    if lag > LAG_WARNING_SECONDS:
        found.append(
            f"the load generator's event loop lagged {_ms(lag)} (p99): its times include that; use --processes"
        )
    if pacing > PACING_WARNING_SECONDS:
        found.append(f"the load generator sent {_ms(pacing)} late (p99): the load was not quite what was asked for")
    if _cpu_share(statistics) > CPU_WARNING_SHARE:
        found.append("the load generator had no CPU to spare: use --processes, or another machine")
    if client.not_begun:
        found.append(f"{client.not_begun} arrivals were not begun: the load generator held as many as it may")
    if statistics.failures.count or statistics.connect_failures.count:
        found.append("there were errors: they are listed with their reasons")
    if statistics.cut_short:
        found.append(f"the run ended early: {statistics.cut_short}")
    return found


def text(told: dict[str, Any]) -> str:
    """`figures` for people."""
    lines = [_headline(told), ""]
    connections, utterances, play_out = told["connections"], told["utterances"], told["play_out"]
    rows = [
        ("connect", _spread(connections["connect_seconds"])),
        *((f"  refused: {reason}", _refusal(row)) for reason, row in connections["refused"].items()),
        *((f"  failed: {reason}", _refusal(row)) for reason, row in connections["failed"].items()),
        ("utterances", ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in utterances.items() if count)),
        ("time to first audio", _spread(told["ttfa_seconds"])),
    ]
    if play_out["judged"]:
        rows += [
            ("gapless", f"{play_out['gapless_share']:.2%} of {play_out['judged']} utterances"),
            (
                "underruns",
                f"{play_out['underruns']}, {play_out['underrun_seconds']:.2f} s together, "
                f"the largest {_ms(play_out['largest_gap_seconds'])}",
            ),
        ]
    if play_out["waited_for_text_seconds"]:
        rows.append(("waited for text", f"{play_out['waited_for_text_seconds']:.2f} s: no underruns"))
    if told["cancel"]["to_confirmed_seconds"]["count"]:
        rows += [
            ("cancel to last audio", _spread(told["cancel"]["to_last_audio_seconds"])),
            ("cancel to confirmed", _spread(told["cancel"]["to_confirmed_seconds"])),
        ]
    for name, of in (("refused", told["refused"]), ("errors", told["errors"])):
        rows += [(f"{name}: {reason}", _refusal(row)) for reason, row in of.items()]
    rows.append(("audio", f"{told['audio_seconds_per_second']:.1f} seconds per second"))
    if told["server"] is not None:
        server = told["server"]
        per = server["cpu_seconds_per_audio_second"]
        rows.append(
            (
                "server",
                f"{server['cores']:.2f} cores, {'-' if per is None else f'{per:.4f}'} CPU s per audio second, "
                f"{server['peak_rss_bytes'] / 2**20:.0f} MiB in {server['processes']} processes",
            )
        )
    cache = told["cache"]
    found = "unknown" if cache is None else f"{cache['hit_share']:.1%} of {cache['hits'] + cache['misses']} segments"
    rows.append(("found in its caches", found))
    client = told["client"]
    rows += [
        ("load generator", f"{client['cpu_share']:.1%} of a core per process"),
        ("  event loop lag", _spread(client["loop_lag_seconds"])),
        ("  sent late by", _spread(client["pacing_error_seconds"])),
    ]
    width = max(len(name) for name, _ in rows)
    lines += [f"{name:{width}}  {value}" for name, value in rows]
    lines += [f"warning: {warning}" for warning in told["warnings"]]
    return "\n".join(lines)


def _headline(told: dict[str, Any]) -> str:
    load, target = told["load"], told["target"]
    what = f"{load['rate']:g} utterances a second" if load["rate"] is not None else f"{load['streams']} streams"
    lead = "" if target["lead_ms"] is None else f", lead {target['lead_ms']:g} ms"
    return (
        f"{target['url']}: {what} for {load['duration']:g} s after a ramp of {load['ramp']:g} s, "
        f"{target['codec']}{lead}, seed {load['seed']}"
    )


def _timeline(statistics: Statistics) -> list[dict[str, Any]]:
    """Slices up to the last in which anything was."""
    rows = [
        {
            "at": number * statistics.slice_seconds,
            "active": active,
            "begun": slice.began,
            "done": slice.done,
            "refused": slice.refused,
            "failed": slice.failed,
            "audio_seconds": slice.audio_seconds,
            "underrun_seconds": slice.underrun_seconds,
            "ttfa_p50": slice.ttfa.quantile(0.5),
            "ttfa_p95": slice.ttfa.quantile(0.95),
        }
        for number, (slice, active) in enumerate(zip(statistics.slices, statistics.active(), strict=True))
    ]
    while rows and not any(rows[-1][name] for name in ("active", "begun", "done", "refused", "failed")):
        rows.pop()
    return rows


def _server(use: ServerUse, audio_rate: float) -> dict[str, Any]:
    cores = use.cpu_seconds / use.seconds
    return {
        "processes": use.processes,
        "cores": cores,
        "cpu_seconds_per_audio_second": cores / audio_rate if audio_rate else None,
        "peak_rss_bytes": use.peak_rss_bytes,
    }


def _cpu_share(statistics: Statistics) -> float:
    client = statistics.client
    return client.cpu_seconds / client.wall_seconds if client.wall_seconds else 0.0


def _reasons(reasons: Reasons) -> dict[str, Any]:
    return {reason: _quantiles(latency) for reason, latency in sorted(reasons.latency.items())}


def _quantiles(histogram: Histogram) -> dict[str, Any]:
    mean = histogram.total / histogram.count if histogram.count else None
    return {
        "count": histogram.count,
        "mean": mean,
        **{name: histogram.quantile(share) for name, share in _SHARES.items()},
    }


def _spread(quantiles: dict[str, Any]) -> str:
    if not quantiles["count"]:
        return "-"
    values = "  ".join(f"{name} {_ms(quantiles[name])}" for name in _SHARES)
    return f"{values}  of {quantiles['count']}"


def _refusal(quantiles: dict[str, Any]) -> str:
    return f"{quantiles['count']}, told after {_ms(quantiles['p50'])} (p50), {_ms(quantiles['p99'])} (p99)"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"

"""The report as one HTML file that needs nothing else: figures in tables, plots as inline SVG. Pure."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from .histogram import Histogram

_WIDTH, _HEIGHT = 640, 180
_LEFT, _BOTTOM = 56, 22  # room for the scales
_COLORS = ("#2563eb", "#dc2626", "#059669", "#d97706")
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 1340px; margin: 2rem auto; padding: 0 1rem; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1.5rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 0 0 .3rem; }
pre { overflow-x: auto; padding: 1rem; border: 1px solid #8886; border-radius: .5rem; }
svg { width: 100%; height: auto; } svg text { fill: currentColor; font-size: 11px; }
.grid { stroke: #8884; } .failed { color: #dc2626; font-weight: 600; }
.key span { margin-right: 1rem; } .key i { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
"""


def page(told: dict[str, Any], text: str, ttfa: Histogram) -> str:
    """`told` and `text` are those of report.py."""
    timeline = told["timeline"]
    at = [row["at"] for row in timeline]

    def over(name: str, scale: float = 1.0) -> list[float | None]:
        return [None if row[name] is None else row[name] * scale for row in timeline]

    plots = [
        ("Time to first audio, utterances per bar, ms", _bars(ttfa)),
        ("Time to first audio, ms", _lines(at, {"p50": over("ttfa_p50", 1000), "p95": over("ttfa_p95", 1000)})),
        ("Listeners", _lines(at, {"active": over("active")})),
        ("Utterances a slice", _lines(at, {"begun": over("begun"), "failed": over("failed"), "done": over("done")})),
        ("Refused a slice", _lines(at, {"refused": over("refused")})),
        ("Underruns, seconds a slice, when the utterance was over", _lines(at, {"seconds": over("underrun_seconds")})),
        ("Audio received, seconds a slice", _lines(at, {"audio": over("audio_seconds")})),
    ]
    failed = f'<p class="failed">failed: {escape(told["failed"])}</p>' if told["failed"] else ""
    figures = "".join(f"<figure><h2>{escape(title)}</h2>{plot}</figure>" for title, plot in plots)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>voxgate load test</title><style>{_STYLE}</style>"
        f"<h1>voxgate load test</h1>{failed}<pre>{escape(text)}</pre><main>{figures}</main></html>\n"
    )


def _bars(histogram: Histogram) -> str:
    """Bars of equal width from 0 to what 99 % stay below; the rest is in the last."""
    top = _round_up((histogram.quantile(0.99) or 0.0) * 1000 * 1.05)
    count = 40
    counts = histogram.bars([top * number / count / 1000 for number in range(count + 1)])
    high = _round_up(max(counts, default=0))
    width = (_WIDTH - _LEFT) / count
    marks = "".join(
        f'<rect x="{_LEFT + number * width:.1f}" y="{_y(value, high):.1f}" width="{max(0.5, width - 1):.1f}" '
        f'height="{_y(0, high) - _y(value, high):.1f}" fill="{_COLORS[0]}"/>'
        for number, value in enumerate(counts)
    )
    return _frame(marks, top, high)


def _lines(at: Sequence[float], series: dict[str, list[float | None]]) -> str:
    """One line per series over time; where a value is missing the line is broken."""
    right = max(at[-1] if at else 0.0, 1.0)
    high = _round_up(max((value for values in series.values() for value in values if value is not None), default=0.0))
    marks = "".join(
        f'<path d="{_path(at, values, right, high)}" fill="none" stroke="{color}" stroke-width="1.5"/>'
        for values, color in zip(series.values(), _COLORS, strict=False)
    )
    key = "".join(
        f'<span><i style="background:{color}"></i>{escape(name)}</span>'
        for name, color in zip(series, _COLORS, strict=False)
    )
    return _frame(marks, right, high) + f'<p class="key">{key}</p>'


def _path(at: Sequence[float], values: Sequence[float | None], right: float, high: float) -> str:
    steps, pen = [], "M"
    for instant, value in zip(at, values, strict=True):
        if value is None:
            pen = "M"
            continue
        x = _LEFT + (_WIDTH - _LEFT) * instant / right
        steps.append(f"{pen}{x:.1f} {_y(value, high):.1f}")
        if pen == "M":
            steps.append("h1")  # a single value is a dot
        pen = "L"
    return "".join(steps)


def _frame(marks: str, right: float, high: float) -> str:
    grid = "".join(
        f'<path class="grid" d="M{_LEFT} {_y(part, 1):.1f}H{_WIDTH}"/>'
        f'<text x="{_LEFT - 6}" y="{_y(part, 1) + 4:.1f}" text-anchor="end">{high * part:g}</text>'
        for part in (0, 0.5, 1)
    )
    width, below = _WIDTH - _LEFT, _HEIGHT - 4
    scale = "".join(
        f'<text x="{_LEFT + width * part:.1f}" y="{below}" text-anchor="{anchor}">{right * part:g}</text>'
        for part, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    )
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{grid}{scale}{marks}</svg>'


def _y(value: float, high: float) -> float:
    return 8 + (_HEIGHT - _BOTTOM - 8) * (1 - value / high)


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, … that is not below `value`."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= value)

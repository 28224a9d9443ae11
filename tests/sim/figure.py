"""Runs of a modelled house as small pictures: panels over one time axis, self-contained SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, PANEL, LEFT, RIGHT, TITLE = 720, 110, 46, 12, 18
COLORS = ("#2563eb", "#dc2626", "#059669", "#d97706")
STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#6b7280}.grid{stroke:#9ca3af55}.line{fill:none;stroke-width:1.5}"
    ".dot{stroke-width:3;stroke-linecap:round}"
)

Point = tuple[float, float | None]  # at seconds; None: the line is broken


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: Sequence[Point]
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    lines: Sequence[Line]
    top: float  # of its scale


def figure(panels: Sequence[Panel], *, seconds: float, marks: Sequence[float]) -> str:
    """`marks`: instants at which something begins or ends."""
    step = TITLE + PANEL + 8
    height = step * len(panels) + 18
    parts = [_panel(panel, number * step, seconds, marks) for number, panel in enumerate(panels)]
    scale = "".join(
        f'<text x="{_x(at, seconds):.0f}" y="{height - 4}" text-anchor="middle">{at:g} s</text>'
        for at in (seconds * part / 4 for part in range(5))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"><style>{STYLE}</style>\n'
        + "\n".join(parts)
        + f"\n{scale}</svg>\n"
    )


def _panel(panel: Panel, top: int, seconds: float, marks: Sequence[float]) -> str:
    base = top + TITLE
    key, x = [f'<text x="{LEFT}" y="{top + 12}">{escape(panel.title)}</text>'], WIDTH - RIGHT
    drawn = []
    for line, color in reversed(list(zip(panel.lines, COLORS, strict=False))):
        key.append(f'<text x="{x}" y="{top + 12}" text-anchor="end" style="fill:{color}">{escape(line.name)}</text>')
        x -= 6 * len(line.name) + 14
        kind = "dot" if line.dots else "line"
        drawn.append(f'<path class="{kind}" stroke="{color}" d="{_path(line, base, panel.top, seconds)}"/>')
    grid = "".join(
        f'<path class="grid" d="M{LEFT} {_y(part, base, 1):.0f}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 5}" y="{_y(part, base, 1) + 4:.0f}" text-anchor="end">{panel.top * part:g}</text>'
        for part in (0, 0.5, 1)
    )
    grid += "".join(f'<path class="grid" d="M{_x(at, seconds):.0f} {base}v{PANEL}"/>' for at in marks)
    return "".join([grid, *key, *drawn])


def _path(line: Line, base: int, top: float, seconds: float) -> str:
    steps, pen, before = [], "M", ""
    for at, value in line.points:
        if value is None:
            pen = "M"
            continue
        here = f"{_x(at, seconds):.0f} {_y(min(value, top), base, top):.0f}"
        if line.dots:
            steps.append(f"M{here}h0")
        elif here != before:
            steps.append(f"{pen}{here}")
        pen, before = "L", here
    return "".join(steps)


def _x(at: float, seconds: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * at / seconds


def _y(value: float, base: int, top: float) -> float:
    return base + PANEL * (1 - value / top)

from html.parser import HTMLParser
from typing import Any

import pytest

from voxgate.loadtest.histogram import Histogram
from voxgate.loadtest.page import page

EMPTY = {"at": 0.0, "active": 0, "begun": 0, "done": 0, "refused": 0, "failed": 0, "audio_seconds": 0.0}
ROW: dict[str, Any] = {**EMPTY, "underrun_seconds": 0.0, "ttfa_p50": None, "ttfa_p95": None}


class Seen(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.paths: list[str] = []
        self.bars: list[float] = []
        self.text = ""
        self.foreign: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "path" and given.get("fill") == "none":
            self.paths.append(given["d"] or "")
        if tag == "rect":
            self.bars.append(float(given["height"] or "nan"))
        self.foreign += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_data(self, data: str) -> None:
        self.text += data


def drawn(*rows: dict[str, Any], ttfa: tuple[float, ...] = (), failed: str = "", text: str = "") -> Seen:
    histogram = Histogram()
    for value in ttfa:
        histogram.add(value)
    return Seen(page({"timeline": list(rows), "failed": failed}, text, histogram))


def test_the_page_needs_nothing_else():
    assert drawn(ROW).foreign == []


def test_what_was_told_is_shown_and_is_no_markup():
    seen = drawn(text="refused: <script>", failed="the server is gone & away")

    assert "refused: <script>" in seen.text
    assert "failed: the server is gone & away" in seen.text


def test_bars_are_as_high_as_their_counts():
    bars = drawn(ttfa=(0.1, 0.1, 0.1, 0.1, 0.05, 0.05)).bars

    assert sorted(bar for bar in bars if bar)[0] * 2 == pytest.approx(max(bars), abs=0.2)
    assert sum(bar > 0 for bar in bars) == 2


def test_a_line_runs_from_corner_to_corner_of_its_values():
    seen = drawn({**ROW, "active": 0}, {**ROW, "at": 10.0, "active": 10})

    assert "M56.0 158.0h1L640.0 8.0" in seen.paths


def test_a_line_is_broken_where_there_is_no_value():
    rows = [{**ROW, "at": float(at), "ttfa_p50": value} for at, value in enumerate((0.1, None, 0.1))]

    assert "M56.0 8.0h1M640.0 8.0h1" in drawn(*rows).paths


def test_an_empty_run_can_be_drawn():
    assert drawn().bars == [0.0] * 40

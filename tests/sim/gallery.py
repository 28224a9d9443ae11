"""The figures of docs/admission.md: which run, and what of it."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from sim import scenarios
from sim.figure import Line, Panel, Point, figure
from sim.house import House, Utterance
from sim.scenarios import CROWD_AT, FAILS, FLAPS, GREEDY, GREEDY_FROM, LEAK_FROM, LEAK_TO, SLOTS, STEP

STATES = ("normal", "degraded", "half_open", "open")
THINNED = 5  # samples to a point


def draw() -> dict[str, str]:
    """Every figure by its name."""
    return {
        "step.svg": _figure(scenarios.step(), [_speakers, _waits, _answers], marks=STEP),
        "crowd.svg": _figure(scenarios.crowd(), [_speakers, _waits, _answers], marks=(CROWD_AT, CROWD_AT + 1)),
        "leak.svg": _figure(scenarios.leak(), [_memory, _states, _slots, _answers], marks=(LEAK_FROM, LEAK_TO)),
        "flapping.svg": _figure(scenarios.flapping(), [_memory, _states, _answers], marks=(*FAILS, *FLAPS)),
        "greedy.svg": _figure(scenarios.greedy(), [_modest_waits, _shares], marks=(GREEDY_FROM,)),
    }


def _figure(house: House, panels: Sequence[Callable[[House], Panel]], marks: Sequence[float]) -> str:
    return figure([panel(house) for panel in panels], seconds=house.clock.now, marks=marks)


def _speakers(house: House) -> Panel:
    lines = [_over_time(house, "spoken at once", "active"), _over_time(house, "limit", "limit")]
    return Panel("utterances", lines, 300)


def _waits(house: House) -> Panel:
    return Panel("text to first audio, ms", [_first_audio("each", house.utterances)], 300)


def _modest_waits(house: House) -> Panel:
    modest = [each for each in house.utterances if each.account != GREEDY]
    greedy = [each for each in house.utterances if each.account == GREEDY]
    lines = [_first_audio("of the greedy account", greedy), _first_audio("of the others", modest)]
    return Panel("text to first audio, ms", lines[::-1], 300)


def _answers(house: House) -> Panel:
    lines = [
        Line("served", _a_second(house, [each.asked_at for each in house.utterances if each.first_at is not None])),
        Line("refused", _a_second(house, [each.asked_at for each in house.utterances if each.refused is not None])),
        Line("ran dry or dropped", _a_second(house, [each.asked_at for each in house.utterances if _failed(each)])),
    ]
    top = max([10.0, *(value for line in lines for _, value in line.points if value is not None)])
    return Panel("newcomers a second", lines, -(-top // 10) * 10)


def _shares(house: House) -> Panel:
    """What is refused, of all that is asked in a second."""
    lines = []
    for name, greedy in (("of the others", False), ("of the greedy account", True)):
        its = [each for each in house.utterances if (each.account == GREEDY) is greedy]
        asked = _a_second(house, [each.asked_at for each in its])
        refused = _a_second(house, [each.asked_at for each in its if each.refused is not None])
        shares = [(at, 100 * no / of if of else None) for (at, no), (_, of) in zip(refused, asked, strict=True)]
        lines.append(Line(name, shares))
    return Panel("refused, %", lines, 100)


def _memory(house: House) -> Panel:
    return Panel("GPU memory, share in use", [_over_time(house, "as read", "pressure")], 1)


def _slots(house: House) -> Panel:
    return Panel("slots that new work may take", [_over_time(house, "width", "width")], SLOTS)


def _states(house: House) -> Panel:
    points = [(sample.at, float(STATES.index(sample.state))) for sample in house.samples]
    return Panel("0 normal, 1 degraded, 2 half open, 3 open", [Line("breaker", _steps(points))], 3)


def _over_time(house: House, name: str, field: str) -> Line:
    return Line(name, [(sample.at, getattr(sample, field)) for sample in house.samples[::THINNED]])


def _first_audio(name: str, utterances: Sequence[Utterance]) -> Line:
    points = [(each.asked_at, 1000 * each.wait_s) for each in utterances if each.first_at is not None]
    return Line(name, points, dots=True)


def _failed(utterance: Utterance) -> bool:
    return bool(utterance.dry) or utterance.dropped


def _a_second(house: House, instants: Sequence[float]) -> list[tuple[float, float]]:
    counts = [0.0] * (int(house.clock.now) + 1)
    for at in instants:
        counts[int(at)] += 1
    return [(float(second), count) for second, count in enumerate(counts)]


def _steps(points: Sequence[tuple[float, float]]) -> list[Point]:
    """Corners only."""
    corners: list[Point] = [points[0]]
    for (_, before), (at, value) in pairwise(points):
        if value != before:
            corners += [(at, before), (at, value)]
    return [*corners, points[-1]]

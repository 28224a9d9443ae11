import json

import pytest

from voxgate.gateway.cli.bench_capacity import FIRST_LEVEL, Level, _figures, _levels, _raw_cost, _read

GOOD = Level(100, 1.0, 0.030, 0.080, 0, 0.007, 0.2)

TOLD = {
    "play_out": {"gapless": 994, "judged": 997},
    "ttfa_seconds": {"p50": 0.03, "p95": 0.09},
    "errors": {"internal": {"count": 1}},
    "refused": {"overloaded": {"count": 1}, "idle": {"count": 1}},
    "server": {"cpu_seconds_per_audio_second": 0.007},
    "client": {"cpu_share": 0.25},
}


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, True),
        ({"gapless": 0.994}, False),
        ({"first_audio_p95_s": 0.101}, False),
    ],
)
def test_a_level_holds_when_everyone_is_served_in_time(change: dict[str, float], holds: bool):
    level = Level(**{**{name: getattr(GOOD, name) for name in Level.__slots__}, **change})  # pyright: ignore

    assert level.holds is holds


def test_an_utterance_that_was_refused_or_failed_was_not_heard_without_a_gap():
    assert _read(50, json.loads(json.dumps(TOLD))) == Level(50, 0.994, 0.03, 0.09, 3, 0.007, 0.25)


def test_levels_rise_from_well_below_the_limit_to_beyond_it():
    levels = list(_levels(200))

    assert levels[0] == 200 * FIRST_LEVEL
    assert levels == sorted(set(levels))
    assert levels[-1] > 200


def test_promises_are_judged_against_the_limit_of_the_same_run():
    few = Level(10, 1.0, 0.020, 0.030, 0, 0.007, 0.1)
    verdicts = {figure.name: figure.kept for figure in _figures(0.005, 0.0015, 150.0, few, GOOD)}

    assert verdicts["limit short of the plateau"] is True
    assert verdicts["server CPU over raw, at the plateau"] is True
    assert verdicts["first audio, plateau over few, p50"] is False


def test_engine_and_encoder_cost_something_and_the_engine_more():
    engine_s, encoder_s = _raw_cost(seed=3)

    assert 0 < encoder_s < engine_s < 0.5

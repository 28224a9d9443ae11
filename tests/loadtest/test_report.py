import json
from dataclasses import replace

import pytest

from voxgate.loadtest.caches import CacheUse
from voxgate.loadtest.conversation import Target
from voxgate.loadtest.listening import Outcome, Result
from voxgate.loadtest.plan import Load
from voxgate.loadtest.report import INTERRUPTED, figures, text, verdict, warnings
from voxgate.loadtest.run import ServerUse
from voxgate.loadtest.statistics import Statistics

DONE = Result(Outcome.DONE, "", 3.0, 6.0, False, 0.05, 3.05, 2.9, 1, 0.5, 0.5, 0.25, None, None)
CANCELLED = replace(DONE, outcome=Outcome.CANCELLED, cancel_to_silence=0.01, cancel_to_confirmed=0.02)
REFUSED = replace(DONE, outcome=Outcome.REFUSED, reason="overloaded", ended_at=3.01, ttfa=None, first_at=None)
FAILED = replace(REFUSED, outcome=Outcome.FAILED, reason="internal")
TARGET = Target("ws://voice.example", key="secret")


def ran(*results: Result, cut_short: str = "") -> Statistics:
    statistics = Statistics(Load(streams=2, ramp=2.0, duration=10.0, seed=5), 0.0)
    statistics.plateau_seconds = 10.0
    statistics.cut_short = cut_short
    for result in results:
        statistics.ended(result)
    return statistics


@pytest.mark.parametrize(
    ("statistics", "failed"),
    [
        (ran(DONE), ""),
        (ran(CANCELLED, REFUSED, FAILED), ""),
        (ran(DONE, cut_short=INTERRUPTED), ""),
        (ran(DONE, cut_short="the server is gone"), "the server is gone"),
        (ran(REFUSED), "nothing was heard: everything was refused"),
        (ran(FAILED), "nothing was heard: no utterance was heard to its end"),
        (ran(), "nothing was heard: no utterance began between ramp and end; a longer run measures some"),
        (ran(cut_short=INTERRUPTED), "nothing was heard: interrupted before any utterance was over"),
    ],
)
def test_a_run_fails_when_nothing_was_heard_or_the_server_went_away(statistics, failed):
    assert verdict(statistics) == failed


def test_every_figure_is_in_the_text():
    statistics = ran(DONE, CANCELLED, REFUSED, FAILED)
    statistics.heard(5.0, 20.0)
    statistics.connected(0.002)
    statistics.connect_refused("handshake 503", 0.001)
    told = figures(statistics, TARGET, ServerUse(3, 0.5, 5.0, 100 << 20), CacheUse(1, 7))

    assert text(told).splitlines() == [
        "ws://voice.example: 2 streams for 10 s after a ramp of 2 s, opus, seed 5",
        "",
        "connect                   p50 2.0 ms  p95 2.0 ms  p99 2.0 ms  max 2.0 ms  of 1",
        "  refused: handshake 503  1, told after 1.0 ms (p50), 1.0 ms (p99)",
        "utterances                4 begun, 1 done, 1 cancelled, 1 refused, 1 failed",
        "time to first audio       p50 50.0 ms  p95 50.0 ms  p99 50.0 ms  max 50.0 ms  of 2",
        "gapless                   0.00% of 2 utterances",
        "underruns                 2, 1.00 s together, the largest 500.0 ms",
        "waited for text           0.50 s: no underruns",
        "cancel to last audio      p50 10.0 ms  p95 10.0 ms  p99 10.0 ms  max 10.0 ms  of 1",
        "cancel to confirmed       p50 20.0 ms  p95 20.0 ms  p99 20.0 ms  max 20.0 ms  of 1",
        "refused: overloaded       1, told after 10.0 ms (p50), 10.0 ms (p99)",
        "errors: internal          1, told after 10.0 ms (p50), 10.0 ms (p99)",
        "audio                     2.0 seconds per second",
        "server                    0.10 cores, 0.0500 CPU s per audio second, 100 MiB in 3 processes",
        "found in its caches       12.5% of 8 segments",
        "load generator            0.0% of a core per process",
        "  event loop lag          -",
        "  sent late by            -",
        "warning: there were errors: they are listed with their reasons",
    ]


def test_figures_are_json_and_keep_the_key_to_themselves():
    told = json.dumps(figures(ran(DONE), TARGET, None))

    assert json.loads(told)["play_out"]["gapless_share"] == 0.0
    assert "secret" not in told


def test_the_timeline_ends_with_the_last_listener():
    timeline = figures(ran(DONE), TARGET, None)["timeline"]

    assert [(row["at"], row["active"], row["begun"], row["done"]) for row in timeline] == [
        (0.0, 0, 0, 0),
        (1.0, 0, 0, 0),
        (2.0, 0, 0, 0),
        (3.0, 1, 1, 0),
        (4.0, 1, 0, 0),
        (5.0, 1, 0, 0),
        (6.0, 0, 0, 1),
    ]


def test_nothing_at_all_can_be_told_of():
    told = figures(ran(), TARGET, None)

    assert (told["timeline"], told["play_out"]["gapless_share"], told["cache"]) == ([], None, None)
    assert "time to first audio  -" in text(told)
    assert "found in its caches  unknown" in text(told)


def test_a_client_that_could_not_keep_up_says_so():
    statistics = ran(DONE)
    client = statistics.client
    for _ in range(100):
        client.loop_lag.add(0.05)
        client.pacing.add(0.03)
    client.cpu_seconds, client.wall_seconds, client.not_begun = 9.5, 10.0, 3

    assert [warning.split(",")[0].split(":")[0] for warning in warnings(statistics)] == [
        "the load generator's event loop lagged 50.0 ms (p99)",
        "the load generator sent 30.0 ms late (p99)",
        "the load generator had no CPU to spare",
        "3 arrivals were not begun",
    ]
    assert warnings(ran(DONE)) == []

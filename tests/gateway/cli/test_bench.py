import json
import sys

import pytest

from voxgate.gateway.cli import main
from voxgate.gateway.cli.bench import Figure, missed, server, table

KEPT = Figure("cancel", 1.5, "ms", 20.0, "one step")
MISSED = Figure("first audio", 25.01, "ms", 25.0, "soon")
PLAIN = Figure("raw", 12.3456, "ms")


def test_a_promise_is_kept_up_to_its_limit():
    assert [figure.kept for figure in (KEPT, MISSED, PLAIN, Figure("", 25.0, "ms", 25.0))] == [True, False, None, True]
    assert missed([KEPT, MISSED])
    assert not missed([KEPT, PLAIN])


def test_the_table_has_the_promise_beside_the_figure():
    assert table([KEPT, MISSED, PLAIN]).splitlines() == [
        "cancel           1.50 ms   kept    20.00 ms promised: one step",
        "first audio     25.01 ms   MISSED  25.00 ms promised: soon",
        "raw             12.35 ms",
    ]


def test_one_run_measures_everything_against_a_server_of_its_own(capsys):
    assert main(["bench", "ttfa", "--rounds", "1", "--json", "-"]) == 0

    record = json.loads(capsys.readouterr().out)
    figures = {figure["name"]: figure for figure in record["figures"]}
    assert record["rounds"] == 1
    assert {name for name, figure in figures.items() if figure["promise"]} == {
        "first audio, 7 words, p50",
        "first audio, 40 words, p50",
        "first audio, 40 words, p50, absolute",
        "first audio, 5,000 over 20 characters",
        "cancel to last audio, worst of 12",
        "audio messages after `cancelled`",
        "memory per idle connection, over 500",
    }
    assert all(figure["value"] > 0 for name, figure in figures.items() if name.startswith(("raw", "first", "memory")))
    assert figures["audio messages after `cancelled`"]["value"] == 0


async def test_a_server_that_does_not_come_up_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(OSError, match=r"did not start \(exit 1\)"):
        async with server():
            pass


@pytest.mark.parametrize("arguments", [["ttfa", "--rounds", "0"], ["ttfa", "--rounds", "x"], []])
def test_a_wrong_flag_is_a_usage_error(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["bench", *arguments])

    assert exit.value.code == 2
    assert "usage: voxgate bench" in capsys.readouterr().err

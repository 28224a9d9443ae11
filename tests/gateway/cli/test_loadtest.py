import json
import os
import signal
import subprocess
import sys

import pytest
from websockets.sync.client import connect as hold_connection

from running import running_server, server_pid
from voxgate.client.connection import stream_url
from voxgate.gateway.cli import main

BRIEF = ["--ramp", "0.2", "--duration", "1.5", "--mix", "short"]
COMMAND = [sys.executable, "-m", "voxgate", "loadtest"]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["loadtest", *arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_streams_hear_the_real_server(server, capsys):
    report = told(
        capsys,
        *("--url", server, "--streams", "4", *BRIEF, "--ramp", "0", "--barge-ins", "0.5", "--seed", "11"),
        *("--server-pid", str(server_pid(server))),
    )

    assert report["utterances"]["done"] + report["utterances"]["cancelled"] == report["utterances"]["begun"] >= 4
    assert report["ttfa_seconds"]["count"] == report["utterances"]["begun"]
    assert report["play_out"]["judged"] == report["utterances"]["begun"]
    assert report["cancel"]["to_confirmed_seconds"]["count"] == report["utterances"]["cancelled"] > 0
    assert report["connections"]["connect_seconds"]["count"] == 4
    assert report["audio_seconds"] > 4
    assert report["errors"] == report["refused"] == {}
    assert report["cache"]["hit_share"] == 0.0  # every text is new
    assert report["cache"]["misses"] >= report["utterances"]["begun"]
    assert (report["failed"], report["cut_short"]) == ("", "")
    assert report["load"]["seed"] == 11


def test_arrivals_share_connections_and_write_by_tokens(server, capsys):
    report = told(
        capsys,
        *("--url", server, "--rate", "6", *BRIEF, "--contexts-per-connection", "20", "--tokens-per-second", "40"),
        *("--slow-readers", "0.3", "--barge-ins", "1", "--codec", "pcm_s16le", "--lead", "500", "--seed", "3"),
        *("--processes", "2"),
    )

    slow = report["utterances"]["slow_readers"]
    assert report["utterances"]["done"] + report["utterances"]["cancelled"] >= 3
    assert report["connections"]["connect_seconds"]["count"] <= 2 + slow + 2
    assert report["play_out"]["judged"] == report["utterances"]["begun"] - slow
    assert report["client"]["pacing_error_seconds"]["count"] > 40  # each token


def test_the_report_is_a_page_a_file_and_a_text(server, capsys, tmp_path):
    page, figures = tmp_path / "report.html", tmp_path / "report.json"
    files = ["--html", str(page), "--json", str(figures)]

    assert main(["loadtest", "--url", server, "--streams", "2", *BRIEF, "--ramp", "0", *files]) == 0
    shown = capsys.readouterr().out
    assert "time to first audio  p50" in shown
    assert json.loads(figures.read_text())["utterances"]["begun"] >= 2
    assert shown.splitlines()[0] in page.read_text()
    assert "found in its caches  0.0% of " in page.read_text()
    assert page.read_text().count("<svg") == 7


def test_what_a_full_server_refuses_is_counted_and_is_no_failure(capsys):
    with running_server("--max-utterances", "2") as url:
        report = told(capsys, "--url", url, "--streams", "6", *BRIEF, "--ramp", "0")

    assert report["refused"]["overloaded"]["count"] >= 4
    assert report["utterances"]["done"] >= 2
    assert report["errors"] == {}


def test_nothing_but_refusals_is_a_failure(capsys):
    with running_server("--max-connections", "1") as url, hold_connection(stream_url(url), proxy=None) as occupant:
        occupant.recv()
        assert main(["loadtest", "--url", url, "--streams", "2", *BRIEF]) == 1

    shown = capsys.readouterr()
    assert "refused: handshake 503" in shown.out
    assert shown.err.endswith("voxgate loadtest: nothing was heard: everything was refused\n")


def test_a_wrong_key_is_told_before_anything_begins(capsys):
    with running_server("--keys", "right") as url:
        assert main(["loadtest", "--url", url, "--key", "wrong", "--streams", "1"]) == 1

    shown = capsys.readouterr()
    assert shown.err == "voxgate loadtest: refused with HTTP 401: this key is not known here\n"
    assert shown.out == ""


def test_no_server_is_told_before_anything_begins(capsys):
    assert main(["loadtest", "--url", "http://127.0.0.1:9", "--streams", "1"]) == 1

    assert capsys.readouterr().err.startswith("voxgate loadtest: ws://127.0.0.1:9/v1/stream:")


def test_what_is_no_voice_is_an_error_of_every_utterance(server, capsys):
    assert main(["loadtest", "--url", server, "--streams", "1", *BRIEF, "--voice", "nobody"]) == 1

    shown = capsys.readouterr()
    assert "errors: unknown_voice" in shown.out
    assert "nothing was heard: no utterance was heard to its end" in shown.err


def test_a_server_that_dies_ends_the_run_with_a_report():
    with running_server() as url:
        run = subprocess.Popen(
            [*COMMAND, "--url", url, "--streams", "3", "--ramp", "0", "--duration", "600", "--mix", "long"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert run.stderr is not None
        progress = run.stderr.readline()

        os.kill(server_pid(url), signal.SIGKILL)
    shown, complaint = run.communicate()

    assert "live" in progress
    assert run.returncode == 1
    assert "errors: closed 1006" in shown
    assert "Traceback" not in complaint
    assert complaint.endswith("voxgate loadtest: the server is gone\n")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_ctrl_c_ends_the_run_with_a_report(server, processes):
    arguments = ["--url", server, "--streams", "3", "--ramp", "0", "--duration", "600", "--mix", "short"]
    with subprocess.Popen(
        [*COMMAND, *arguments, "--barge-ins", "1", "--processes", processes],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stderr is not None
        run.stderr.readline()
        run.send_signal(signal.SIGINT)
        shown, complaint = run.communicate()

    assert "the run ended early: interrupted" in shown
    assert "Traceback" not in complaint
    assert run.returncode == (0 if "cancelled" in shown.split("time to first audio")[0] else 1)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--rate", "1", "--streams", "1"],
        ["--streams", "0"],
        ["--rate", "0"],
        ["--rate", "nan"],
        ["--streams", "1", "--mix", "epic"],
        ["--streams", "1", "--mix", "short=0"],
        ["--streams", "1", "--barge-ins", "1.5"],
        ["--streams", "1", "--processes", "-1"],
    ],
)
def test_a_wrong_flag_is_a_usage_error(arguments, capsys):
    with pytest.raises(SystemExit) as exited:
        main(["loadtest", *arguments])

    assert exited.value.code == 2
    assert "usage: voxgate loadtest" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--url", "gopher://x"], ["--server-pid", "4194305"], ["--html", "/no/such/folder/a.html"], ["--json", "/"]],
)
def test_a_wrong_address_process_or_file_is_told_before_anything_begins(arguments, capsys):
    assert main(["loadtest", "--streams", "1", *arguments]) == 2
    assert capsys.readouterr().err.startswith("voxgate loadtest: ")

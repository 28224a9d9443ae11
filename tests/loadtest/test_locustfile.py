import csv
import os
import subprocess
import sys
from pathlib import Path

from tree import ROOT

SHORT = {"VOXGATE_TOKENS_PER_SECOND": "60", "VOXGATE_BARGE_INS": "1"}


def ran(url: str, folder: Path, seconds: int) -> tuple[dict[str, dict[str, str]], str]:
    """What Locust counted, by name, and what it logged."""
    command = [sys.executable, "-m", "locust", "-f", str(ROOT / "loadtest" / "locustfile.py"), "--headless"]
    ended = subprocess.run(
        [*command, "-u", "6", "-r", "20", "-t", f"{seconds}s", "--host", url, "--csv", str(folder / "out")],
        capture_output=True,
        text=True,
        env={**os.environ, **SHORT},
        check=False,
        cwd=folder,
    )
    with open(folder / "out_stats.csv", newline="") as file:
        return {row["Name"]: row for row in csv.DictReader(file)}, ended.stderr


def test_locusts_users_hear_speech_and_say_what_they_heard(server, tmp_path):
    rows, log = ran(server, tmp_path, seconds=6)

    assert {"connect", "first audio", "utterance", "cancel", "probe"} <= set(rows)
    assert {"/v1/voices", "/health/ready"} <= set(rows)
    assert int(rows["first audio"]["Request Count"]) >= 5
    assert {name: row["Failure Count"] for name, row in rows.items()} == dict.fromkeys(rows, "0")
    assert "is not offered" not in log
    assert rows["speech first audio"]["Request Count"] == rows["/v1/audio/speech"]["Request Count"] > "0"
    assert float(rows["speech first audio"]["Max Response Time"]) > 1
    assert "Traceback" not in log


def test_nobody_there_is_counted_as_failures(tmp_path):
    rows, log = ran("http://127.0.0.1:9", tmp_path, seconds=2)

    assert int(rows["connect"]["Failure Count"]) == int(rows["connect"]["Request Count"]) > 0
    assert "Traceback" not in log

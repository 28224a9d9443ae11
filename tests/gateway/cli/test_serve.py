import subprocess
import sys

import pytest

from voxgate.gateway.cli import main
from voxgate.gateway.config import Config


def test_print_config_shows_every_setting_and_its_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VOXGATE_WORKERS", "3")

    assert main(["serve", "--port", "1234", "--print-config"]) == 0

    shown = capsys.readouterr().out
    assert "port = 1234  # flag" in shown
    assert "workers = 3  # environment" in shown
    assert [line.partition(" = ")[0] for line in shown.splitlines()] == list(Config.__struct_fields__)


@pytest.mark.parametrize("arguments", [["--port", "x"], ["--max-contexts", "0"], ["--config", "/nonexistent.toml"]])
def test_a_wrong_setting_is_one_line_and_exit_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["serve", *arguments]) == 2

    assert capsys.readouterr().err.count("\n") == 1


def test_the_help_lists_every_setting():
    result = subprocess.run(
        [sys.executable, "-m", "voxgate", "serve", "--help"], capture_output=True, text=True, timeout=30, check=True
    )

    assert all("--" + name.replace("_", "-") in result.stdout for name in Config.__struct_fields__)

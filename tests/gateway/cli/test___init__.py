import pytest

from voxgate import __version__
from voxgate.gateway.cli import main


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exited:
        main(["--version"])

    assert exited.value.code == 0
    assert capsys.readouterr().out == f"voxgate {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["sing"], ["serve", "--no-such-flag"]])
def test_a_usage_error_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exited:
        main(arguments)

    assert exited.value.code == 2
    assert "usage: voxgate" in capsys.readouterr().err


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--help"])

    shown = capsys.readouterr().out
    assert all(command in shown for command in ("serve", "say", "voices", "bench"))

import pytest

from tiny_chattts import write_directory
from voxgate.gateway.cli import main
from voxgate.synth.chattts.directory import Manifest, stamp, write_manifest
from voxgate.synth.chattts.lookahead import LookAhead


@pytest.fixture
def folder(tmp_path):
    return write_directory(tmp_path / "chattts")


def test_an_import_says_of_every_file_what_is_wrong_with_it(folder, capsys):
    (folder / "Vocos.safetensors").unlink()

    assert main(["engine", "import", "chattts", str(folder)]) == 1
    said = capsys.readouterr().err
    assert "voxgate engine: Vocos.safetensors is missing" in said
    assert "voxgate engine: Embed.safetensors is not the published file: its sha256 is" in said


@pytest.mark.parametrize("action", ["build", "inspect", "verify"])
def test_what_was_not_imported_is_not_used(folder, capsys, action):
    assert main(["engine", action, "chattts", str(folder)]) == 1
    assert "has not been imported: run `voxgate engine import" in capsys.readouterr().err


def test_inspect_shows_what_was_measured(folder, capsys):
    write_manifest(folder, Manifest(stamp(folder), LookAhead(4, 12), {12: 41.0}))

    assert main(["engine", "inspect", "chattts", str(folder)]) == 0
    assert "look-ahead 4 to 12 steps" in capsys.readouterr().out


def test_sizes_that_make_no_sense_are_refused(folder, capsys):
    assert main(["engine", "build", "chattts", str(folder), "--slots", "0"]) == 1
    assert "slots are 1 to 1024" in capsys.readouterr().err


def test_an_engine_nobody_knows_is_a_usage_error():
    with pytest.raises(SystemExit):
        main(["engine", "import", "piper", "."])

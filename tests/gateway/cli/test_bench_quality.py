import json
import re

import pytest

from voxgate.gateway.cli import main
from voxgate.gateway.cli.bench_quality import PARTS


def test_text_and_lengths_are_measured_and_told(tmp_path, capsys):
    assert main(["bench", "quality", "--parts", "text", "--count", "80", "--json", str(tmp_path / "q.json")]) == 0

    assert re.search(r"words lost, 80 sentences, whole +0.00 +kept", capsys.readouterr().out)
    figures = json.loads((tmp_path / "q.json").read_text())["text"]
    assert [figure["value"] for figure in figures[:4]] == [0, 0, 0, 0]


def test_json_for_stdout_is_all_there_is(capsys):
    assert main(["bench", "quality", "--parts", "text", "--count", "60", "--json", "-"]) == 0

    assert list(json.loads(capsys.readouterr().out)) == ["text"]


@pytest.mark.parametrize("parts", ["", "words", "text,word"])
def test_an_unknown_part_is_refused_with_those_there_are(parts: str, capsys):
    with pytest.raises(SystemExit) as refused:
        main(["bench", "quality", "--parts", parts])

    assert refused.value.code == 2
    assert ", ".join(PARTS) in capsys.readouterr().err

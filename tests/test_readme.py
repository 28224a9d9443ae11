"""What the README says holds: its program runs as it stands, its settings are real, its links lead somewhere."""

import re
import subprocess
import sys
import wave
from pathlib import Path

import pytest

from running import running_server
from tree import ROOT
from voxgate.gateway.config import settings

DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
README = (ROOT / "README.md").read_text()


def test_the_program_writes_speech_to_a_file(tmp_path: Path):
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)

    with running_server() as url:
        here = program.replace("127.0.0.1:8080", url.removeprefix("http://"))
        run = subprocess.run([sys.executable, "-c", here], cwd=tmp_path, capture_output=True, text=True, check=True)

    with wave.open(str(tmp_path / "hello.wav")) as file:
        seconds = file.getnframes() / file.getframerate()
    assert '"done"' in run.stdout
    assert 3 < seconds < 7


def test_the_table_of_settings_says_what_the_server_has():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", README, re.MULTILINE)
    real = {field.name: (shown(field.default), described(field.type)) for field in settings()}

    assert len(rows) > 3
    assert {name: (default, meaning) for name, default, meaning in rows} == {name: real[name] for name, _, _ in rows}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_to_one(document):
    links = re.findall(r"\]\(([^)#\s]+)", document.read_text())

    assert [link for link in links if "://" not in link and not (document.parent / link).is_file()] == []


def shown(default: object) -> str:
    return "none" if default in ((), "") else str(default)


def described(type: object) -> str:
    return (getattr(type, "extra_json_schema", None) or {})["description"]

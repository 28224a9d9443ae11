"""What the README says holds: its program runs as it stands, and its table of settings is the real one."""

import re
import subprocess
import sys
import wave
from pathlib import Path

from running import running_server
from tree import ROOT
from voxgate.gateway.config import settings

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


def test_the_table_of_settings_is_the_one_the_server_has():
    rows = re.findall(r"^\| `(\w+)` \| (?:`(.*?)`|) \| (.*) \|$", README, re.MULTILINE)

    assert rows == [(field.name, shown(field.default), described(field.type)) for field in settings()]


def shown(default: object) -> str:
    return "" if default == () else str(default)


def described(type: object) -> str:
    return (getattr(type, "extra_json_schema", None) or {})["description"]

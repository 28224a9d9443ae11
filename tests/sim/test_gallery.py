import re
import subprocess
import sys

from tree import ROOT


def test_the_figures_are_what_the_simulation_draws():
    command = [sys.executable, ROOT / "scripts" / "simulate", "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert result.stdout + result.stderr == ""
    assert result.returncode == 0


def test_the_page_shows_every_figure():
    shown = re.findall(r"\(admission/(\w+\.svg)\)", (ROOT / "docs" / "admission.md").read_text())

    assert sorted(shown) == sorted(file.name for file in (ROOT / "docs" / "admission").glob("*.svg"))

import subprocess
import sys

from tree import ROOT


def test_the_generated_documentation_is_what_the_code_says():
    result = subprocess.run(
        [sys.executable, ROOT / "scripts" / "docs", "--check"], capture_output=True, text=True, check=False
    )

    assert result.stdout + result.stderr == ""
    assert result.returncode == 0

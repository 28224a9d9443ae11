"""scripts/gpu-check runs: on the CPU, at a toy size, so that on a GPU it does not fail for its own sake."""

import subprocess
import sys

from tree import ROOT


def test_the_check_for_gpus_runs_at_a_toy_size():
    command = [sys.executable, str(ROOT / "scripts" / "gpu-check"), "--cpu"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)

    assert done.returncode == 0, done.stderr
    assert "codes beside others equal to those alone: True" in done.stdout
    (measured,) = (line.split() for line in done.stdout.splitlines() if "x real time" in line)
    assert measured == ["batch", "step", "ms", "x", "real", "time", "decode", "of", "12", "steps", "ms"]
    assert "gapless" in done.stdout

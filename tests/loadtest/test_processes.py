import os
import subprocess
import sys

from voxgate.loadtest.processes import usage

BURN = "import time\nwhile time.process_time() < 0.2: pass\n"
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BURN!r}], check=True)
child = subprocess.Popen([sys.executable, "-c", {BURN!r} + "print('burnt', flush=True)\\nimport sys; sys.stdin.read()"])
sys.stdin.read()
child.wait()
"""


def test_ended_and_living_children_count():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "burnt\n"
        used = usage(parent.pid)
        parent.communicate("")

    assert used is not None
    assert used.processes == 2
    assert used.cpu_seconds >= 0.38  # 0.2 s each, told in hundredths
    assert used.rss_bytes > 2 << 20


def test_this_very_process_is_there():
    used = usage(os.getpid())

    assert used is not None
    assert used.cpu_seconds > 0


def test_a_process_that_is_not_there_uses_nothing():
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()

    assert usage(gone.pid) is None

import subprocess
import sys
import time

import pytest

from voxgate.loadtest.conversation import Target
from voxgate.loadtest.plan import Load
from voxgate.loadtest.run import pack

COMMAND = [sys.executable, "-P", "-m", "voxgate.loadtest.share"]
LOAD = (Load(streams=1, ramp=0.0, duration=600.0), Target("ws://127.0.0.1:9"))


@pytest.mark.parametrize("told", [b"", pack(LOAD), pack(LOAD)[:20], pack(LOAD) + pack(time.monotonic())])
def test_a_process_whose_parent_is_gone_ends(told):
    ended = subprocess.run(COMMAND, input=told, capture_output=True, timeout=60, check=False)

    assert (ended.returncode, ended.stderr) == (0, b"")


def test_it_says_when_it_is_ready():
    ended = subprocess.run(COMMAND, input=pack(LOAD), capture_output=True, timeout=60, check=True)

    assert ended.stdout == pack(True)

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading

import msgspec
import numpy as np
import pytest

from voxgate.synth.engine import EngineInfo, Voice
from voxgate.synth.messages import (
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    PREFIX,
    Failed,
    Ready,
    Spoken,
    Synthesize,
    decode_reply,
    encode,
    payload_length,
)
from voxgate.synth.pool import SETUP, WORKER_COMMAND
from voxgate.synth.segment import Boundary, Segment, Style
from voxgate.synth.speech import Speech
from voxgate.synth.worker import serve

SETUP_JSON = msgspec.json.encode(SETUP).decode()


class ScriptedEngine:
    """Says what the text of the segment asks for."""

    info = EngineInfo(
        "scripted",
        "1",
        24000,
        (Voice("v", "en", "scripted", "realtime", 24000),),
        1,
        stepwise=False,
        deterministic=True,
    )

    def warm(self):
        pass

    def synthesize(self, segment, style):
        match segment.text:
            case "refuse":
                raise ValueError("not in this voice")
            case "break":
                raise RuntimeError("out of luck")
            case text:
                return Speech(np.arange(len(text), dtype=np.int16), b"times")


class Gateway:
    """The other end of a worker's socket."""

    def __init__(self):
        self.socket, self.worker_end = socket.socketpair()
        self.socket.settimeout(30)

    def ask(self, job, text):
        segment = Segment(0, text, 0, len(text), Boundary.START, Boundary.END)
        self.socket.sendall(encode(Synthesize(job, segment, Style("heart"))))
        return self.reply()

    def reply(self):
        return decode_reply(self.read(payload_length(self.read(PREFIX.size), MAX_REPLY_BYTES)))

    def read(self, length):
        data = b""
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            assert part, "the worker has closed its end"
            data += part
        return data

    def spawn(self, nice=0):
        command = [*WORKER_COMMAND, str(self.worker_end.fileno()), str(nice), SETUP_JSON]
        process = subprocess.Popen(command, pass_fds=[self.worker_end.fileno()])
        self.worker_end.close()
        return process


@pytest.fixture
def gateway():
    gateway = Gateway()
    yield gateway
    gateway.socket.close()


@pytest.fixture
def served(gateway):
    """A gateway in talks with a worker loop; `served.ended()` is what the loop returned once it has ended."""
    result = []
    thread = threading.Thread(
        target=lambda: result.append(serve(gateway.worker_end, ScriptedEngine(), ScriptedEngine.info))
    )
    thread.start()
    assert gateway.reply() == Ready(ScriptedEngine.info)

    def ended():
        thread.join(timeout=30)
        return result[0]

    gateway.ended = ended
    yield gateway
    gateway.socket.close()
    thread.join(timeout=30)
    gateway.worker_end.close()


@pytest.fixture(scope="module")
def process():
    """A real worker with the bundled voice, as the pool starts it."""
    gateway = Gateway()
    worker = gateway.spawn(nice=5)
    assert isinstance(gateway.reply(), Ready)
    yield gateway, worker
    gateway.socket.close()
    worker.wait(timeout=30)


# --- the loop -------------------------------------------------------------------------------------------------------


def test_a_segment_is_answered_by_its_pcm_and_times(served):
    reply = served.ask(7, "four")

    assert isinstance(reply, Spoken)
    assert (reply.job, reply.pcm) == (7, np.arange(4, dtype=np.int16).tobytes())
    assert reply.times == b"times"
    assert reply.compute_s >= 0


def test_a_refused_segment_fails_alone(served):
    assert served.ask(1, "refuse") == Failed(1, "not in this voice")
    assert isinstance(served.ask(2, "next"), Spoken)


def test_a_broken_segment_fails_alone(served):
    assert served.ask(1, "break") == Failed(1, "RuntimeError: out of luck", broken=True)
    assert isinstance(served.ask(2, "next"), Spoken)


def test_the_end_of_the_socket_ends_the_worker(served):
    served.socket.close()

    assert served.ended() == 0


@pytest.mark.parametrize(
    ("message", "says"),
    [(PREFIX.pack(MAX_REQUEST_BYTES + 1), "over the limit"), (PREFIX.pack(3) + b"\xc1\xc1\xc1", "cannot be read")],
    ids=["too large", "malformed"],
)
def test_a_message_out_of_protocol_ends_the_worker_and_says_why(served, caplog, message, says):
    served.socket.sendall(message)

    assert served.ended() == 1
    assert says in caplog.text


# --- the process ----------------------------------------------------------------------------------------------------


def test_the_worker_runs_at_the_priority_it_is_given(process):
    _gateway, worker = process

    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_that_reach_the_whole_service_are_not_for_the_worker(process, number: signal.Signals):
    gateway, worker = process

    worker.send_signal(number)

    assert isinstance(gateway.ask(1, "Still here."), Spoken)


def test_the_worker_goes_when_the_gateway_closes(gateway):
    worker = gateway.spawn()
    gateway.reply()

    gateway.socket.close()

    assert worker.wait(timeout=30) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the end of the socket ends the worker, not a signal")
def test_the_worker_goes_when_the_gateway_is_killed():
    # The socket stays open in this test, so that only the signal can end the worker.
    gateway = Gateway()
    script = textwrap.dedent(
        f"""
        import subprocess, sys, time
        fd, setup = sys.argv[1:]
        worker = subprocess.Popen([*{list(WORKER_COMMAND)!r}, fd, "0", setup], pass_fds=[int(fd)])
        print(worker.pid, flush=True)
        time.sleep(60)
        """
    )
    fd = gateway.worker_end.fileno()
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(fd), SETUP_JSON], pass_fds=[fd], stdout=subprocess.PIPE, text=True
    )
    gateway.worker_end.close()
    with gateway.socket, parent:
        assert parent.stdout is not None
        worker = os.pidfd_open(int(parent.stdout.readline()))
        gateway.reply()

        parent.kill()

        assert select.select([worker], [], [], 30)[0], "the worker outlived its gateway"
        os.close(worker)

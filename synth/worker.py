"""The engine worker process: takes segments from its socket, speaks them, sends the PCM back.

Started by the pool as `python -m voxgate.synth.worker FD NICE SETUP`: its end of a socket pair, and which engine to run
as JSON. One thread, no event loop; a whole-segment engine is served here, one segment at a time, a stepwise one by
stepwise.py. It ends when the gateway's end of the socket closes. Knows neither utterances nor schedules.
"""

import os

# Before numpy is imported: one process per core, so a second thread only takes a core from another worker.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import contextlib
import ctypes
import gc
import logging
import signal
import socket
import sys
import time
from typing import cast

import msgspec

from . import registry, stepwise
from .engine import EngineInfo, SegmentEngine, Setup, StepEngine
from .messages import (
    MAX_REQUEST_BYTES,
    PREFIX,
    BadMessage,
    Failed,
    NotReady,
    Ready,
    Reply,
    Spoken,
    Synthesize,
    decode_request,
    encode,
    payload_length,
)

logger = logging.getLogger("voxgate.worker")

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> int:
    fd, nice, setup = int(sys.argv[1]), int(sys.argv[2]), msgspec.json.decode(sys.argv[3], type=Setup)
    logging.basicConfig(format=f"%(levelname)s voxgate worker {os.getpid()}: %(message)s", level=logging.INFO)
    # Ctrl+C reaches the whole group, systemd's SIGTERM every process of a service; draining is the gateway's.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _die_with_parent()
    os.nice(nice)
    if setup.device:
        os.environ["CUDA_VISIBLE_DEVICES"] = setup.device
    with socket.socket(fileno=fd) as connection:
        try:
            engine = registry.make(setup)
            engine.warm()
            info = registry.named(engine.info, setup)
        except Exception as error:
            logger.error("the engine %s cannot be started: %s", setup.name, error)
            with contextlib.suppress(OSError):  # the gateway has gone
                _send(connection, NotReady(str(error)[:1000]))
            return 1
        gc.collect()
        gc.freeze()  # lexicons are some 600,000 objects; collecting them takes longer than a short segment
        if info.stepwise:
            return stepwise.serve(connection, cast(StepEngine, engine), info)
        return serve(connection, cast(SegmentEngine, engine), info)


def serve(connection: socket.socket, engine: SegmentEngine, info: EngineInfo) -> int:
    """Answer until the other end closes (0) or breaks the protocol (1)."""
    try:
        _send(connection, Ready(info))
        while (request := _receive(connection)) is not None:
            _send(connection, answer(engine, request))
    except BadMessage as error:
        logger.error("the gateway broke the protocol, ending: %s", error)
        return 1
    except (BrokenPipeError, ConnectionResetError):
        pass  # the gateway went while we were speaking
    return 0


def answer(engine: SegmentEngine, request: Synthesize) -> Spoken | Failed:
    """Speak one segment; whatever goes wrong with it is an answer, not the end of the worker."""
    began_at = time.perf_counter()
    try:
        speech = engine.synthesize(request.segment, request.style)
    except ValueError as error:
        return Failed(request.job, str(error))
    except Exception as error:
        logger.exception("job %d failed", request.job)
        return Failed(request.job, f"{type(error).__name__}: {error}", broken=True)
    return Spoken(request.job, speech.pcm.tobytes(), time.perf_counter() - began_at, times=speech.times)


def _receive(connection: socket.socket) -> Synthesize | None:
    prefix = _read(connection, PREFIX.size)
    if prefix is None:
        return None
    payload = _read(connection, payload_length(prefix, MAX_REQUEST_BYTES))
    if payload is None:
        return None
    request = decode_request(payload)
    if not isinstance(request, Synthesize):
        raise BadMessage(f"{type(request).__name__} is for stepwise engines")
    return request


def _read(connection: socket.socket, length: int) -> bytearray | None:
    """Exactly `length` bytes, None when the other end closes before."""
    data = bytearray(length)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return data


def _send(connection: socket.socket, reply: Reply) -> None:
    connection.sendall(encode(reply))


def _die_with_parent() -> None:
    """Be killed when the gateway is, even in the middle of a model call.

    Linux; the signal follows the thread that started us, which is the gateway's main thread. Elsewhere the end of the
    socket is what ends us, after the segment at hand.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())

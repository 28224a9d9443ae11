"""The loop of a worker with a stepwise engine: reads what the gateway says, makes the engine's calls, sends the sound.

Everything that is decided is decided by the runner (runner.py). One thread: what the gateway says is read between any
two calls of the engine, so a cancelled segment is stepped once more at most.
"""

import logging
import math
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from .engine import EngineInfo, StepEngine
from .messages import (
    MAX_REQUEST_BYTES,
    PREFIX,
    BadMessage,
    Cancel,
    Cover,
    Failed,
    Figures,
    Hold,
    Narrow,
    Ready,
    Reply,
    Request,
    Spoken,
    Synthesize,
    decode_request,
    encode,
    payload_length,
)
from .ramp import ramp
from .runner import Chunk, Join, Runner, Turn

logger = logging.getLogger("voxgate.worker")

SIGN_OF_LIFE_S = 0.5  # while there is any job; the gateway gives up on a worker that is silent for much longer
RECEIVE_BYTES = 65_536
clock = time.monotonic


def serve(connection: socket.socket, engine: StepEngine, info: EngineInfo) -> int:
    """Speak until the other end closes (0), breaks the protocol or the engine breaks (1)."""
    try:
        _Loop(connection, engine, info).run()
    except BadMessage as error:
        logger.error("the gateway broke the protocol, ending: %s", error)
        return 1
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return 0  # the gateway has gone
    except Exception:
        logger.exception("the engine broke, ending")
        return 1


class _Loop:
    def __init__(self, connection: socket.socket, engine: StepEngine, info: EngineInfo) -> None:
        assert info.steps is not None
        chunks = ramp(info.steps, info.sample_rate)
        _tell_ramp(info, len(chunks.rungs), chunks.rungs[0].new, sustained=chunks.sustained, flat=chunks.flattened)
        self._connection = connection
        self._inbox = _Inbox(connection)
        self._engine = engine
        self._info = info
        self._runner = Runner(info.max_slots, info.steps.most_steps, info.sample_rate, chunks)
        self._busy_s = 0.0  # of the engine, not accounted for yet
        self._told: Figures | None = None
        self._told_at = -math.inf

    def run(self) -> NoReturn:
        """Until an exception."""
        self._send(Ready(self._info))
        while True:
            self._listen(self._patience())
            if turn := self._runner.turn(clock()):
                self._play(turn)
            self._tell(turn)

    def _patience(self) -> float | None:
        """Seconds to wait for a message; None: for ever."""
        now = clock()
        wake_at = self._runner.wake_at(now)
        if self._runner.jobs:
            wake_at = min(wake_at, self._told_at + SIGN_OF_LIFE_S)
        return None if wake_at == math.inf else max(0.0, wake_at - now)

    def _play(self, turn: Turn) -> None:
        """One round of the engine."""
        began_at = time.perf_counter()
        for slot in turn.releases:
            self._engine.release(slot)
        empty = {join.slot for join in turn.joins if not self._prefill(join)}
        turn = replace(turn, rows=tuple(row for row in turn.rows if row[0] not in empty)) if empty else turn
        if not turn.rows:
            self._busy_s += time.perf_counter() - began_at
            return
        ended = self._engine.step([slot for slot, _job in turn.rows])
        self._busy_s += time.perf_counter() - began_at
        self._listen(0.0)  # what was cancelled meanwhile is not decoded any more
        stepped = self._runner.stepped(turn, ended, self._busy_s)
        self._busy_s = 0.0
        for job, problem in stepped.failed:
            self._send(Failed(job, problem))
        if stepped.chunks:
            self._decode(stepped.chunks)

    def _decode(self, chunks: list[Chunk]) -> None:
        audible = [chunk.window for chunk in chunks if chunk.window.end > chunk.window.begin]
        began_at = time.perf_counter()
        sounds: Sequence[NDArray[np.int16]] = self._engine.decode(audible) if audible else ()
        self._busy_s += time.perf_counter() - began_at
        if len(sounds) != len(audible):
            raise RuntimeError(f"decode gave {len(sounds)} sounds for {len(audible)} windows")
        for sound in sounds:
            if sound.dtype != np.int16 or sound.ndim != 1:
                raise RuntimeError(f"decode gave {sound.dtype} of shape {sound.shape} and not mono int16")
        self._listen(0.0)
        by_slot = {window.slot: sound for window, sound in zip(audible, sounds, strict=True)}
        now = clock()
        for chunk in chunks:
            pcm = by_slot.get(chunk.window.slot)
            if self._runner.emitted(chunk, 0 if pcm is None else len(pcm), now):
                data = b"" if pcm is None else pcm.tobytes()
                self._send(Spoken(chunk.job, data, chunk.compute_s, chunk.window.last))

    def _prefill(self, join: Join) -> bool:
        """Whether the segment is in its slot."""
        try:
            self._engine.prefill(join.slot, join.segment, join.style)
        except ValueError as problem:
            self._drop(join.job, str(problem), broken=False)
        except Exception as problem:
            logger.exception("job %d cannot be loaded", join.job)
            self._drop(join.job, f"{type(problem).__name__}: {problem}", broken=True)
        else:
            return True
        return False

    def _drop(self, job: int, message: str, *, broken: bool) -> None:
        if self._runner.drop(job):
            self._send(Failed(job, message, broken))

    def _tell(self, turn: Turn) -> None:
        """How the slots stand, when that has changed or a sign of life is due."""
        now = clock()
        is_due = self._runner.jobs > 0 and now >= self._told_at + SIGN_OF_LIFE_S
        if not (is_due or turn.releases or turn.joins):
            return
        figures = Figures(len(turn.rows), self._engine.pool().idle_bytes)
        if is_due or figures != self._told:
            self._send(figures)
            self._told, self._told_at = figures, now

    def _listen(self, timeout_s: float | None) -> None:
        for request in self._inbox.receive(timeout_s):
            match request:
                case Synthesize(job, segment, style, covered_until):
                    self._runner.add(job, segment, style, covered_until)
                case Cancel(job):
                    self._runner.cancel(job)
                case Hold(job, held):
                    (self._runner.hold if held else self._runner.unhold)(job)
                case Cover(job, until):
                    self._runner.cover(job, until)
                case Narrow(width):
                    self._runner.narrow(width)

    def _send(self, reply: Reply) -> None:
        self._connection.sendall(encode(reply))


class _Inbox:
    """Requests off the socket, without waiting for more than there is."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._buffer = bytearray()

    def receive(self, timeout_s: float | None) -> list[Request]:
        """What has come, after waiting for something so long at most. `EOFError` when the other end has closed."""
        # Rounded up: woken before a row may run, the loop would only go round once more.
        if not self._poll.poll(None if timeout_s is None else math.ceil(timeout_s * 1000)):
            return []
        data = self._connection.recv(RECEIVE_BYTES)
        if not data:
            raise EOFError
        self._buffer += data
        requests: list[Request] = []
        at = 0
        while len(self._buffer) - at >= PREFIX.size:
            begin = at + PREFIX.size
            end = begin + payload_length(self._buffer[at:begin], MAX_REQUEST_BYTES)
            if end > len(self._buffer):
                break
            requests.append(decode_request(self._buffer[begin:end]))
            at = end
        del self._buffer[:at]
        return requests


def _tell_ramp(info: EngineInfo, rungs: int, first: int, *, sustained: bool, flat: bool) -> None:
    if not sustained:
        logger.warning("%s is slower than speech with %d slots: streams will have gaps", info.name, info.max_slots)
    elif flat:
        logger.info("%s leaves little time: its chunks grow from %d steps in %d", info.name, first, rungs)

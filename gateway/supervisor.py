"""Several gateway processes on one port (SO_REUSEPORT): starts them, replaces those that die, stops them together.

Each has its listener, its workers and its share of the limits; the kernel spreads connections over them by a hash,
unevenly (docs/processes.md). What accounts use is added up over all of them (ledger.py). Knows nothing of what a
gateway does.
"""

import ctypes
import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from types import FrameType

import msgspec

from .config import Config

logger = logging.getLogger("voxgate.supervisor")

# Which gateway it is, from 0, its settings, and what to call when it listens; the exit status.
Run = Callable[[int, Config, Callable[[], None]], int]

PR_SET_PDEATHSIG = 1  # linux/prctl.h
RESTART_S = 1.0  # between the deaths of a gateway and its replacement, so that one that cannot start does not spin
POLL_S = 0.1
FALSE_STARTS = 3  # gateways in a row that end before they listen: the next one would, too
GRACE_S = 10.0  # beyond the drain, before a gateway that does not end is killed


def shares(config: Config, cores: int) -> list[Config]:
    """What each of `config.gateways` processes is given: together the workers and limits of the whole, at least one."""
    count = config.gateways
    workers = config.workers or cores
    return [
        msgspec.structs.replace(
            config,
            gateways=1,
            workers=_share(workers, count, number),
            engines={
                name: msgspec.structs.replace(
                    engine,
                    workers=_share(engine.workers, count, number) if engine.workers else 0,
                    slots=_share(engine.slots, count, number) if engine.slots else 0,
                )
                for name, engine in config.engines.items()
            },
            max_connections=_share(config.max_connections, count, number),
            max_utterances=_share(config.max_utterances, count, number) if config.max_utterances else 0,
            min_utterances=_share(config.min_utterances, count, number),
            max_waiting=_share(config.max_waiting, count, number) if config.max_waiting else 0,
            max_queued_segments=_share(config.max_queued_segments, count, number),
        )
        for number in range(count)
    ]


def _share(total: int, count: int, number: int) -> int:
    return max(1, total // count + (number < total % count))


class Supervisor:
    """The parent of the gateways. `run` returns when all have ended after a signal."""

    def __init__(self, configs: list[Config], run: Run) -> None:
        self._configs = configs
        self._run = run
        self._context = multiprocessing.get_context("spawn")
        self._processes: list[SpawnProcess] = []
        self._listening = [self._context.Event() for _ in configs]
        self._stopping = False
        self._false_starts = 0
        self.restarts = 0

    def run(self, announce: Callable[[], None]) -> int:
        """Runs until SIGINT or SIGTERM, and calls `announce` once when all gateways listen; the exit status.

        A second signal is passed on as well, which ends the drain. Gateways that do not come up end it, with 1.
        """
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, self._stop)
        self._processes = [self._start(number) for number in range(len(self._configs))]
        restart_at = [0.0] * len(self._processes)
        announced = False
        while not self._stopping:
            time.sleep(POLL_S)
            if not announced and all(event.is_set() for event in self._listening):
                announced = True
                announce()
            for number, process in enumerate(self._processes):
                if process.is_alive() or self._stopping:
                    continue
                if restart_at[number] == 0.0:
                    if self._has_false_started(number):
                        logger.error("the gateways do not come up, %d times in a row", FALSE_STARTS)
                        self._stop(signal.SIGTERM, None)
                        self._wait()
                        return 1
                    logger.error("gateway %d ended with %s; it is replaced", number, process.exitcode)
                    restart_at[number] = time.monotonic() + RESTART_S
                elif time.monotonic() >= restart_at[number]:
                    restart_at[number] = 0.0
                    self.restarts += 1
                    self._processes[number] = self._start(number)
        self._wait()
        return 0

    def _has_false_started(self, number: int) -> bool:
        """Counts the end of a gateway; whether it was one too many that never listened."""
        self._false_starts = 0 if self._listening[number].is_set() else self._false_starts + 1
        return self._false_starts >= FALSE_STARTS

    def _start(self, number: int) -> SpawnProcess:
        self._listening[number].clear()
        arguments = self._run, number, self._configs[number], self._listening[number]
        process = self._context.Process(target=_member, args=arguments)
        process.start()
        return process

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        self._stopping = True
        for process in self._processes:
            if process.is_alive():
                process.terminate()

    def _wait(self) -> None:
        deadline = time.monotonic() + self._configs[0].drain_s + GRACE_S
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


def _member(run: Run, number: int, config: Config, listening: Event) -> None:
    """A gateway process. Ctrl+C reaches the whole group; here it comes from the supervisor, as a SIGTERM."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise SystemExit(run(number, config, listening.set))


def reserve(host: str, port: int) -> socket.socket:
    """Takes the port for this group of processes without listening on it; closed when they have ended."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    reserved = socket.socket(family, socket.SOCK_STREAM)
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((host, port))
    except OSError:
        reserved.close()
        raise
    return reserved


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))

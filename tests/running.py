"""A real server for a test: a process of its own on a free port, stopped at the end."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

READY_SECONDS = 60.0  # far more than warming takes, so that only a server that hangs runs into it


@contextmanager
def running_server(
    *arguments: str,
    command: Sequence[str] = (sys.executable, "-m", "voxgate"),
    cwd: str | None = None,
    stderr: IO[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Runs `voxgate serve` until the block ends; gives `http://127.0.0.1:PORT` as soon as its voices are warm.

    `env` is added to the environment."""
    serve = [*command, "serve", "--host", "127.0.0.1", "--port", "0", *arguments]
    with subprocess.Popen(
        serve, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=cwd, env={**os.environ, **(env or {})}
    ) as process:
        try:
            url = _announced(process)
            _wait_ready(url, process)
            yield url
        finally:
            process.terminate()


def _announced(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"listening on (http://\S+)", line):
            return found[1]
    raise RuntimeError(f"the server ended with {process.wait()} before it listened")


def _wait_ready(url: str, process: subprocess.Popen[str]) -> None:
    give_up_at = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up_at:
        try:
            with urllib.request.urlopen(f"{url}/health/ready", timeout=5):
                return
        except urllib.error.HTTPError as not_ready:
            if not_ready.code != 503:
                raise
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode} while it was warming its voices")
        time.sleep(0.05)  # there is nothing to wait on but the answer itself
    raise TimeoutError(f"{url} was not ready within {READY_SECONDS:g} s")


def with_fakes() -> dict[str, str]:
    """An environment in which `fakes/` can be imported from by bare names, as an operator's own engines would be."""
    fakes = str(Path(__file__).parent / "fakes")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [fakes, os.environ.get("PYTHONPATH")]))}


def free_port() -> int:
    """A port that nobody listened on just now, for programs that cannot take one by themselves."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def children_of(pid: int) -> list[int]:
    """The worker processes of a server: its child processes, oldest first."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sorted(map(int, found))


def server_pid(url: str) -> int:
    """The one process that listens on the server's port."""
    (pid,) = server_pids(url)
    return pid


def server_pids(url: str) -> list[int]:
    """The processes that listen on the server's port."""
    port = int(url.rpartition(":")[2])
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "0A"}
    return sorted(int(process.name) for process in Path("/proc").glob("[0-9]*") if _sockets(process) & listening)


def _sockets(process: Path) -> set[str]:
    found = set()
    with suppress(OSError):  # processes come and go
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                found.add(os.readlink(descriptor))
    return found


async def eventually(what: str, holds: Callable[[], bool]) -> None:
    """Waits for something that no message announces."""
    for _ in range(400):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"never: {what}")

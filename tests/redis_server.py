"""A real Redis for a test: a process of its own on a Unix socket, nothing kept on disk."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

START_SECONDS = 20.0


class RedisServer:
    """Can be stopped, continued, killed and started again in the same place."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"
        self.client = redis.Redis.from_url(self.url)

    def start(self) -> None:
        command = ["redis-server", "--port", "0", "--unixsocket", self._socket, "--save", "", "--dir", "/"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        give_up_at = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(redis.ConnectionError):
                self.client.ping()
                return
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                raise RuntimeError("redis-server does not start")
            time.sleep(0.01)  # there is nothing to wait on but the answer itself

    def stop(self) -> None:
        """Its sockets stay open, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def fill(self) -> None:
        """Refuses every write from now on; reads go on."""
        self.client.config_set("maxmemory", 1)

    @property
    def entries(self) -> int:
        count = self.client.dbsize()
        assert isinstance(count, int)
        return count

    def wait_for(self, entries: int) -> None:
        """Until so many have been written: servers do that behind everybody's back."""
        give_up_at = time.monotonic() + START_SECONDS
        while self.entries < entries:
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"{self.entries} of {entries} entries came")
            time.sleep(0.01)  # there is nothing to wait on but the answer itself

    def _signal(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)


@contextmanager
def running_redis(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.client.close()
        server.kill()

"""A Unix socket that the supervisor serves to its gateways, from a thread with an event loop of its own."""

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from pathlib import Path

MESSAGE_BYTES = 1 << 20


class LocalService(ABC):
    """For one life: `start`, then `close`. A message is a line."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self._listening = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One gateway, until it is gone; then the connection is closed. Runs in the thread's loop."""

    def start(self) -> None:
        """Returns when gateways can connect."""
        self._thread.start()
        self._listening.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_unix_server(self._accept, self.path, limit=MESSAGE_BYTES))
        self._listening.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0))  # for sockets to be closed
        self._loop.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # asyncio would log it as an error
            try:
                await self.serve(reader, writer)
            finally:
                writer.close()

"""Several gateways of one server, and how one asks the others: a Unix socket each, in a folder that they share.

Whoever connects is told one message, then the socket closes. Knows nothing of what is told.
"""

import asyncio
import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

WITHIN_S = 1.0  # a gateway that has not answered by then is left out
LENGTH = struct.Struct("!I")


class Neighbours:
    """`number`: which of the gateways this one is; `tell` gives the message of this one."""

    def __init__(self, folder: Path, number: int, tell: Callable[[], bytes]) -> None:
        self._folder = folder
        self._number = number
        self._tell = tell

    async def run(self) -> None:
        """Answers the others until cancelled."""
        path = self._path(self._number)
        path.unlink(missing_ok=True)  # of the one that this one replaces
        async with await asyncio.start_unix_server(self._serve, path) as server:
            await server.serve_forever()

    async def ask_all(self) -> dict[int, bytes | None]:
        """What each gateway tells, this one included; None where one does not answer."""
        numbers = {int(path.name.rpartition("-")[2]) for path in self._folder.glob("gateway-*")}
        others = sorted(numbers - {self._number})
        answers = await asyncio.gather(*(self._ask(number) for number in others))
        return {self._number: self._tell(), **dict(zip(others, answers, strict=True))}

    async def _ask(self, number: int) -> bytes | None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):  # TimeoutError is an OSError
            async with asyncio.timeout(WITHIN_S):
                reader, writer = await asyncio.open_unix_connection(self._path(number))
                try:
                    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                    return await reader.readexactly(length)
                finally:
                    writer.close()
        return None

    async def _serve(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        message = self._tell()
        writer.write(LENGTH.pack(len(message)) + message)
        writer.close()  # once it has been read

    def _path(self, number: int) -> Path:
        return self._folder / f"gateway-{number}"

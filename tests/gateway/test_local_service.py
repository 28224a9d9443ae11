import asyncio
from pathlib import Path

from voxgate.gateway.local_service import LocalService


class Echo(LocalService):
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)


async def test_it_answers_from_a_thread_of_its_own_from_start_to_close(tmp_path: Path):
    service = Echo(tmp_path / "echo", "echo")
    service.start()
    reader, writer = await asyncio.open_unix_connection(service.path)
    writer.write(b"hello\n")
    assert await reader.readline() == b"hello\n"

    service.close()
    assert await reader.read() == b""
    writer.close()

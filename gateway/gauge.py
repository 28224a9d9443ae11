"""GPU memory where several gateways are: read once, by the supervisor, and what all their pools have to spare together.

The supervisor's side (`Gauge`) tells every gateway the readings and what the others' pools hold idle; a gateway's side
(`Distant`) answers with its own pools. An only gateway has a monitor of its own (`Near`). Decides nothing.
"""

import asyncio
import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from ..admission.vram import Monitor, MonitorSettings, Reading, fresh
from .local_service import MESSAGE_BYTES, LocalService

logger = logging.getLogger("voxgate.gauge")

RECONNECT_S = 0.2


class Told(msgspec.Struct, frozen=True):
    """What a gateway is told each time."""

    readings: list[Reading]
    idle_elsewhere: dict[str, int]  # bytes by device


Idle = dict[str, int]
_encode = msgspec.json.Encoder().encode
_decode_told = msgspec.json.Decoder(Told).decode
_decode_idle = msgspec.json.Decoder(Idle).decode


class Pools:
    """Bytes that the pools of each gateway hold idle, by device. Pure."""

    def __init__(self) -> None:
        self._idle: dict[int, Idle] = {}

    def report(self, gateway: int, idle: Idle) -> None:
        self._idle[gateway] = idle

    def leave(self, gateway: int) -> None:
        self._idle.pop(gateway, None)

    def others(self, gateway: int) -> Idle:
        """What all but this one hold."""
        total: Counter[str] = Counter()
        for other, idle in self._idle.items():
            if other != gateway:
                total.update(idle)
        return dict(total)


class Gauge(LocalService):
    """The supervisor's side. Owns the monitor."""

    def __init__(self, path: Path, monitor: Monitor) -> None:
        super().__init__(path, "gauge")
        self._monitor = monitor
        self._pools = Pools()
        self._gateways = 0

    def start(self) -> None:
        self._monitor.start()
        super().start()

    def close(self) -> None:
        super().close()
        self._monitor.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._gateways += 1
        gateway = self._gateways
        readings = await asyncio.to_thread(self._monitor.first_readings)
        try:
            while True:
                told = Told(list(readings.values()), self._pools.others(gateway))
                writer.write(_encode(told) + b"\n")
                if not (line := await reader.readline()):
                    break
                self._pools.report(gateway, _decode_idle(line))
                await asyncio.sleep(self._monitor.settings.every_s)
                readings = self._monitor.readings()
        except (OSError, ValueError) as problem:
            logger.error("what a gateway's pools hold cannot be read: %s", problem)
        finally:
            self._pools.leave(gateway)


class Devices(Protocol):
    """The memory of the GPUs, as a gateway sees it."""

    def readings(self) -> dict[str, Reading]: ...

    def first_readings(self) -> dict[str, Reading]:
        """The same, after waiting for them to be read once. Not in the loop."""
        ...

    def exchange(self, idle: Idle) -> Mapping[str, int]:
        """Tells what the pools here hold idle; what those of other gateways do. Bytes by device."""
        ...

    async def run(self) -> None:
        """Until cancelled."""
        ...


class Near(Monitor):
    """For the only gateway: a monitor of its own."""

    def exchange(self, idle: Idle) -> Mapping[str, int]:
        return {}

    async def run(self) -> None:
        self.start()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.shield(asyncio.to_thread(self.close))


class Distant:
    """For one of several: what the supervisor tells. Without a supervisor the memory is unknown."""

    def __init__(self, path: Path, settings: MonitorSettings | None = None) -> None:
        self._path = path
        self._stale_s = (settings or MonitorSettings()).stale_s
        self._told = Told([], {})
        self._asked = threading.Event()
        self._idle: Idle = {}

    def readings(self) -> dict[str, Reading]:
        return {each.device: each for each in fresh(self._told.readings, self._stale_s)}

    def first_readings(self) -> dict[str, Reading]:
        self._asked.wait(2 * self._stale_s)  # the supervisor itself waits that long for a driver
        return self.readings()

    def exchange(self, idle: Idle) -> Mapping[str, int]:
        self._idle = idle
        return self._told.idle_elsewhere

    async def run(self) -> None:
        while True:
            with contextlib.suppress(OSError):  # not there yet, or not any more
                reader, writer = await asyncio.open_unix_connection(self._path, limit=MESSAGE_BYTES)
                try:
                    while line := await reader.readline():
                        self._told = _decode_told(line)
                        self._asked.set()
                        writer.write(_encode(self._idle) + b"\n")
                        await writer.drain()
                except ValueError as problem:
                    logger.error("what the supervisor says of the GPUs cannot be read: %s", problem)
                finally:
                    writer.close()
            await asyncio.sleep(RECONNECT_S)

"""How much memory the GPUs have left: NVML, read in a thread of its own, and the only file that knows pynvml.

What cannot be told (no package, no driver, no permission, a lost GPU, unified memory, a driver that hangs) is unknown,
is said once in the log, and is looked for again ever more seldom; it is never an error of ours. Decides nothing.

Limits: a device that is added while all the others are well is seen only after their next trouble.
"""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

logger = logging.getLogger("voxgate.vram")


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    every_s: float = 0.2
    stale_s: float = 2.0  # a reading older than this says nothing
    first_pause_s: float = 0.2  # after trouble; doubled each time
    longest_pause_s: float = 10.0
    steady_s: float = 10.0  # well for so long before the log says so: a device that comes and goes would fill it
    close_s: float = 2.0  # a driver that hangs must not keep the server from ending


@dataclass(frozen=True, slots=True)
class Reading:
    """Memory of one device, or of one MIG instance; None: unknown."""

    device: str  # UUID as NVML tells it, "GPU-…" or "MIG-…"
    name: str
    total_bytes: int | None
    free_bytes: int | None
    at: float  # monotonic seconds, when NVML was asked


def pressure(reading: Reading | None, idle_pool_bytes: int) -> float | None:
    """The share of the device in use, 0 to 1; None: unknown. What our own pools hold in reserve counts as free."""
    if reading is None or reading.free_bytes is None or not reading.total_bytes:
        return None
    return min(1.0, max(0.0, 1 - (reading.free_bytes + idle_pool_bytes) / reading.total_bytes))


def fresh(readings: Iterable[Reading], stale_s: float) -> list[Reading]:
    """The same, but what is older than `stale_s` seconds is unknown."""
    oldest = time.monotonic() - stale_s
    return [each if each.at >= oldest else replace(each, free_bytes=None) for each in readings]


class Monitor:
    """Polls every device of the machine, for one life: `start`, then `close`. May be asked from any thread."""

    def __init__(self, settings: MonitorSettings | None = None) -> None:
        self.settings = settings or MonitorSettings()
        self.polls = 0
        self._asked = threading.Event()  # once, whatever came of it
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vram", daemon=True)
        self._last: dict[str, Reading] = {}  # replaced whole, never changed
        self._pause = self.settings.first_pause_s
        self._journal = _Journal(self.settings.steady_s)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Returns when NVML has been let go, or after `close_s` when it does not answer any more."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(self.settings.close_s)

    def readings(self) -> dict[str, Reading]:
        """What each device said last, by UUID; what is older than `stale_s` is unknown."""
        return {reading.device: reading for reading in fresh(self._last.values(), self.settings.stale_s)}

    def first_readings(self) -> dict[str, Reading]:
        """The same, after waiting for NVML to answer once, or `stale_s` for it not to."""
        self._asked.wait(self.settings.stale_s)
        return self.readings()

    def age_s(self, device: str, now: float) -> float:
        """Seconds since this device was last asked; inf where it is not to be seen at all."""
        reading = self._last.get(device)
        return math.inf if reading is None else now - reading.at

    # --- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                any_known = self._watch()
            except Exception as problem:  # what NVML and its drivers can answer is not known beforehand
                any_known = False
                self._last = {}
                self._asked.set()
                self._journal.write(str(problem) or type(problem).__name__, time.monotonic())
            if not any_known:
                self._ended.wait(self._pause)
            self._pause = min(2 * self._pause, self.settings.longest_pause_s)

    def _watch(self) -> bool:
        """From init to shutdown: until the end or until NVML had better be opened anew; whether any device is known.

        A lost device comes back under another handle, and a split one shows its new parts, only after an init.
        """
        with _opened() as pynvml:
            opened_at = time.monotonic()
            devices, unopened = _devices(pynvml)
            while not self._ended.is_set():
                polled = [device.read() for device in devices]
                self._last = {reading.device: reading for reading, _ in polled}
                self.polls += 1
                self._asked.set()
                now = time.monotonic()
                troubles = unopened + [trouble for _, trouble in polled if trouble is not None]
                self._journal.write("; ".join(sorted(str(trouble) for trouble in troubles)), now)
                any_known = len(troubles) < len(unopened) + len(polled)
                if not any_known:
                    return False
                if not any(trouble.passing for trouble in troubles):
                    self._pause = self.settings.first_pause_s
                elif now - opened_at >= self._pause:
                    return True
                self._ended.wait(self.settings.every_s)
        return True


@dataclass(frozen=True, slots=True)
class _Trouble:
    device: str
    problem: str
    passing: bool  # whether opening NVML anew may help

    def __str__(self) -> str:
        return f"{self.device}: {self.problem}"


class _Journal:
    """Says each trouble once until it changes, and its end when that has lasted."""

    def __init__(self, steady_s: float) -> None:
        self._steady_s = steady_s
        self._told = ""
        self._well_since = math.inf

    def write(self, trouble: str, now: float) -> None:
        """How it stands; "" when all is well."""
        if trouble:
            self._well_since = math.inf
            if trouble != self._told:
                logger.warning("GPU memory is unknown: %s", trouble)
                self._told = trouble
            return
        self._well_since = min(self._well_since, now)
        if self._told and now - self._well_since >= self._steady_s:
            logger.info("GPU memory is known again")
            self._told = ""


# --- NVML ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened() -> Iterator[ModuleType]:
    """pynvml between its init and its shutdown."""
    try:
        import pynvml
    except ImportError:
        raise RuntimeError("the package nvidia-ml-py is missing") from None
    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        with contextlib.suppress(pynvml.NVMLError):  # a driver that has gone has nothing to let go
            pynvml.nvmlShutdown()


@dataclass(frozen=True, slots=True)
class _Device:
    """One that NVML has opened. By UUID: CUDA_VISIBLE_DEVICES gives CUDA's indices an order of their own."""

    pynvml: ModuleType
    handle: Any
    uuid: str
    name: str

    def read(self) -> tuple[Reading, _Trouble | None]:
        now = time.monotonic()
        try:
            total, free = self._memory()
        except self.pynvml.NVMLError as problem:
            trouble = _trouble(self.pynvml, self.uuid, problem)
        else:
            if total > 0:
                return Reading(self.uuid, self.name, total, free, now), None
            trouble = _Trouble(self.uuid, "it has no memory of its own", passing=False)
        return Reading(self.uuid, self.name, None, None, now), trouble

    def _memory(self) -> tuple[int, int]:
        """(total, free) bytes. `free` means the same in both versions; `used` does not."""
        nvml = self.pynvml
        try:
            info = nvml.nvmlDeviceGetMemoryInfo(self.handle, version=nvml.nvmlMemory_v2)
        except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_ArgumentVersionMismatch, nvml.NVMLError_NotSupported):
            info = nvml.nvmlDeviceGetMemoryInfo(self.handle)
        return int(info.total), int(info.free)


def _devices(pynvml: ModuleType) -> tuple[list[_Device], list[_Trouble]]:
    """Every device, MIG instances instead of one that is split into them; and those that do not open."""
    devices: list[_Device] = []
    troubles: list[_Trouble] = []
    count = pynvml.nvmlDeviceGetCount()
    if count == 0:
        raise RuntimeError("the driver sees no GPU")
    for index in range(count):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            devices += [_device(pynvml, each) for each in _instances(pynvml, handle) or [handle]]
        except pynvml.NVMLError as problem:
            troubles.append(_trouble(pynvml, f"GPU {index}", problem))
    return devices, troubles


def _device(pynvml: ModuleType, handle: Any) -> _Device:
    uuid, name = pynvml.nvmlDeviceGetUUID(handle), ""
    with contextlib.suppress(pynvml.NVMLError):
        name = pynvml.nvmlDeviceGetName(handle)
    return _Device(pynvml, handle, uuid, name)


def _instances(pynvml: ModuleType, device: Any) -> list[Any]:
    """Handles of a device's MIG instances. Their indices may have gaps."""
    try:
        mode, _ = pynvml.nvmlDeviceGetMigMode(device)
        if mode != pynvml.NVML_DEVICE_MIG_ENABLE:
            return []
        most = pynvml.nvmlDeviceGetMaxMigDeviceCount(device)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_NoPermission):
        return []
    found: list[Any] = []
    for index in range(most):
        with contextlib.suppress(pynvml.NVMLError_NotFound):
            found.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index))
    return found


def _trouble(pynvml: ModuleType, device: str, problem: Exception) -> _Trouble:
    return _Trouble(device, str(problem), passing=not isinstance(problem, pynvml.NVMLError_NotSupported))

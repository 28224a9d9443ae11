"""How much memory the GPUs have left: NVML, read in a thread of its own, and the only file that knows pynvml.

What cannot be told (no driver, no package, no permission, a lost GPU, unified memory, an old driver) is unknown, said
once in the log and looked for again ever more seldom; it is never an error of ours. Decides nothing.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

logger = logging.getLogger("voxgate.vram")

EVERY_S = 0.2
BACK_OFF_S = 0.2, 10.0  # after trouble: the first pause, doubled up to the last
STALE_S = 2.0  # a reading older than this says nothing


@dataclass(frozen=True, slots=True)
class Reading:
    """Memory of one device, or of one MIG instance; None: not to be had."""

    device: str  # UUID as NVML tells it, "GPU-…" or "MIG-…"
    name: str
    total_bytes: int | None
    free_bytes: int | None
    at: float  # monotonic seconds

    def age_s(self, now: float) -> float:
        return now - self.at


def pressure(reading: Reading | None, idle_pool_bytes: int, now: float) -> float | None:
    """The share of the device in use, 0 to 1; None: unknown. What our own pools hold in reserve counts as free."""
    if reading is None or reading.age_s(now) > STALE_S or not reading.total_bytes or reading.free_bytes is None:
        return None
    return min(1.0, max(0.0, 1 - (reading.free_bytes + idle_pool_bytes) / reading.total_bytes))


class Monitor:
    """Polls every device of the machine. `readings` may be read from any thread."""

    def __init__(self, every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vram", daemon=True)
        self._trouble = ""
        self.readings: Mapping[str, Reading] = {}  # by UUID; replaced whole, never changed
        self.polls = 0

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Returns when the thread has ended and NVML has been let go."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        first, most = BACK_OFF_S
        pause = first
        while not self._ended.is_set():
            try:
                self._watch()
            except Exception as problem:
                self._log(str(problem))
                self.readings = {}
            self._ended.wait(pause)
            pause = first if self._trouble == "" else min(2 * pause, most)

    def _watch(self) -> None:
        """Until the end, or until NVML fails as a whole."""
        try:
            import pynvml
        except ImportError:
            raise RuntimeError("the package nvidia-ml-py is missing") from None
        pynvml.nvmlInit()
        try:
            handles = _handles(pynvml)
            while not self._ended.is_set():
                read = [_read(pynvml, uuid, name, handle, self._clock()) for uuid, name, handle in handles]
                self.readings = {reading.device: reading for reading, _ in read}
                self.polls += 1
                self._log("; ".join(sorted({trouble for _, trouble in read if trouble})))
                if read and all(trouble for _, trouble in read):
                    return  # starts anew: a device that was lost comes back under another handle
                self._ended.wait(self._every_s)
        finally:
            pynvml.nvmlShutdown()

    def _log(self, trouble: str) -> None:
        """Each trouble once, until it changes."""
        if trouble != self._trouble:
            self._trouble = trouble
            if trouble:
                logger.warning("GPU memory is unknown: %s", trouble)
            else:
                logger.info("GPU memory is known again")


def _read(pynvml: ModuleType, uuid: str, name: str, handle: Any, now: float) -> tuple[Reading, str]:
    """What a device says, and what hinders it."""
    try:
        total, free = _memory(pynvml, handle)
    except pynvml.NVMLError as problem:
        return Reading(uuid, name, None, None, now), f"{uuid}: {problem}"
    if not total:
        return Reading(uuid, name, None, None, now), f"{uuid}: it has no memory of its own"
    return Reading(uuid, name, total, free, now), ""


def _handles(pynvml: ModuleType) -> list[tuple[str, str, Any]]:
    """(UUID, name, handle) of every device, MIG instances instead of a device that is split into them.

    By UUID, because CUDA_VISIBLE_DEVICES gives CUDA's indices an order of their own.
    """
    found: list[tuple[str, str, Any]] = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        device = pynvml.nvmlDeviceGetHandleByIndex(index)
        for handle in _instances(pynvml, device) or [device]:
            uuid = pynvml.nvmlDeviceGetUUID(handle)
            try:
                name = pynvml.nvmlDeviceGetName(handle)
            except pynvml.NVMLError:
                name = ""
            found.append((uuid, name, handle))
    return found


def _instances(pynvml: ModuleType, device: Any) -> list[Any]:
    instances: list[Any] = []
    try:
        mode, _ = pynvml.nvmlDeviceGetMigMode(device)
        if mode == pynvml.NVML_DEVICE_MIG_ENABLE:
            for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(device)):
                try:
                    instances.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index))
                except pynvml.NVMLError_NotFound:
                    continue
    except pynvml.NVMLError:
        pass  # no MIG here, or an old driver
    return instances


def _memory(pynvml: ModuleType, handle: Any) -> tuple[int, int]:
    """(total, free) bytes; version 2 knows what the driver keeps for itself."""
    try:
        info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except (pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_ArgumentVersionMismatch):
        info = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return int(info.total), int(info.free)

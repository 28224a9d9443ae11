"""The NVML library of fakes/fake_nvml.c, compiled, and the file that drives it."""

import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

SOURCE = Path(__file__).parent / "fakes" / "fake_nvml.c"
GIB = 2**30


@cache
def library() -> Path:
    """The folder that holds libnvidia-ml.so.1."""
    folder = Path(mkdtemp(prefix="fake-nvml-"))
    command = ["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", folder / "libnvidia-ml.so.1", SOURCE]
    subprocess.run(command, check=True)
    return folder


class FakeNvml:
    """Devices by UUID: total, used and reserved bytes, and an NVML error code that reading their memory fails with."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "nvml"
        self.env = {"LD_LIBRARY_PATH": str(library()), "FAKE_NVML_FILE": str(self.file)}
        self._rows: dict[str, str] = {}
        self.init(0)

    def set(self, uuid: str, *, used: int, total: int = 10 * GIB, reserved: int = 0, error: int = 0, old: bool = False):
        """What this device says from now on."""
        self._rows[uuid] = f"{uuid} {total} {reserved} {used} {error} {'old' if old else ''}"
        self._write()

    def init(self, error: int) -> None:
        """What nvmlInit answers from now on."""
        self._init = error
        self._write()

    def _write(self) -> None:
        new = self.file.with_suffix(".new")
        new.write_text("\n".join([f"init {self._init}", *self._rows.values()]) + "\n")
        os.rename(new, self.file)  # whole or not at all for a reader

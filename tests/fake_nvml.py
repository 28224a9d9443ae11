"""The NVML library of fakes/fake_nvml.c, compiled, and the file that drives it."""

import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCE = Path(__file__).parent / "fakes" / "fake_nvml.c"
GIB = 2**30


class FakeNvml:
    """GPUs for a process that is started with `env`; they change while it runs.

    `driver` "old" is one that knows no memory information of version 2.
    """

    def __init__(self, folder: Path, driver: str = "new") -> None:
        self.file = folder / "nvml"
        self.env = {"LD_LIBRARY_PATH": _library(driver), "FAKE_NVML_FILE": str(self.file)}
        self._rows: dict[str, str] = {}
        self._init = 0
        self._write()

    def set(
        self, device: str, *, free: int, total: int = 10 * GIB, reserved: int = 0, error: int = 0, word: str = ""
    ) -> None:
        """What the device of this UUID says from now on. `error`, `word`: see the C file."""
        self._rows[device] = f"{device} {total} {reserved} {free} {error} {word}"
        self._write()

    def remove(self, device: str) -> None:
        """This device has gone."""
        del self._rows[device]
        self._write()

    def init(self, error: int) -> None:
        """What nvmlInit answers from now on; 0: success."""
        self._init = error
        self._write()

    def _write(self) -> None:
        new = self.file.with_suffix(".new")
        new.write_text("\n".join([f"init {self._init}", *self._rows.values()]) + "\n")
        os.rename(new, self.file)  # whole or not at all for a reader


def _library(driver: str) -> str:
    """The folder that holds libnvidia-ml.so.1, until this process ends."""
    return _build("-DNO_V2" if driver == "old" else "-DV2").name


@cache
def _build(variant: str) -> "TemporaryDirectory[str]":
    folder = TemporaryDirectory(prefix="fake-nvml-")
    name = "libnvidia-ml.so.1"
    command = ["cc", "-shared", "-fPIC", "-Wall", "-Werror", variant, f"-Wl,-soname,{name}", "-o"]
    subprocess.run([*command, f"{folder.name}/{name}", SOURCE], check=True)
    return folder

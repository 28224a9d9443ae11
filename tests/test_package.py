"""What is shipped: the wheel holds the package and nothing else, and a server runs from it in an empty environment."""

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from running import running_server
from tree import PARTS, ROOT

BUILD = "import setuptools.build_meta as backend, sys; getattr(backend, 'build_' + sys.argv[1])(sys.argv[2])"


def tracked_files() -> list[str]:
    """The repository as a commit of it would be, from the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a clean copy: an old `build/` or `.egg-info` beside the sources would ship deleted modules."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked_files():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return build("sdist", source, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the unpacked sdist, which shows that the sdist is complete."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(sdist, unpacked)
    (source,) = unpacked.iterdir()
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


def build(what: str, source: Path, target: Path) -> Path:
    subprocess.run([sys.executable, "-c", BUILD, what, str(target)], cwd=source, check=True)
    (built,) = target.iterdir()
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}

    belongs = [name for name in tracked_files() if name.split("/")[0] in (*PARTS, "__init__.py", "__main__.py")]
    assert sorted(shipped) == sorted(f"voxgate/{name}" for name in belongs)


def test_the_wheel_carries_its_licence(wheel):
    with zipfile.ZipFile(wheel) as archive:
        licences = {Path(name).name for name in archive.namelist() if ".dist-info/licenses/" in name}

    assert licences == {"LICENSE", "NOTICE"}


def test_a_server_runs_from_the_wheel_in_an_empty_environment(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    install(tmp_path, "--require-hashes", "--no-deps", "--requirement", str(ROOT / "requirements" / "runtime.txt"))
    install(tmp_path, "--no-deps", "--no-index", str(wheel))
    voxgate = str(tmp_path / "venv" / "bin" / "voxgate")

    with running_server(command=[voxgate], cwd=str(tmp_path)) as url:
        voices = subprocess.run([voxgate, "voices", "--url", url], capture_output=True, text=True, check=True)
    assert "heart" in voices.stdout


def install(folder: Path, *what: str) -> None:
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "--quiet", "--no-input"]
    subprocess.run([*pip, "install", *what], cwd=folder, check=True)

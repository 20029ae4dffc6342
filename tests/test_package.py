"""What is installed: a wheel from an sdist from the sources, built without any other program."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from wolfstream.service.console.files import read_files

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip makes of the sdist."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # see test_migration
        archive.extractall(folder)
    return built("wheel", folder / sdist.name.removesuffix(".tar.gz"), folder)


def built(target: str, source: Path, folder: Path) -> Path:
    """The one file that is built, where the PATH has no program."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    subprocess.run(
        [*command, "--directory", str(folder)],
        cwd=source,
        env={"PATH": ""},
        check=True,
        capture_output=True,
    )
    (found,) = folder.glob("*.tar.gz" if target == "sdist" else "*.whl")
    return found


def test_wheel_has_the_console_with_its_plots(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    for file in read_files():
        assert any(name.endswith(f"service/console/static/{file}") for name in names), file


def test_wheel_has_every_module(wheel: Path):
    sources = {
        file.relative_to(ROOT / top).as_posix()
        for top in ("wolfstream", "service", "solver")
        for file in (ROOT / top).rglob("*.py")
    }
    names = zipfile.ZipFile(wheel).namelist()
    assert [file for file in sources if not any(name.endswith(f"/{file}") for name in names)] == []


def test_wheel_is_small(wheel: Path):
    assert wheel.stat().st_size < 3_000_000

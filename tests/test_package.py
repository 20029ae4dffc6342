"""What is installed: one top-level name, beside which a user's own `service` can stand."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from wolfstream.service.web.routes.pages import read_files

ROOT = Path(__file__).parents[1]


def build(source: Path, kind: str, folder: Path) -> Path:
    """Build a `wheel` or an `sdist` of a source tree, where the PATH has no program."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind]
    command += ["--directory", str(folder)]
    subprocess.run(command, cwd=source, env={"PATH": ""}, check=True, timeout=120)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the unpacked source distribution."""
    sdist = build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # see test_migration
        archive.extractall(unpacked)
    (source,) = unpacked.iterdir()
    return build(source, "wheel", tmp_path_factory.mktemp("sdist_wheel"))


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_one_name_is_installed(wheel: Path):
    tops = {name.partition("/")[0] for name in names(wheel)}
    (metadata,) = [top for top in tops if top.endswith(".dist-info")]
    assert tops == {"wolfstream", metadata}


def test_all_modules_are_in_the_wheel(wheel: Path):
    modules = {
        f"wolfstream/{file.relative_to(ROOT).as_posix()}"
        for folder in ("service", "solver")
        for file in (ROOT / folder).rglob("*.py")
    }
    assert len(modules) > 400
    assert modules | {"wolfstream/__init__.py", "wolfstream/__main__.py"} <= names(wheel)


def test_the_console_is_in_the_wheel_with_its_plots(wheel: Path):
    console = {f"wolfstream/service/console/{file}" for file in read_files()}
    assert console <= names(wheel)


def test_the_wheel_is_small(wheel: Path):
    assert wheel.stat().st_size < 3_000_000


def test_the_source_distribution_gives_the_same_wheel(wheel: Path, sdist_wheel: Path):
    assert names(sdist_wheel) == names(wheel)


def test_a_users_own_packages_are_not_in_the_way(wheel: Path, tmp_path: Path):
    """The client is imported beside a folder `service` and a file `solver.py`."""
    installed, work = tmp_path / "installed", tmp_path / "work"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    (work / "service").mkdir(parents=True)
    (work / "service" / "__init__.py").write_text("")
    (work / "solver.py").write_text("solve = 1\n")
    program = (
        "import sys; sys.path[:0] = ['', sys.argv[1]]\n"
        "import service, solver, wolfstream\n"
        "from wolfstream import Client, StreamClassifier\n"
        "print(wolfstream.__file__, solver.solve, service.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(installed)],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0].startswith(str(installed))


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "wolfstream", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("wolfstream, version ")


# What a plain installation lacks: the modules of the extras.
EXTRAS = ("nats", "sklearn", "pandas", "polars", "pyarrow", "narwhals", "river", "scipy")


@pytest.mark.parametrize(
    "module",
    [
        "wolfstream.service.server.main_process",
        "wolfstream.service.server.worker_server",
        "wolfstream.service.cli.replay_connections",
        "wolfstream.service.cli.training_display",
        "wolfstream.service.client.sync",
        "wolfstream.service.client.aio",
    ],
)
def test_what_the_command_runs_needs_no_extra(module: str):
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
        f"import importlib; importlib.import_module({module!r})"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr

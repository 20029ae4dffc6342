"""What must be settled before numba and numpy are imported, and hypothesis' profile."""

import gc
import hashlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.sweeps import thin_out

ROOT = Path(__file__).parents[1]


def _digest_of_compiled_sources() -> str:
    """numba's disk cache overlooks edits of imported helpers; a directory per version does not.

    Nor does it know whether machine code checks its indices.
    """
    digest = hashlib.sha256(importlib.metadata.version("numba").encode())
    digest.update(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    solver = ROOT / "solver"
    for source in sorted(solver.rglob("*.py")):
        digest.update(str(source.relative_to(solver)).encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


os.environ.setdefault(
    "NUMBA_CACHE_DIR",
    str(Path(tempfile.gettempdir()) / f"wolfstream-numba-{_digest_of_compiled_sources()}"),
)
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# Each client of httpx reads the trusted certificates, which takes longer than most requests; no
# test needs one of them.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull

# What the tests start can be interrupted, also where the tests themselves run in the background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, whatever the machine's speed; with --all-cases twice as many.
_same = settings(deadline=None, derandomize=True, print_blob=True)
settings.register_profile("wolfstream", _same, max_examples=50)
settings.register_profile("all cases", _same, max_examples=100)
# HYPOTHESIS_PROFILE=thorough looks for new ones.
settings.register_profile("thorough", deadline=None, max_examples=3000, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Sweeps and generated examples in full on request."""
    help_text = "run every case of every sweep, and twice as many generated examples"
    parser.addoption("--all-cases", action="store_true", help=help_text)


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples are generated, before tests are imported."""
    usual = "all cases" if config.getoption("--all-cases") else "wolfstream"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", usual))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before all tests are run, compile what no run has: once, on as many cores as tests run on.

    Otherwise each worker would compile the same functions, and so would each server that it starts.
    """
    config = session.config
    of_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if hasattr(config, "workerinput") or not of_all or config.getoption("collectonly"):
        return
    command = [sys.executable, "-m", "wolfstream.service.compilation.compiler_process"]
    quiet = subprocess.DEVNULL
    compiling = [
        subprocess.Popen(command, cwd=ROOT, stdin=quiet, stdout=quiet)
        for _ in range(config.getoption("numprocesses", None) or 1)
    ]
    for process in compiling:
        process.wait()


@pytest.fixture(scope="session")
def commands() -> Iterator[Path]:
    """A folder with `wolfstream` and `python`, forked from a process that has imported much."""
    from tests.forked_commands import forked_commands

    with forked_commands() as folder:
        yield folder


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Visit no garbage while tests are collected, and never again what is there when they are.

    Modules and tests stay until the end: visiting them took a third of the time of collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of sweeps, run the part that has every value."""
    if not config.getoption("--all-cases"):
        thin_out(config, items)

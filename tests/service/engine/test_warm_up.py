"""What a server compiles before it is ready, and what beside it."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.engine import warm_up
from service.engine.warm_up import Unit, WarmUp, needed_first, units
from service.spec.model import ModelSpec
from tests.service.specs import read_papers_spec

LINEAR = read_papers_spec({"kernel": {"type": "linear"}})


class Process:
    """Instead of a process that compiles: it ends when it is told to."""

    def __init__(self, *_: object, **__: object) -> None:
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def wait(self) -> int:
        """Ends by itself after some seconds, so that a test that fails ends as well."""
        for _ in range(500):
            if self.code is not None:
                return self.code
            time.sleep(0.01)
        return 0

    def terminate(self) -> None:
        self.code = -15


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Process:
    """The process of the next WarmUp, whose cache is empty."""
    started = Process()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: started)
    return started


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Unit]:
    """The units that are asked for, and not compiled."""
    seen: list[Unit] = []
    monkeypatch.setattr(Unit, "compile", lambda unit: seen.append(unit))
    return seen


def test_the_default_model_is_needed_first() -> None:
    first = [unit for unit in units() if needed_first(unit)]
    assert {unit.head for unit in first} == set(ModelSpec().heads)
    assert not any(unit.sparse for unit in first)
    assert {unit.spec.kernel.type for unit in first} == {"rbf"}
    assert len(first) < len(list(units())) / 4


def test_everything_is_compiled_once(compiled: list[Unit]) -> None:
    warm_up.warm_up()
    assert len(compiled) == len(list(units()))
    assert {(u.head, u.spec.model_dump_json(), u.sparse) for u in compiled} == {
        (u.head, u.spec.model_dump_json(), u.sparse) for u in units()
    }


@pytest.mark.usefixtures("process")
def test_models_that_exist_are_compiled_before_the_server_is_ready(compiled: list[Unit]) -> None:
    async def run() -> None:
        phases: list[str] = []
        started = WarmUp()
        started.before_ready([], phases.append)
        assert compiled == [unit for unit in units() if needed_first(unit)]
        assert phases[-1] == f"compiling, part {len(phases)} of {len(phases)}"
        compiled.clear()
        started.before_ready([LINEAR], phases.append)
        assert {unit.spec.kernel.type for unit in compiled} == {"rbf", "linear"}
        assert any(unit.sparse for unit in compiled)
        started.stop()

    asyncio.run(run())


@pytest.mark.parametrize("code", [0, 1], ids=["compiled", "failed"])
def test_a_model_of_another_kind_waits_for_the_rest(process: Process, code: int) -> None:
    async def run() -> None:
        started = WarmUp()
        await asyncio.wait_for(started.wait_for(ModelSpec()), 1)
        waiting = asyncio.create_task(started.wait_for(LINEAR))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        process.code = code
        await asyncio.wait_for(waiting, 10)

    asyncio.run(run())


def test_a_stop_ends_the_process(process: Process) -> None:
    async def run() -> None:
        started = WarmUp()
        started.stop()
        assert process.code == -15
        await asyncio.wait_for(started.wait_for(LINEAR), 10)

    asyncio.run(run())


def test_a_complete_cache_needs_no_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", refuse)
    (tmp_path / "complete").touch()

    async def run() -> None:
        await asyncio.wait_for(WarmUp().wait_for(LINEAR), 1)

    asyncio.run(run())


def test_the_process_leaves_a_complete_cache_alone(tmp_path: Path) -> None:
    (tmp_path / "complete").touch()
    done = subprocess.run(
        [sys.executable, "-m", "service.engine.compilation"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        check=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert list(tmp_path.rglob("*.nbi")) == []

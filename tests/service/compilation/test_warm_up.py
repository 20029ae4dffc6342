"""What a server compiles before it is ready, and what beside it."""

import asyncio
import contextlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np
import pytest

from tests.service.specs import read_papers_spec
from wolfstream.service.compilation import compiler_process
from wolfstream.service.compilation.compiled_parts import (
    CompiledPart,
    compile_all,
    needed_first,
    parts,
    parts_for,
    wanted_first,
)
from wolfstream.service.compilation.compiler_process import Process
from wolfstream.service.compilation.warm_up import WarmUp
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import NotReady
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.solver.compile_cache import compile_once, is_complete, mark_complete
from wolfstream.solver.prepare.cells import cells_of_numbers
from wolfstream.solver.prepare.columns import Preparation
from wolfstream.solver.prepare.named_rows import Rows, n_rows, named_rows
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.schema import SETTLING

SPARSE = ModelSpec.model_validate({"prepare": {"named": "sparse"}})
LINEAR = read_papers_spec({"kernel": {"type": "linear"}})


class Compiling:
    """Instead of a process that compiles: it names parts, and ends, when it is told to."""

    def __init__(self) -> None:
        self.stdin = io.StringIO()
        read, write = os.pipe()
        self.stdout, self._lines = os.fdopen(read), os.fdopen(write, "w")
        self._code: int | None = None
        self._ended = threading.Event()

    def compile(self, *compiled: CompiledPart) -> None:
        self._lines.writelines(f"{part.key}\n" for part in compiled)
        self._lines.flush()

    def end(self, code: int) -> None:
        self._code = code
        self._lines.close()
        self._ended.set()

    def poll(self) -> int | None:
        return self._code

    def wait(self) -> int:
        self._ended.wait(10)
        return self._code or 0

    def terminate(self) -> None:
        self.end(-15)


@pytest.fixture
def process() -> Iterator[Compiling]:
    started = Compiling()
    yield started
    if started.poll() is None:
        started.terminate()
    started.stdout.close()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty one."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[CompiledPart]:
    """The parts that are asked for, and not compiled."""
    seen: list[CompiledPart] = []

    def compile_part(part: CompiledPart) -> None:
        # Servers of earlier tests in this process may still load what is needed later.
        if threading.current_thread().name != "later parts":
            seen.append(part)

    monkeypatch.setattr(CompiledPart, "compile", compile_part)
    return seen


def warm_up(process: Compiling | None) -> WarmUp:
    return WarmUp(cast(Process | None, process))


def keys(those: list[CompiledPart]) -> set[str]:
    return {part.key for part in those}


def test_the_default_model_is_needed_first() -> None:
    first = needed_first()
    assert {part.name.split()[0] for part in first} == {*ModelSpec().heads, "preparation"}
    assert not any(part.sparse for part in first)
    assert {part.spec.kernel.type for part in first} == {"rbf"}
    assert keys(first) == keys(list(parts()[: len(first)]))
    assert len(first) < len(parts()) / 4


def test_a_part_prepares_rows() -> None:
    (preparation,) = (part for part in needed_first() if part.name == "preparation")
    with (
        mock.patch.object(Preparation, "absorb") as learned,
        mock.patch("wolfstream.solver.stream.rows.prepared") as predicted,
    ):
        preparation.compile()
    assert learned.called
    assert predicted.called


def test_every_part_has_a_key_of_its_own() -> None:
    assert len(keys(list(parts()))) == len(parts())


def test_sparse_rows_have_parts_of_their_own_but_are_not_prepared() -> None:
    more = keys(parts_for(ModelSpec(), sparse=True)) - keys(needed_first())
    assert len(more) == len(needed_first()) - 1
    assert all("sparse rows" in key for key in more)


def test_models_that_exist_are_compiled_before_the_server_is_ready(
    process: Compiling, compiled: list[CompiledPart], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    async def run() -> None:
        phases: list[str] = []
        started = warm_up(process)
        started.before_ready([], phases.append)
        assert keys(compiled) == keys(needed_first())
        n = len(needed_first())
        (line,) = caplog.messages
        assert line.startswith("compiling for this machine")
        assert phases[0] == f"compiling: {n} of {n} parts are left"
        assert phases[-1] == f"compiling: 0 of {n} parts are left"
        compiled.clear()
        started.before_ready([(LINEAR, False), (ModelSpec(), True)], phases.append)
        others = parts_for(LINEAR, sparse=False) + parts_for(ModelSpec(), sparse=True)
        assert keys(compiled) == keys(others)

    asyncio.run(run())


def test_what_another_process_has_compiled_is_loaded(compiled: list[CompiledPart]) -> None:
    async def run() -> None:
        for part in needed_first():
            assert compile_once(part.key, lambda: None, wait=False)
        warm_up(None).before_ready([], lambda _: None)
        assert keys(compiled) == keys(needed_first())

    asyncio.run(run())


def test_a_part_is_compiled_once(compiled: list[CompiledPart]) -> None:
    told: list[CompiledPart] = []
    for _ in range(2):
        compile_all(parts(), told.append)
    assert len(compiled) == len(parts())
    assert len(told) == 2 * len(parts())


def test_a_part_that_another_is_at_comes_last(compiled: list[CompiledPart]) -> None:
    """One that waits for it would compile it after the other has failed."""
    first, second = parts()[:2]
    told: list[CompiledPart] = []

    def fail() -> None:
        thread.start()
        while not told:
            pass
        raise MemoryError

    thread = threading.Thread(target=compile_all, args=((first, second), told.append))
    with pytest.raises(MemoryError):
        compile_once(first.key, fail, wait=True)
    thread.join()
    assert told == compiled == [second, first]


def test_waiting_for_another_is_used(compiled: list[CompiledPart]) -> None:
    """What the caller has to do meanwhile is done once, after all parts that nobody is at."""
    first, second = parts()[:2]
    seen: list[list[CompiledPart]] = []

    def meanwhile() -> None:
        seen.append([*compiled])
        held.close()

    held = contextlib.ExitStack()
    held.enter_context(_at_it(first))
    for _ in range(2):
        compile_all((first, second), lambda _: None, meanwhile)
    assert seen == [[second]]


def test_a_part_that_another_has_finished_is_reported_next() -> None:
    first, second, third = parts()[:3]
    told: list[CompiledPart] = []

    def compiled(part: CompiledPart) -> None:
        told.append(part)
        if part is second:
            held.close()

    held = contextlib.ExitStack()
    held.enter_context(_at_it(first))
    with mock.patch.object(CompiledPart, "compile"):
        compile_all((first, second, third), compiled)
    assert told == [second, first, third]


@contextlib.contextmanager
def _at_it(part: CompiledPart) -> Iterator[None]:
    """Another thread is compiling a part."""
    begun, end = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        end.wait(10)

    thread = threading.Thread(target=compile_once, args=(part.key, hold, True))
    thread.start()
    begun.wait(10)
    yield
    end.set()
    thread.join()


def test_a_cache_that_cannot_be_written_keeps_no_marks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    ran: list[int] = []
    for i in range(2):
        assert compile_once("part", lambda i=i: ran.append(i), wait=True)  # type: ignore[misc]
    assert ran == [0, 1]
    assert not is_complete()


@pytest.mark.parametrize(
    ("code", "logged"),
    [(0, "compilation finished"), (1, "exit_code=1"), (-9, "exit_code=-9")],
    ids=["compiled", "failed", "killed"],
)
def test_a_model_of_another_kind_waits_for_its_parts(
    process: Compiling, code: int, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    async def run() -> None:
        started = warm_up(process)
        waiting = asyncio.create_task(started.wait_for(LINEAR, False))
        whole = asyncio.create_task(started.wait_for(LINEAR, True))
        process.compile(*parts_for(LINEAR, sparse=False)[:-1])
        await asyncio.sleep(0.05)
        assert not waiting.done()
        process.compile(parts_for(LINEAR, sparse=False)[-1])
        await asyncio.wait_for(waiting, 10)
        n = len(parts_for(LINEAR, sparse=False))
        assert started.progress == f"{n} of {len(parts())} parts of the code are compiled"
        assert not whole.done()
        process.end(code)
        await asyncio.wait_for(whole, 10)
        assert not started.progress
        assert logged in caplog.text

    asyncio.run(run())


def test_what_is_waited_for_is_wanted_once(process: Compiling) -> None:
    async def run() -> None:
        started = warm_up(process)
        linear = parts_for(LINEAR, sparse=False)
        process.compile(linear[0])
        await asyncio.sleep(0.05)
        waiting = [asyncio.create_task(started.wait_for(LINEAR, False)) for _ in range(2)]
        await asyncio.sleep(0)
        assert sorted(process.stdin.getvalue().splitlines()) == sorted(keys(linear[1:]))
        process.compile(*linear[1:])
        await asyncio.wait_for(asyncio.gather(*waiting), 10)

    asyncio.run(run())


def test_parts_that_are_wanted_come_next() -> None:
    wanted = iter([[], [parts()[5].key, parts()[3].key], [parts()[0].key, "of another version"]])
    order = wanted_first(parts()[:6], lambda: next(wanted, []))
    assert [parts().index(part) for part in order] == [0, 5, 3, 1, 2, 4]


def test_a_stop_ends_the_process_and_the_wait(process: Compiling) -> None:
    async def run() -> None:
        started = warm_up(process)
        waiting = asyncio.create_task(started.wait_for(LINEAR, False))
        await asyncio.sleep(0)
        started.stop()
        assert process.poll() == -15
        await asyncio.wait_for(waiting, 10)

    asyncio.run(run())


@pytest.mark.usefixtures("compiled")
def test_sparse_rows_wait_and_arrays_and_tables_do_not(process: Compiling, tmp_path: Path) -> None:
    async def run() -> None:
        settings = Settings(data=tmp_path)
        engine = Engine(settings, open_storage(tmp_path), warm_up(process), {})
        await engine.ready
        named = named_rows([{"a": 1.0}])
        model, _ = await engine.orders.create("table", ModelSpec())
        for rows in (np.ones((1, 1)), named):
            await asyncio.wait_for(engine.readiness.compiled(model, rows), 10)
        model, _ = await engine.orders.create("m", SPARSE)
        await asyncio.wait_for(engine.readiness.compiled(model, np.ones((1, 1))), 10)
        done = rf"compiling what this model needs \({len(needed_first())} of {len(parts())} parts"
        with pytest.raises(NotReady, match=done):
            await engine.readiness.compiled(model, named, 0.01)
        waiting = asyncio.create_task(engine.readiness.compiled(model, named))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        process.compile(*parts_for(SPARSE, sparse=True))
        await asyncio.wait_for(waiting, 10)
        await engine.stop()

    asyncio.run(run())


@pytest.mark.usefixtures("compiled")
def test_wide_first_rows_are_looked_at_beside_the_event_loop(
    process: Compiling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, after = list[tuple[bool, int]](), RowForm.after

    def watched(form: RowForm, rows: Rows) -> RowForm:
        looked.append((threading.current_thread() is threading.main_thread(), n_rows(rows)))
        return after(form, rows)

    monkeypatch.setattr(RowForm, "after", watched)

    async def run() -> None:
        engine = Engine(Settings(data=tmp_path), open_storage(tmp_path), warm_up(process), {})
        await engine.ready
        model, _ = await engine.orders.create("m", ModelSpec())
        for shape in ((1, 7), (3, 3000), (1000, 7)):
            table = cells_of_numbers(tuple(f"c{k}" for k in range(shape[1])), np.ones(shape))
            await asyncio.wait_for(engine.readiness.compiled(model, table), 10)
        await engine.stop()

    asyncio.run(run())
    assert looked == [(True, 1), (False, 3), (True, SETTLING)]


def test_a_complete_cache_needs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    mark_complete()
    with compiler_process.compiling() as process:
        assert process is None

    async def run() -> None:
        started = warm_up(None)
        await asyncio.wait_for(started.wait_for(LINEAR, True), 1)
        assert not started.progress

    asyncio.run(run())


def test_a_server_that_does_not_start_leaves_no_process() -> None:
    with compiler_process.compiling() as process:
        assert process is not None
        assert process.poll() is None
    assert process.wait(30) == -15


def test_the_process_leaves_a_complete_cache_alone(cache: Path) -> None:
    mark_complete()
    done = subprocess.run(
        [sys.executable, "-m", "wolfstream.service.compilation.compiler_process"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        check=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert list(cache.rglob("*.nbi")) == []

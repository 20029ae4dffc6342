"""One thread at a time is the writer, and another one goes on where that computes for long."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.service.specs import read_papers_spec
from tests.service.streams import three_classes
from tests.service.writer_bench import Bench, state_of
from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.writer_role import WriterRole
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.settings import Settings
from wolfstream.service.storage.data_directory import open_storage

SOON = 30.0
SPEC = {"working_set": {"max_size": 60}, "asset": {"dimension": 8}}
ROWS = three_classes(20, 9).X


def in_thread(run: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


class TestRole:
    def test_another_thread_has_it_while_the_first_is_aside(self) -> None:
        role, steps = WriterRole(), list[str]()

        def other() -> None:
            with role.step():
                steps.append("other")

        with role.step():
            thread = in_thread(other)
            thread.join(0.05)
            assert steps == []
            with role.aside():
                thread.join(SOON)
            steps.append("first")
        assert steps == ["other", "first"]

    def test_a_model_is_in_use_while_a_thread_computes_for_it(self) -> None:
        role, model, other = WriterRole(), *(model_named(name) for name in "ab")
        with role.step():
            with role.aside(model):
                assert role.uses(model)
                assert not role.may_begin_job([other, model])
                assert role.may_begin_job([other])
            assert not role.uses(model)

    def test_one_job_at_a_time(self) -> None:
        role, model, other = WriterRole(), *(model_named(name) for name in "ab")
        with role.step():
            with role.job([model]):
                assert role.uses(model)
                assert not role.may_begin_job([other])
            assert role.may_begin_job([model, other])

    def test_alone_waits_for_those_aside(self) -> None:
        role, go_on, back = WriterRole(), threading.Event(), list[bool]()

        def compute() -> None:
            with role.step(), role.aside():
                aside.set()
                assert go_on.wait(SOON)
                back.append(True)

        aside = threading.Event()
        thread = in_thread(compute)
        assert aside.wait(SOON)
        with role.step():
            threading.Timer(0.05, go_on.set).start()
            role.wait_until_alone()
            assert back == [True]
        thread.join(SOON)

    def test_waiter_lets_using_thread_return(self) -> None:
        role, model = WriterRole(), model_named("a")
        aside, may_return, steps = threading.Event(), threading.Event(), list[str]()

        def compute() -> None:
            with role.step():
                with role.aside(model):
                    aside.set()
                    may_return.wait(SOON)
                steps.append("computed")

        thread = in_thread(compute)
        assert aside.wait(SOON)
        with role.step():
            may_return.set()
            role.wait_until_unused(model)
            assert not role.uses(model)
            steps.append("waited")
        thread.join(SOON)
        assert sorted(steps) == ["computed", "waited"]

    def test_outside_of_a_step_nothing_is_given_up(self) -> None:
        role = WriterRole()
        with role.aside(model_named("a")):
            assert role.in_use == set()


def model_named(name: str) -> Model:
    return Model(1, name, read_papers_spec(SPEC))


class _Compiled:
    """Everything is."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None


class Slow:
    """Lets one model's learning, or its checkpoint, take until `done` is set."""

    def __init__(self, patch: pytest.MonkeyPatch, method: str, name: str) -> None:
        self.begun, self.done = threading.Event(), threading.Event()
        real = getattr(Learner, method)

        def slowly(learner: Learner, *given: Any) -> Any:
            if learner.model.name == name and not self.done.is_set():
                self.begun.set()
                assert self.done.wait(SOON)
            return real(learner, *given)

        patch.setattr(Learner, method, slowly)


@contextmanager
def engine_of(data: Path) -> Iterator[tuple[asyncio.Runner, Engine]]:
    """An engine on an event loop of its own."""
    with asyncio.Runner() as runner:

        async def begin() -> Engine:
            warm_up: Any = _Compiled()
            engine = Engine(Settings(data=data), open_storage(data, 3), warm_up, {})
            await engine.ready
            return engine

        engine = runner.run(begin())
        try:
            yield runner, engine
        finally:
            runner.run(engine.stop())


async def create(engine: Engine, *names: str) -> list[Model]:
    spec = read_papers_spec(SPEC)
    return [(await engine.orders.create(name, spec))[0] for name in names]


class TestThreads:
    """However long one model takes, others are learned and answered meanwhile."""

    def test_others_learn_beside_a_long_turn(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow = Slow(monkeypatch, "absorb", "slow")

        async def run(engine: Engine) -> None:
            one, other = await create(engine, "slow", "other")
            # In one group: the reply to the other one is due while the first one is learned.
            long = engine.submit(one, "working_set", three_classes(3))
            for k in range(5):
                short = engine.submit(other, "working_set", three_classes(1, k))
                answer = await asyncio.wait_for(short, SOON)
                assert answer["sequence"] == k + 1
            assert slow.begun.is_set()
            assert not long.done()
            behind = engine.submit(one, "asset", three_classes(2, 7))
            slow.done.set()
            assert (await asyncio.wait_for(long, SOON))["sequence"] == 3
            assert (await asyncio.wait_for(behind, SOON))["sequence"] == 5

        with engine_of(tmp_path) as (runner, engine):
            runner.run(run(engine))

    def test_what_was_learned_beside_others_is_replayed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("wolfstream.service.engine.writer_thread._ASIDE_SECONDS", 0.0005)
        monkeypatch.setattr("wolfstream.service.engine.blocks.PART_SAMPLES", 20)
        said = dict[str, Any]()

        async def send(engine: Engine, model: Model, seed: int) -> None:
            for k, n in enumerate((1, 90, 3, 1, 45, 2, 150, 1)):
                await engine.submit(model, "working_set", three_classes(n, seed + k))

        async def run(engine: Engine) -> None:
            models = await create(engine, *"abcd")
            await asyncio.gather(*(send(engine, m, 10 * k) for k, m in enumerate(models * 2)))
            await engine.orders.snapshot(models[0])
            said.update({model.name: state_of(model, ROWS) for model in models})
            assert {model.published.sequence for model in models} == {2 * 293}

        with engine_of(tmp_path) as (runner, engine):
            runner.run(run(engine))
        bench = Bench(tmp_path)
        assert {m.name: state_of(m, ROWS) for m in bench.writer.models.all()} == said
        bench.close()

    def test_others_learn_beside_a_snapshot(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow = Slow(monkeypatch, "checkpoint", "slow")

        async def run(engine: Engine) -> None:
            one, other = await create(engine, "slow", "other")
            await engine.submit(one, "working_set", three_classes(3))
            saving = asyncio.create_task(engine.orders.snapshot(one))
            await asyncio.to_thread(slow.begun.wait, SOON)
            for k in range(3):
                await asyncio.wait_for(
                    engine.submit(other, "working_set", three_classes(1, k)), SOON
                )
            # Neither an order of another model nor a request of its own may begin.
            second = asyncio.create_task(engine.orders.snapshot(other))
            own = engine.submit(one, "working_set", three_classes(2))
            await asyncio.sleep(0.1)
            assert not any(one.done() for one in (saving, second, own))
            slow.done.set()
            assert await asyncio.wait_for(saving, SOON) == 3
            assert (await asyncio.wait_for(own, SOON))["sequence"] == 5
            assert await asyncio.wait_for(second, SOON) == 3

        with engine_of(tmp_path) as (runner, engine):
            runner.run(run(engine))

    def test_others_learn_beside_the_first_turn_after_a_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Though its request came while the server compiled, so that the thread was never idle."""
        with engine_of(tmp_path) as (runner, engine):
            runner.run(create(engine, "slow", "other"))
        slow = Slow(monkeypatch, "absorb", "slow")
        accepting, queued = threading.Event(), threading.Event()

        class Compiling(_Compiled):
            def before_ready(self, *_: Any) -> None:
                accepting.set()
                assert queued.wait(SOON)

        async def run() -> None:
            compiling: Any = Compiling()
            engine = Engine(Settings(data=tmp_path), open_storage(tmp_path, 3), compiling, {})
            await asyncio.to_thread(accepting.wait, SOON)
            other, one = engine.models()
            long = engine.submit(one, "working_set", three_classes(3))
            await asyncio.sleep(0.1)
            queued.set()
            await engine.ready
            await asyncio.to_thread(slow.begun.wait, SOON)
            short = engine.submit(other, "working_set", three_classes(2))
            assert (await asyncio.wait_for(short, SOON))["sequence"] == 2
            slow.done.set()
            assert (await asyncio.wait_for(long, SOON))["sequence"] == 3
            await engine.stop()

        asyncio.run(run())

    def test_threads_end_that_were_succeeded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow = Slow(monkeypatch, "absorb", "slow")

        async def run(engine: Engine) -> None:
            one, other = await create(engine, "slow", "other")
            long = engine.submit(one, "working_set", three_classes(3))
            await engine.submit(other, "working_set", three_classes(3))
            first, _ = engine._thread._threads
            slow.done.set()
            await long
            await asyncio.to_thread(first.join, SOON)
            assert first not in engine._thread._threads

        with engine_of(tmp_path) as (runner, engine):
            runner.run(run(engine))

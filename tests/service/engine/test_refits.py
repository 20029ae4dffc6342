"""Jobs, without a server: one at a time, one a model, bounded, and ended when they are to end."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import numpy as np
import pytest

from wolfstream.service.engine import refits
from wolfstream.service.engine.refits import MAX_JOBS, Job, Refits
from wolfstream.service.errors import JobsFull, RefitFailed, StorageFailed, UnknownJob
from wolfstream.service.heads.fit import Fit, Observe, Progress, Window
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec


class Solver:
    """Stands for the solver: it reports again and again until the test lets it end."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.running = self.most_at_once = 0
        self.failure: Exception | None = None

    def fit(self, window: Window, job: str, observe: Observe) -> Fit:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            iteration = 0
            while not self.free.wait(0.001):
                iteration += 1
                observe(Progress(iteration, 0.5, 1e-3))
            if self.failure:
                raise self.failure
            return Fit({"job": job, "sequence": window.sequence}, {}, {})
        finally:
            self.running -= 1


@pytest.fixture
def solver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Solver]:
    solver = Solver()
    monkeypatch.setattr(refits, "fit_window", solver.fit)
    yield solver
    solver.free.set()


class World:
    """A writer that does at once what it is asked to do, and what it was asked."""

    def __init__(self, waiting: int = 4) -> None:
        self.kept: list[Fit] = []
        self.full = False
        self.sequence = 0
        self.refits = Refits(self.take, self.keep, waiting)

    async def take(self, model: Model) -> Window:
        self.sequence += 1
        return Window("semiparametric", self.sequence, np.zeros((3, 1)), np.zeros(3), model.spec)

    async def keep(self, _: Model, __: Window, fit: Fit) -> dict[str, Any]:
        if self.full:
            raise StorageFailed("no space left on device")
        self.kept.append(fit)
        return fit.plain


def a_model(name: str = "m") -> Model:
    return Model(1, name, ModelSpec())


def run(scenario: Callable[[World], Awaitable[None]], waiting: int = 4) -> World:
    async def main() -> World:
        world = World(waiting)
        try:
            await scenario(world)
        finally:
            await world.refits.stop()
        return world

    return asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  (the solver's thread has no events)
            await asyncio.sleep(0.001)


async def ended(*jobs: Job) -> None:
    await until(lambda: not any(job.active for job in jobs))


def test_a_job_is_queued_then_runs_then_is_done(solver: Solver) -> None:
    async def scenario(world: World) -> None:
        job = world.refits.start(a_model())
        assert (job.status, job.sequence, job.progress, job.seconds) == ("queued", None, None, 0.0)
        await until(lambda: job.progress is not None)
        assert (job.status, job.sequence, job.samples, job.result) == ("running", 1, 3, None)
        assert job.seconds > 0.0
        solver.free.set()
        await ended(job)
        assert (job.status, job.error) == ("done", None)
        assert job.result == {"job": job.id, "sequence": 1} == world.kept[0].plain

    run(scenario)


def test_unfinished_refit_answers_further_requests(solver: Solver) -> None:
    async def scenario(world: World) -> None:
        model, other = a_model("m"), a_model("other")
        running, queued = world.refits.start(model), world.refits.start(other)
        await until(lambda: running.status == "running")
        assert world.refits.start(model) is running
        assert world.refits.start(other) is queued
        solver.free.set()
        await ended(running, queued)
        assert world.refits.start(model) is not running
        assert len(world.refits.jobs(model)) == 2

    run(scenario)


def test_one_runs_at_a_time_in_the_order_of_the_requests(solver: Solver) -> None:
    async def scenario(world: World) -> None:
        jobs = [world.refits.start(a_model(f"m{i}")) for i in range(4)]
        await until(lambda: jobs[0].progress is not None)
        assert [job.status for job in jobs] == ["running", "queued", "queued", "queued"]
        solver.free.set()
        await ended(*jobs)
        assert [fit.plain["job"] for fit in world.kept] == [job.id for job in jobs]

    run(scenario)
    assert solver.most_at_once == 1


def test_a_window_is_taken_when_its_job_begins(solver: Solver) -> None:
    async def scenario(world: World) -> None:
        first, second = world.refits.start(a_model("a")), world.refits.start(a_model("b"))
        await until(lambda: first.progress is not None)
        world.sequence = 100
        solver.free.set()
        await ended(first, second)
        assert (first.sequence, second.sequence) == (1, 101)

    run(scenario)


def test_as_many_as_may_wait_do(solver: Solver) -> None:
    async def scenario(world: World) -> None:
        jobs = [world.refits.start(a_model("first"))]
        await until(lambda: jobs[0].status == "running")
        jobs += [world.refits.start(a_model(f"m{i}")) for i in range(2)]
        refused = a_model("refused")
        with pytest.raises(JobsFull, match="2 refits wait"):
            world.refits.start(refused)
        assert world.refits.jobs(refused) == []
        solver.free.set()
        await ended(*jobs)
        await ended(world.refits.start(refused))

    run(scenario, waiting=2)


def test_a_failed_job_keeps_no_window(solver: Solver) -> None:
    rows = list[weakref.ref[Any]]()

    async def scenario(world: World) -> None:
        async def take(model: Model) -> Window:
            window = await world.take(model)
            rows.append(weakref.ref(window.X))
            return window

        world.refits._take = take
        solver.failure = RefitFailed("too few samples")
        solver.free.set()
        job = world.refits.start(a_model())
        await ended(job)
        solver.failure = None
        assert job.error is not None
        await until(lambda: not world.refits._tasks)
        gc.collect()
        assert [ref() for ref in rows] == [None]

    run(scenario)


@pytest.mark.parametrize("failure", [RefitFailed("too few samples"), ZeroDivisionError("oh")])
def test_failed_job_tells_why_next_runs(solver: Solver, failure: Exception) -> None:
    async def scenario(world: World) -> None:
        solver.failure = failure
        solver.free.set()
        job = world.refits.start(a_model())
        await ended(job)
        assert (job.status, job.result) == ("failed", None)
        assert isinstance(job.error, RefitFailed)
        assert str(failure) in job.error.detail
        assert world.kept == []
        solver.failure = None
        again = world.refits.start(job.model)
        await ended(again)
        assert again.status == "done"

    run(scenario)


def test_what_could_not_be_kept_is_not_done(solver: Solver) -> None:
    async def scenario(world: World) -> None:
        world.full = True
        solver.free.set()
        job = world.refits.start(a_model())
        await ended(job)
        assert job.status == "failed"
        assert isinstance(job.error, StorageFailed)

    run(scenario)


def test_the_last_ones_of_a_model_are_remembered(solver: Solver) -> None:
    async def scenario(world: World) -> None:
        solver.free.set()
        model = a_model()
        jobs = []
        for _ in range(MAX_JOBS + 3):
            jobs.append(world.refits.start(model))
            await ended(jobs[-1])
        assert world.refits.jobs(model) == jobs[: -MAX_JOBS - 1 : -1]
        assert world.refits.job(model, jobs[-1].id) is jobs[-1]
        for unknown in (jobs[0].id, "nonsense"):
            with pytest.raises(UnknownJob):
                world.refits.job(model, unknown)

    run(scenario)


@pytest.mark.usefixtures("solver")
def test_the_refit_of_a_deleted_model_ends_and_makes_room() -> None:
    async def scenario(world: World) -> None:
        deleted, other = a_model("deleted"), a_model("other")
        jobs = [world.refits.start(deleted), world.refits.start(other)]
        await until(lambda: jobs[0].progress is not None)
        world.refits.forget(deleted)
        await until(lambda: jobs[1].progress is not None)
        assert jobs[0].status == "failed"
        assert world.refits.jobs(deleted) == []
        with pytest.raises(UnknownJob):
            world.refits.job(deleted, jobs[0].id)

    assert run(scenario).kept == []


def test_stopping_ends_what_runs_and_what_waits(solver: Solver) -> None:
    async def scenario(world: World) -> None:
        jobs = [world.refits.start(a_model(f"m{i}")) for i in range(3)]
        await until(lambda: jobs[0].progress is not None)
        async with asyncio.timeout(10):
            await world.refits.stop()
        assert solver.running == 0

    assert run(scenario).kept == []

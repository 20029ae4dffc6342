"""Refits: jobs that fit a model again on its recent samples, while it learns and predicts.

    queued -> take the window (writer) -> solve (worker) -> append + fsync, absorb, publish (writer)

One worker thread solves one refit at a time. The writer's thread serves its fit (`serve_fit`);
everything else here runs on the event loop. Jobs end with the process. The fit of a finished job
does not: it is in the model's log.
"""

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.writer_role import Products
from wolfstream.service.errors import JobsFull, RefitFailed, RefitStopped, Refusal, UnknownJob
from wolfstream.service.heads.fit import Fit, Progress, Window, fit_from_record, fit_to_record
from wolfstream.service.heads.kinds import fit_window
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.broken import mark_broken
from wolfstream.service.storage.entries import Entry

logger = logging.getLogger(__name__)

# How many jobs of a model can be looked up.
MAX_JOBS = 16


class Job:
    """A refit, which its client can watch.

    Attributes:
        id: unique in the process.
        model: to refit.
        status: "queued", then "running", then "done" or "failed".
        sequence, epoch: of the model when its window was taken.
        samples: the number of samples in the window.
        progress: of the solver; the worker thread replaces it as a whole.
        result: the description of the fit, once the job is done.
        error: why the job failed.
    """

    def __init__(self, model: Model) -> None:
        self.id = uuid.uuid4().hex
        self.model = model
        self.status: Literal["queued", "running", "done", "failed"] = "queued"
        self.sequence: int | None = None
        self.epoch: str | None = None
        self.samples: int | None = None
        self.progress: Progress | None = None
        self.result: dict[str, Any] | None = None
        self.error: Refusal | None = None
        self._stopped = ""  # why the solver is to end; "" if it is not
        self._began: float | None = None  # by the monotonic clock, as is `_ended`
        self._ended: float | None = None

    @property
    def active(self) -> bool:
        """Whether the job is queued or running."""
        return self.status in ("queued", "running")

    @property
    def seconds(self) -> float:
        """How long the job has run."""
        if self._began is None:
            return 0.0
        return (time.monotonic() if self._ended is None else self._ended) - self._began

    def stop(self, why: str) -> None:
        """Let the job fail when the solver next reports progress. why: told to the client."""
        self._stopped = why

    def begin(self) -> None:
        """Mark the job as running. Raises RefitStopped."""
        self._check_stop()
        self.status, self._began = "running", time.monotonic()

    def observe(self, progress: Progress) -> None:
        """Record the solver's progress. Raises RefitStopped, which ends the solver."""
        self._check_stop()
        self.progress = progress

    def end(self, error: Refusal | None) -> None:
        """Mark the job as done, or as failed with an error."""
        self.error = None if error is None else error.without_frames()
        self.status = "failed" if error else "done"
        self._ended = time.monotonic()

    def _check_stop(self) -> None:
        if self._stopped:
            raise RefitStopped(f"{self._stopped}; nothing has changed")


class Refits:
    """The refits of all models.

    Args:
        take: returns a model's present window; waits for the writer.
        serve: makes a window's fit part of its model, unless that was rolled back meanwhile, and
            returns the fit's description; waits for the writer.
        waiting: bound on the number of queued jobs.

    Attributes:
        ended: the number of jobs that have ended, by status.
    """

    def __init__(
        self,
        take: Callable[[Model], Awaitable[Window]],
        serve: Callable[[Model, Window, Fit], Awaitable[dict[str, Any]]],
        waiting: int,
    ) -> None:
        self._take = take
        self._serve = serve
        self._waiting = waiting
        # The last jobs of each model, oldest first; only the last one may be active.
        self._jobs: dict[Model, list[Job]] = {}
        # Keeps running tasks alive: the event loop itself refers to them weakly.
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()  # held by the job that runs
        self._worker = ThreadPoolExecutor(1, "refit")
        self.ended: Counter[str] = Counter()

    def start(self, model: Model) -> Job:
        """Return the model's queued or running refit, or else a new one. Raises JobsFull."""
        jobs = self._jobs.get(model, [])
        if jobs and jobs[-1].active:
            return jobs[-1]
        queued = sum(model_jobs[-1].status == "queued" for model_jobs in self._jobs.values())
        if queued >= self._waiting:
            raise JobsFull(f"{queued} refits wait, at most {self._waiting} may; try again")
        job = Job(model)
        self._jobs[model] = [*jobs[1 - MAX_JOBS :], job]
        task = asyncio.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def active(self) -> Counter[str]:
        """Return the numbers of queued and of running jobs; on any thread."""
        last = [jobs[-1] for jobs in self._jobs.copy().values()]
        return Counter(job.status for job in last if job.active)

    def jobs(self, model: Model) -> list[Job]:
        """Return the jobs of a model that can be looked up, newest first."""
        return self._jobs.get(model, [])[::-1]

    def job(self, model: Model, job_id: str) -> Job:
        """Return the job of a model with this id. Raises UnknownJob."""
        for job in self._jobs.get(model, []):
            if job.id == job_id:
                return job
        raise UnknownJob(
            f"model {model.name!r} has no job {job_id[:40]!r}: the last {MAX_JOBS} are remembered, "
            "until the server stops; the model's description says which fit it serves"
        )

    def forget(self, model: Model) -> None:
        """Stop the refit of a deleted model, and forget the model's jobs."""
        for job in self._jobs.pop(model, []):
            job.stop("the model was deleted")

    def rolled_back(self, model: Model) -> None:
        """Stop a model's running refit: its window has samples that the model no longer knows."""
        for job in self._jobs.get(model, [])[-1:]:
            if job.status == "running":
                job.stop("the model was rolled back; ask for another refit")

    def ask_to_stop(self) -> None:
        """Stop every refit at its next report of progress."""
        for jobs in self._jobs.values():
            jobs[-1].stop("the server was stopped")

    async def stop(self) -> None:
        """Stop every refit and wait for the worker."""
        self.ask_to_stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.to_thread(self._worker.shutdown)

    async def _run(self, job: Job) -> None:
        error: Refusal | None = None
        try:
            async with self._turn:
                job.begin()
                await self._refit(job)
        except Refusal as refusal:
            error = refusal
        except Exception as failure:
            logger.exception("refit failed: model=%s", job.model.name)
            error = RefitFailed(f"the solver failed: {failure!r}")
        job.end(error)
        self.ended[job.status] += 1

    async def _refit(self, job: Job) -> None:
        window = await self._take(job.model)
        job.sequence, job.epoch, job.samples = window.sequence, window.epoch, len(window.y)
        solving = self._worker.submit(fit_window, window, job.id, job.observe)
        fit = await asyncio.wrap_future(solving)
        job.result = await self._serve(job.model, window, fit)


def serve_fit(
    learner: Learner,
    commits: Commits,
    aside: Products,
    threads: int,
    window: Window,
    fit: Fit,
) -> None:
    """Persist, apply and publish the fit of a window; on the writer's thread.

    Args:
        learner: of the model.
        commits: that write its log.
        aside: see `Writer`.
        threads: on how many the products are computed, live and in a replay.
        window: that the refit took.
        fit: its result.

    Raises ModelBroken, RefitFailed, StorageFailed.
    """
    model = learner.model
    if window.epoch != learner.epoch:
        raise RefitFailed(
            f"model {model.name!r} was rolled back while the refit ran, on samples "
            "that it no longer knows; ask for another refit"
        )
    with aside(threads):
        record = fit_to_record(fit)
    entry = Entry(
        model=model.id,
        sequence=learner.sequence,
        samples=0,
        block=learner.sequence,
        head=window.head,
        threads=threads,
        record=record,
        kind="fit",
    )
    commits.append_alone(entry)
    try:
        with aside(threads):
            learner.adopt(entry.head, fit_from_record(entry.record))
            learner.publish()
    except Exception as error:  # the log has the fit: a state without it must not go on
        raise mark_broken(learner, error) from None

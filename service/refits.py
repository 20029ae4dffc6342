"""Refits: jobs that fit a model's window of recent samples anew, beside learning and predicting.

    queued -> take the window (writer) -> solve (worker) -> append + fsync, absorb, publish (writer)

One worker thread solves one refit at a time; everything else here runs on the event loop. Jobs
are forgotten with the process. What a job that is done has found is in the model's log.
"""

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from service.errors import JobsFull, RefitFailed, RefitStopped, Refusal, UnknownJob
from service.fits import Fit, Progress, Window, fit_window
from service.model import Model

logger = logging.getLogger(__name__)

# Jobs of a model that can be looked up.
KEPT = 16


class Job:
    """A refit as its client follows it.

    sequence, samples: the model's when the window was taken, and how many were in it.
    progress: of the solver; replaced as a whole by the worker thread.
    result: how the model is described once it is done. error: why it failed.
    """

    def __init__(self, model: Model) -> None:
        self.id = uuid.uuid4().hex
        self.model = model
        self.status: Literal["queued", "running", "done", "failed"] = "queued"
        self.sequence: int | None = None
        self.samples: int | None = None
        self.progress: Progress | None = None
        self.result: dict[str, Any] | None = None
        self.error: Refusal | None = None
        self._stopped = ""
        self._began: float | None = None
        self._ended: float | None = None

    @property
    def active(self) -> bool:
        """Whether it is still to end."""
        return self.status in ("queued", "running")

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        if self._began is None:
            return 0.0
        return (time.monotonic() if self._ended is None else self._ended) - self._began

    def stop(self, why: str) -> None:
        """Let it end, failed, as soon as the solver reports."""
        self._stopped = why

    def begin(self) -> None:
        """From now on it runs. Raises RefitStopped."""
        self._check_stop()
        self.status, self._began = "running", time.monotonic()

    def observe(self, progress: Progress) -> None:
        """Note how far the solver is. Raises RefitStopped, through the solver."""
        self._check_stop()
        self.progress = progress

    def end(self, error: Refusal | None) -> None:
        """It is done, or failed."""
        self.error = error
        self.status = "failed" if error else "done"
        self._ended = time.monotonic()

    def _check_stop(self) -> None:
        if self._stopped:
            raise RefitStopped(f"{self._stopped}; nothing has changed")


class Refits:
    """The refits of all models.

    take: the present window of a model. keep: puts a window's fit into the model for good, unless
    the model was rolled back meanwhile, and gives its description. Both wait for the writer.
    waiting: bound on the jobs that are queued. ended: how many, by their status.
    """

    def __init__(
        self,
        take: Callable[[Model], Awaitable[Window]],
        keep: Callable[[Model, Window, Fit], Awaitable[dict[str, Any]]],
        waiting: int,
    ) -> None:
        self._take = take
        self._keep = keep
        self._waiting = waiting
        self._jobs: dict[Model, list[Job]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._worker = ThreadPoolExecutor(1, "refit")
        self.ended: Counter[str] = Counter()

    def start(self, model: Model) -> Job:
        """The model's refit that is queued or runs, or else a new one. Raises JobsFull."""
        jobs = self._jobs.get(model, [])
        if jobs and jobs[-1].active:
            return jobs[-1]
        queued = sum(of[-1].status == "queued" for of in self._jobs.values())
        if queued >= self._waiting:
            raise JobsFull(f"{queued} refits wait, at most {self._waiting} may; try again")
        job = Job(model)
        self._jobs[model] = [*jobs[1 - KEPT :], job]
        task = asyncio.create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def active(self) -> Counter[str]:
        """How many are queued, and how many run; on any thread."""
        last = [jobs[-1] for jobs in self._jobs.copy().values()]
        return Counter(job.status for job in last if job.active)

    def jobs(self, model: Model) -> list[Job]:
        """Those of a model that are remembered, newest first."""
        return self._jobs.get(model, [])[::-1]

    def job(self, model: Model, job_id: str) -> Job:
        """One of them. Raises UnknownJob."""
        for job in self._jobs.get(model, []):
            if job.id == job_id:
                return job
        raise UnknownJob(
            f"model {model.name!r} has no job {job_id[:40]!r}: the last {KEPT} are remembered, "
            "until the server stops; the model's description says which fit it serves"
        )

    def forget(self, model: Model) -> None:
        """End the refit of a model that was deleted, and remember none of it."""
        for job in self._jobs.pop(model, []):
            job.stop("the model was deleted")

    def rolled_back(self, model: Model) -> None:
        """End the model's refit that runs: its window is of what the model no longer knows."""
        for job in self._jobs.get(model, [])[-1:]:
            if job.status == "running":
                job.stop("the model was rolled back; ask for another refit")

    def ask_to_stop(self) -> None:
        """Let every refit end soon."""
        for jobs in self._jobs.values():
            jobs[-1].stop("the server was stopped")

    async def stop(self) -> None:
        """End every refit and wait for the worker."""
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
            logger.exception("model %s: a refit failed", job.model.name)
            error = RefitFailed(f"the solver failed: {failure!r}")
        job.end(error)
        self.ended[job.status] += 1

    async def _refit(self, job: Job) -> None:
        window = await self._take(job.model)
        job.sequence, job.samples = window.sequence, len(window.y)
        solving = self._worker.submit(fit_window, window, job.id, job.observe)
        fit = await asyncio.wrap_future(solving)
        job.result = await self._keep(job.model, window, fit)

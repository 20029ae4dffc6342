"""Bodies of refits: the jobs and their results."""

from typing import Any, Literal

from wolfstream.service.calls.problems import Problem
from wolfstream.service.calls.values import Body, Count, ModelName, Seconds


class Coefficient(Body):
    """The coefficient of a function of the spec's basis."""

    basis: dict[str, Any]
    beta: float


class Fit(Body):
    """The result of a refit: on disk, and used for predictions until the next one."""

    job: str | None
    """null: fitted by `train`."""
    sequence: Count
    """The model's sequence when the window was copied."""
    samples: Count
    support_vectors: Count
    kkt_violation: float
    n_iter: Count
    gamma: float | None
    beta: list[Coefficient]
    """The coefficient of each function of the spec's basis."""


class Progress(Body, total=False):
    """Progress of the solver, which ends at a violation of at most `tol`."""

    iteration: Count
    kkt_violation: float
    tol: float


class Job(Body):
    """A refit as a job."""

    job: str
    model: ModelName
    status: Literal["queued", "running", "done", "failed"]
    href: str
    sequence: Count | None
    """The model's sequence when the window was copied, before the refit."""
    epoch: str | None
    samples: Count | None
    """Number of samples in the window."""
    seconds: Seconds
    progress: Progress | None
    """Progress of the solver, which ends at a violation of at most `tol`."""
    result: Fit | None
    error: Problem | None


class Jobs(Body):
    """The refits of a model."""

    jobs: list[Job]
    """The model's latest, newest first."""

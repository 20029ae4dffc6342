"""The endpoints of refits: start one as a job, and watch the jobs of a model."""

from typing import Any

from fastapi import Request, Response

from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.refits import Job
from wolfstream.service.errors import Invalid
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.problems import problem_of
from wolfstream.service.web.formats.wire import JSON
from wolfstream.service.web.routes.endpoints import Endpoints, by_name

_BODY_BYTES = 1 << 16


def refit_endpoints(engine: Engine) -> Endpoints:
    """Return the endpoints of refits."""

    async def refit(request: Request, name: str) -> Response:
        """Fit a head again to the model's window of recent samples, as a job.

        The window is copied when the job begins to run. While a refit of the model is queued or
        running, further requests get the same job. The body is empty.
        """
        if await read_body(request, _BODY_BYTES) not in (b"", b"{}"):
            raise Invalid("a refit takes no body; the model's spec says what it fits")
        model = engine.model(name)
        model.refitted_head()
        job = _plain(engine.orders.refit(model))
        return respond(request, JSON, job, 202, {"Location": job["href"]})

    async def list_jobs(request: Request, name: str) -> Response:
        """List the latest refits of the model, newest first."""
        jobs = engine.refits.jobs(engine.model(name))
        return respond(request, JSON, {"jobs": [_plain(job) for job in jobs]})

    async def describe_job(request: Request, name: str, job: str) -> Response:
        """Describe a refit: its progress, and its result or error once it has ended."""
        return respond(request, JSON, _plain(engine.refits.job(engine.model(name), job)))

    return by_name(refit, list_jobs, describe_job)


def _plain(job: Job) -> dict[str, Any]:
    """Return a refit as plain data."""
    return {
        "job": job.id,
        "model": job.model.name,
        "status": job.status,
        "href": f"/v1/models/{job.model.name}/jobs/{job.id}",
        "sequence": job.sequence,
        "epoch": job.epoch,
        "samples": job.samples,
        "seconds": round(job.seconds, 3),
        "progress": job.progress._asdict() if job.progress else None,
        "result": job.result,
        "error": problem_of(job.error) if job.error else None,
    }

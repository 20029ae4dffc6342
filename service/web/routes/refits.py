"""The routes of refits: start one as a job, and follow the jobs of a model."""

from typing import Any

from fastapi import FastAPI, Request, Response

from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.refits import Job
from wolfstream.service.errors import (
    Invalid,
    JobsFull,
    ModelBroken,
    NoSuchHead,
    UnknownJob,
    UnknownModel,
)
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.problems import problem_of
from wolfstream.service.web.formats.wire import JSON
from wolfstream.service.web.openapi.operations import BODY_REFUSALS, NO_BODY, answer, refusals

_BODY_BYTES = 1 << 16


def add_refits(app: FastAPI, engine: Engine) -> None:
    """Add the routes; POST needs the scope learn, the rest predict (`web.layers.guard`)."""

    @app.post(
        "/v1/models/{name}/refit",
        tags=["refitting"],
        status_code=202,
        openapi_extra=NO_BODY,
        responses={
            202: answer("Job", "The job, queued or running."),
            **refusals(*BODY_REFUSALS, UnknownModel, NoSuchHead, JobsFull, ModelBroken),
        },
    )
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

    @app.get(
        "/v1/models/{name}/jobs",
        tags=["refitting"],
        responses={200: answer("Jobs", "The jobs."), **refusals(UnknownModel)},
    )
    async def list_jobs(request: Request, name: str) -> Response:
        """The latest refits of the model, newest first."""
        jobs = engine.refits.jobs(engine.model(name))
        return respond(request, JSON, {"jobs": [_plain(job) for job in jobs]})

    @app.get(
        "/v1/models/{name}/jobs/{job}",
        tags=["refitting"],
        responses={200: answer("Job", "The job."), **refusals(UnknownModel, UnknownJob)},
    )
    async def describe_job(request: Request, name: str, job: str) -> Response:
        """A refit: its progress, and its result or error once it has ended."""
        return respond(request, JSON, _plain(engine.refits.job(engine.model(name), job)))


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

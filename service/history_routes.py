"""The routes of a model's history: its snapshots, and the way back to one."""

from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError

from service.bodies import read_body, respond
from service.engine import Engine
from service.errors import Invalid, SampleError, UnknownSnapshot, pointer_to
from service.openapi import NO_BODY, answers, problems, rollback_body
from service.wire import JSON, format_of_body

_BODY_BYTES = 1 << 12


class RollbackRequest(BaseModel):
    """Where to go back to."""

    model_config = ConfigDict(extra="forbid")

    sequence: Annotated[StrictInt, Field(ge=0)]


def add_history(app: FastAPI, engine: Engine) -> None:
    """Add the routes. What the paths need, `service.guard` knows: GET predict, the rest admin."""

    @app.get(
        "/v1/models/{name}/history",
        tags=["history"],
        responses={200: answers("History", "The snapshots."), **problems(404)},
    )
    async def list_snapshots(request: Request, name: str) -> Response:
        """The snapshots that are kept of a model, newest first.

        To go back to one is to forget the `samples_since` that were logged after it. The setting
        `snapshots` says how many are kept.
        """
        model = engine.model(name)
        snapshots = await engine.history(model)
        told = {
            "model": name,
            "sequence": model.published.sequence,
            "rolled_back": model.rolled_back,
            "snapshots": snapshots,
        }
        return respond(request, JSON, told)

    @app.post(
        "/v1/models/{name}/snapshot",
        tags=["history"],
        status_code=201,
        openapi_extra=NO_BODY,
        responses={
            201: answers("Snapshot", "It is on disk."),
            **problems(400, 404, 409, 413, 415, 422),
        },
    )
    async def take_snapshot(request: Request, name: str) -> Response:
        """Make a snapshot now: a point to go back to. The body is empty.

        There is one snapshot of a sequence: a later one, after a refit or a rollback, replaces it.
        The oldest one that is too many is forgotten.
        """
        if await read_body(request, _BODY_BYTES) not in (b"", b"{}"):
            raise Invalid("a snapshot takes no body")
        model = engine.model(name)
        sequence = await engine.snapshot(model)
        for told in await engine.history(model):
            if told["sequence"] == sequence:
                return respond(request, JSON, told, 201)
        raise UnknownSnapshot(f"the snapshot of sequence {sequence} was made, and forgotten again")

    @app.post(
        "/v1/models/{name}/rollback",
        tags=["history"],
        openapi_extra=rollback_body(),
        responses={
            200: answers("Model", "The model as it is now."),
            **problems(400, 404, 409, 413, 415, 422),
        },
    )
    async def roll_back_model(request: Request, name: str) -> Response:
        """Go back to a snapshot: the model becomes what it was, and goes on from there.

        Its sequence does not go back: it counts what was logged. What was learned since the
        snapshot is forgotten, and an Idempotency-Key under which it was learned stays used: the
        same request again is answered as it was, and is not learned again. Predictions are served
        all the while; a refit that runs is ended. 200 means that the rollback is on disk.
        A snapshot made just before is the way back from it.
        """
        data = await read_body(request, _BODY_BYTES)
        body_format = format_of_body(request.headers.get("content-type"))
        sequence = _read_rollback(body_format.decode(data))
        told = await engine.roll_back(engine.model(name), sequence)
        return respond(request, body_format, told)


def _read_rollback(body: Any) -> int:
    """The sequence to go back to. Raises Invalid."""
    try:
        return RollbackRequest.model_validate(body).sequence
    except ValidationError as error:
        wrong: list[SampleError] = [
            {"pointer": pointer_to(*item["loc"]), "detail": item["msg"]} for item in error.errors()
        ]
        raise Invalid('a rollback says where to: {"sequence": N}', wrong) from None

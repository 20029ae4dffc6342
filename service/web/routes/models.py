"""The endpoints of models: they are listed, described, created, deleted, rolled back, promoted."""

from collections.abc import Callable
from typing import Any, cast

from fastapi import Request, Response

from wolfstream.service.calls.models import History, Learners, Models, RolledBack
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import Invalid, SampleError, UnknownSnapshot, pointer_to
from wolfstream.service.model.live import Model
from wolfstream.service.model.scoreboard import scoreboard
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.bounds import SPEC_BOUNDS, SPEC_BYTES, Bounds
from wolfstream.service.web.formats.revisions import read_if_match, read_min_sequence
from wolfstream.service.web.formats.wire import JSON, format_of_body
from wolfstream.service.web.routes.creation import create
from wolfstream.service.web.routes.endpoints import Endpoints, by_name

_BODY_BYTES = 1 << 12
_BOUNDS = Bounds(_BODY_BYTES, _BODY_BYTES)


def history_endpoints(engine: Engine) -> Endpoints:
    """Return the endpoints of a model's history."""

    async def list_snapshots(request: Request, name: str) -> Response:
        """List the stored snapshots of a model, newest first.

        A rollback to a snapshot forgets the `samples_since`, which were logged after it. The
        setting `snapshots` says how many snapshots are stored.
        """
        model = engine.model(name)
        snapshots, published = await engine.orders.history(model), model.published
        history: History = {
            "model": name,
            "sequence": published.sequence,
            "epoch": published.epoch,
            # The log has the fields of the last rollback as plain data.
            "rolled_back": cast("RolledBack | None", model.rolled_back),
            "snapshots": snapshots,
        }
        return respond(request, JSON, history)

    async def take_snapshot(request: Request, name: str) -> Response:
        """Make a snapshot now, to which the model can be rolled back. The body is empty.

        A sequence has one snapshot: a later one of the same sequence, after a refit or a rollback,
        replaces it. If there are too many, the oldest is deleted.
        """
        if await read_body(request, _BODY_BYTES) not in (b"", b"{}"):
            raise Invalid("a snapshot takes no body")
        model = engine.model(name)
        sequence = await engine.orders.snapshot(model)
        for snapshot in await engine.orders.history(model):
            if snapshot["sequence"] == sequence:
                return respond(request, JSON, snapshot, 201)
        raise UnknownSnapshot(f"the snapshot of sequence {sequence} was made, and deleted again")

    async def roll_back_model(request: Request, name: str) -> Response:
        """Go back to a snapshot: the model becomes what it was then, and continues from there.

        Its sequence does not go back, because it counts what was logged. What was learned since the
        snapshot is forgotten, but the idempotency keys under which it was learned stay used: the
        same request again gets its first answer, and is not learned again. Predictions are served
        meanwhile; a running refit is stopped. 200 means that the rollback is on disk.
        To undo a rollback, make a snapshot just before it, and roll back to that one.
        """
        data = await read_body(request, _BODY_BYTES)
        body_format = format_of_body(request.headers.get("content-type"))
        sequence = _read_field(
            body_format.decode(data, _BOUNDS),
            "sequence",
            lambda value: type(value) is int and value >= 0,
            "must be a whole number, zero or more",
            'the body of a rollback is {"sequence": N}, of a snapshot',
        )
        expected = read_if_match(request.headers.getlist("if-match"))
        rolled_back = await engine.orders.roll_back(engine.model(name), sequence, expected)
        return respond(request, body_format, rolled_back)

    return by_name(list_snapshots, take_snapshot, roll_back_model)


def _read_field(body: Any, name: str, is_valid: Callable[[Any], bool], must: str, form: str) -> Any:
    """Return the only field of a body. Raises Invalid.

    Args:
        body: plain data.
        name: of the field.
        is_valid: returns whether a value can be used.
        must: says what the value must be.
        form: says what the body is.
    """
    faults: list[SampleError] = []
    fields = body if isinstance(body, dict) else {}
    if fields is not body:
        faults.append({"pointer": "", "detail": "must be an object"})
    elif not is_valid(fields.get(name)):
        faults.append({"pointer": pointer_to(name), "detail": must})
    unknown = [field for field in fields if field != name]
    faults += [{"pointer": pointer_to(field), "detail": "unknown field"} for field in unknown]
    if faults:
        raise Invalid(form, faults)
    return fields[name]


def challenger_endpoints(engine: Engine) -> Endpoints:
    """Return the endpoints of challengers."""

    async def list_challengers(request: Request, name: str) -> Response:
        """List the models that follow this one, each compared with it on the same samples.

        `difference` is above zero where the challenger is better. `interval` holds at all times
        together with the probability `level`: it may be watched, and acted on once zero is outside.
        """
        champion, prefix = engine.model(name), request.state.grant.prefix
        await engine.challengers.lead(champion)
        followers = engine.challengers.following(champion)
        visible = [model for model in followers if model.name.startswith(prefix)]
        return respond(request, JSON, scoreboard(champion, visible))

    async def promote_model(request: Request, name: str) -> Response:
        """Exchange spec and state of a model and its challenger; 200 means that it is on disk.

        The challenger first learns what it lacks of the champion's log. Both keep their names,
        their sequences and the rows that wait for labels, and begin another epoch. The challenger
        becomes what the champion was, and continues to follow. The previous state is in the
        history, under the sequence at which they were exchanged: a rollback to it undoes this.
        """
        data = await read_body(request, _BODY_BYTES)
        body_format = format_of_body(request.headers.get("content-type"))
        challenger = _read_field(
            body_format.decode(data, _BOUNDS),
            "model",
            lambda value: isinstance(value, str),
            "must name a challenger",
            'the body of a promotion is {"model": NAME}, of a challenger',
        )
        expected = read_if_match(request.headers.getlist("if-match"))
        request.state.grant.check_model(challenger)
        champion = engine.model(name)
        await engine.challengers.lead(champion)
        named = await engine.challengers.named(champion, challenger)
        promoted = await engine.orders.promote(champion, named, expected)
        return respond(request, body_format, promoted)

    return by_name(list_challengers, promote_model)


def model_endpoints(engine: Engine, settings: Settings) -> Endpoints:
    """Return the endpoints of models."""

    async def list_models(request: Request) -> Response:
        """List all models that the key is for, with their sequences."""
        return respond(request, JSON, _listed(engine, request.state.grant.prefix))

    async def describe_model(request: Request, name: str) -> Response:
        """Describe a model: spec, sequence, and the size, steps, gap and scores of each head."""
        awaited = read_min_sequence(request.query_params.get("min_sequence"))
        model = engine.model(name)
        if awaited is not None:
            await engine.reached(model, awaited)
        # A client decides by the sequence whether to send samples again: it must not be outdated.
        await engine.confirm(model)
        return respond(request, JSON, model.describe())

    async def list_learners(request: Request, name: str) -> Response:
        """List the learners of heads that have several: parameters, weight and losses of each."""
        return respond(request, JSON, _learners(engine.model(name)))

    async def create_model(request: Request, name: str) -> Response:
        """Create a model from a spec of its task, kernel and heads; `{}` has all the defaults.

        With `follows` it is a challenger: it learns what another model learns, from that model's
        log.
        """
        data = await read_body(request, min(settings.body_bytes, SPEC_BYTES))
        body_format = format_of_body(request.headers.get("content-type") if data else None)
        spec = body_format.decode(data, SPEC_BOUNDS) if data else {}
        created, new = await create(engine, request.state.grant, name, spec)
        return respond(request, body_format, created, 201 if new else 200)

    async def delete_model(request: Request, name: str) -> Response:
        """Delete a model with everything that it has learned."""
        model = engine.model(name)
        await engine.challengers.lead(model)  # its challengers become independent models
        await engine.orders.delete(model, read_if_match(request.headers.getlist("if-match")))
        return Response(status_code=204)

    return by_name(list_models, describe_model, list_learners, create_model, delete_model)


def _listed(engine: Engine, prefix: str) -> Models:
    """Return the models whose names begin with a prefix."""
    models = [(m, m.published) for m in engine.models() if m.name.startswith(prefix)]
    return {
        "models": [
            {
                "model": model.name,
                "sequence": published.sequence,
                "epoch": published.epoch,
                "status": model.status,
                "features": published.rows.dimension,
            }
            for model, published in models
        ]
    }


def _learners(model: Model) -> Learners:
    """Return the learners of each head that has several."""
    published = model.published
    heads = {head: view.learners for head, view in published.heads.items()}
    return {
        "model": model.name,
        "sequence": published.sequence,
        "epoch": published.epoch,
        "heads": {head: rows for head, rows in heads.items() if rows},
    }

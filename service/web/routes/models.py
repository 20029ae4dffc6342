"""The endpoints of models: list, describe, create and delete them."""

from fastapi import Request, Response

from wolfstream.service.calls.models import Learners, Models
from wolfstream.service.engine.facade import Engine
from wolfstream.service.model.live import Model
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.body import read_body, respond
from wolfstream.service.web.formats.bounds import SPEC_BOUNDS, SPEC_BYTES
from wolfstream.service.web.formats.revisions import read_if_match, read_min_sequence
from wolfstream.service.web.formats.wire import JSON, format_of_body
from wolfstream.service.web.routes.creation import create
from wolfstream.service.web.routes.endpoints import Endpoints, by_name


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

"""The hot endpoints: learn samples, predict rows, and label predicted rows.

`web.transport.shortcut` calls them directly.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from fastapi import Request, Response

from wolfstream.service.access.key_ring import Grant
from wolfstream.service.engine.idempotency import header_key
from wolfstream.service.engine.serving import PredictingEngine, ServingEngine
from wolfstream.service.settings import Settings
from wolfstream.service.spec.heads import LearningCall
from wolfstream.service.web.formats.body import (
    receive_late_labels,
    receive_question,
    receive_samples,
    respond,
    with_warnings,
)
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.prefer import acknowledge
from wolfstream.service.web.formats.query import read_roles, with_query
from wolfstream.service.web.formats.revisions import (
    read_conditions,
    read_max_lag,
    read_min_sequence,
)
from wolfstream.service.web.routes import handlers
from wolfstream.service.web.routes.endpoints import Endpoints, by_name

# Used for an empty query, because parsing it takes as long as decoding a row.
_NO_QUERY: Mapping[str, str] = {}


def learning_endpoints(
    engine: ServingEngine, settings: Settings, memory: MemoryBudget
) -> Endpoints:
    """Return the endpoints that learn."""

    async def learn(request: Request, name: str) -> Response:
        """Learn samples in order, with the working set, or for a head that is fitted on request."""
        return await _learn(request, name, "samples")

    async def learn_asset(request: Request, name: str) -> Response:
        """Learn samples in order, with a step of ASSET for each."""
        return await _learn(request, name, "asset")

    async def _learn(request: Request, name: str, call: LearningCall) -> Response:
        conditions = read_conditions(request.scope, settings.wait_seconds)
        keys, preference, expected = conditions
        grant: Grant = request.scope["state"]["grant"]
        key = header_key(keys, grant.client) if keys else None
        with memory.lease() as lease:
            model_of = partial(engine.model, name)
            roles = read_roles(request.scope["query_string"])
            received = await receive_samples(request, settings, model_of, lease, roles)
            body_format, model, samples, warnings = received
            await engine.compiled(model, samples.X, preference and preference.wait)
        durable = asyncio.get_running_loop().create_future() if preference else None
        waiting = handlers.learn(engine, grant, model, call, samples, key, durable, expected)
        learned, status, headers = await acknowledge(waiting, durable, preference)
        learned = with_warnings(learned, warnings)
        return respond(request, body_format, learned, status, headers, lease)

    async def label(request: Request, name: str) -> Response:
        """Learn rows that were predicted with `ids`, in the order of their labels.

        A request is not refused because of single ids: `results` says what became of each label.
        `learned`: its row is learned now; `replayed`: the row was learned before, with this label;
        `conflict`: it was learned before, with another label; `expired`: it waited too long, or
        too many rows waited; `unknown`: no row was predicted with the id, or that was long ago.
        A label that is sent again is not learned again, so a request without a response can be
        sent again.
        """
        conditions = read_conditions(request.scope, settings.wait_seconds)
        with memory.lease() as lease:
            roles = read_roles(request.scope["query_string"])
            model_of = partial(engine.model, name)
            received = await receive_late_labels(request, settings, model_of, lease, roles)
            body_format, model, labels, _ = received
            await engine.compiled(model, None)
        grant: Grant = request.scope["state"]["grant"]
        learned = await handlers.label(engine, grant, model, labels, conditions.expected)
        return respond(request, body_format, learned, lease=lease)

    return by_name(learn, learn_asset, label)


def prediction_endpoints(
    engine: PredictingEngine, settings: Settings, memory: MemoryBudget
) -> Endpoints:
    """Return the endpoint that predicts."""

    async def predict(request: Request, name: str) -> Response:
        """Predict labels, or numbers of a regression, with the decisions of the current model."""
        query = request.query_params if request.scope["query_string"] else _NO_QUERY
        awaited = read_min_sequence(query.get("min_sequence"))
        max_lag = read_max_lag(request.scope["query_string"])
        predicting = engine if max_lag is None else engine.allowing(max_lag)
        with memory.lease() as lease:
            model_of = partial(predicting.model, name)
            roles = read_roles(request.scope["query_string"])
            received = await receive_question(request, settings, model_of, lease, roles)
            body_format, model, question, warnings = received
            grant: Grant = request.scope["state"]["grant"]
            head = query.get("head")
            question = with_query(question, query)
            predicted = await handlers.predict(
                predicting, grant, model, head, awaited, question, lease
            )
            headers = {"Idempotency-Replayed": "true"} if predicted.pop("replayed", False) else None
            predicted = with_warnings(predicted, warnings)
            return respond(request, body_format, predicted, headers=headers, lease=lease)

    return by_name(predict)

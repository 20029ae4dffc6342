"""The routes that carry the traffic: learn samples, predict rows.

They are declared with FastAPI, which documents them; `web.layers.shortcut` calls them.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from fastapi import FastAPI, Request, Response

from wolfstream.service.access.key_ring import Grant
from wolfstream.service.engine.idempotency import header_key
from wolfstream.service.engine.serving import Predicting, Serving
from wolfstream.service.errors import (
    AnotherState,
    Follows,
    IdTaken,
    KeyReused,
    MemoryFull,
    ModelBroken,
    ModelsFull,
    NoSuchHead,
    NotReached,
    QueueFull,
    QuotaExceeded,
    StorageFailed,
    UnknownModel,
    Untrained,
)
from wolfstream.service.settings import Settings
from wolfstream.service.spec.heads import LearningCall
from wolfstream.service.web.formats.body import (
    decode_late_labels,
    read_body,
    receive_question,
    receive_samples,
    respond,
    with_warnings,
)
from wolfstream.service.web.formats.conditions import read_conditions
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.moments import max_lag_of, read_min_sequence
from wolfstream.service.web.formats.prefer import acknowledged
from wolfstream.service.web.formats.query import check_query, declared, read_roles
from wolfstream.service.web.formats.questions import with_query
from wolfstream.service.web.formats.wire import format_of_body
from wolfstream.service.web.layers.shortcut import Endpoint
from wolfstream.service.web.openapi.operations import (
    BODY_REFUSALS,
    LABELS,
    LEARN,
    LEARNED,
    PREDICT,
    answer,
    refusals,
)
from wolfstream.service.web.routes import handlers

_SAMPLES, _ASSET, _PREDICT, _LABELS = (
    f"/v1/models/{{name}}/{call}" for call in ("samples", "asset", "predict", "labels")
)
# Parsing an empty query takes as long as decoding a row.
_NO_QUERY: Mapping[str, str] = {}
_REFUSED = (
    *BODY_REFUSALS,
    *(UnknownModel, Follows, NoSuchHead, QuotaExceeded, ModelBroken, MemoryFull),
)
_FULL = QueueFull, ModelsFull, StorageFailed
_OF_LEARN, _OF_PREDICT, _OF_LABELS = declared(LEARN), declared(PREDICT), declared(LABELS)


def add_learning(
    app: FastAPI, engine: Serving, settings: Settings, memory: MemoryBudget
) -> dict[str, Endpoint]:
    """Add the routes; their endpoints by path."""
    of_learning = LEARNED | refusals(*_REFUSED, AnotherState, KeyReused, *_FULL)
    labelled = {200: answer("Labelled", "What became of each label; what is learned is durable.")}
    of_labels = labelled | refusals(*_REFUSED, AnotherState, *_FULL)

    @app.post(_SAMPLES, tags=["learning"], openapi_extra=LEARN, responses=of_learning)
    async def learn(request: Request, name: str) -> Response:
        """Learn samples in order, with the working set, or for a head that is fitted on request."""
        return await _learn(request, name, "samples")

    @app.post(_ASSET, tags=["learning"], openapi_extra=LEARN, responses=of_learning)
    async def learn_asset(request: Request, name: str) -> Response:
        """Learn samples in order, with a step of ASSET for each."""
        return await _learn(request, name, "asset")

    async def _learn(request: Request, name: str, call: LearningCall) -> Response:
        conditions = read_conditions(request.scope, _OF_LEARN, settings.wait_seconds)
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
        learned, status, headers = await acknowledged(waiting, durable, preference)
        learned = with_warnings(learned, warnings)
        return respond(request, body_format, learned, status, headers, lease)

    of_predicting = add_predicting(app, engine, settings, memory)

    @app.post(_LABELS, tags=["learning"], openapi_extra=LABELS, responses=of_labels)
    async def label(request: Request, name: str) -> Response:
        """Learn rows that were predicted with `ids`, in the order of their labels.

        A request is not refused for single ids: `results` says for each what became of its label.
        `learned`: its row is learned; `replayed`: it was before, with this label; `conflict`: it
        was before, with another one; `expired`: its row waited too long, or there were too many;
        `unknown`: no row was predicted under it, or that was long ago. A label that is sent again
        is not learned again, so a request without a response can be sent again.
        """
        conditions = read_conditions(request.scope, _OF_LABELS, settings.wait_seconds)
        with memory.lease() as lease:
            body_format = format_of_body(request.headers.get("content-type"))
            data = await read_body(request, settings.body_bytes, lease)
            model = engine.model(name)
            labels = await decode_late_labels(body_format, data, settings, model.spec, lease)
            del data
            await engine.compiled(model, None)
        grant: Grant = request.scope["state"]["grant"]
        learned = await handlers.label(engine, grant, model, labels, conditions.expected)
        return respond(request, body_format, learned, lease=lease)

    return {_SAMPLES: learn, _ASSET: learn_asset, _LABELS: label} | of_predicting


def add_predicting(
    app: FastAPI, engine: Predicting, settings: Settings, memory: MemoryBudget
) -> dict[str, Endpoint]:
    """Add the route that predicts; its endpoint by path."""
    predicted = {200: answer("Prediction", "The predictions of the model of this sequence.")}
    of_predicting = predicted | refusals(
        *_REFUSED, AnotherState, IdTaken, Untrained, NotReached, QueueFull, StorageFailed
    )

    @app.post(_PREDICT, tags=["predicting"], openapi_extra=PREDICT, responses=of_predicting)
    async def predict(request: Request, name: str) -> Response:
        """Predict labels, or numbers of a regression, with the decisions of the current model."""
        check_query(request.scope["query_string"], _OF_PREDICT)
        query = request.query_params if request.scope["query_string"] else _NO_QUERY
        awaited = read_min_sequence(query.get("min_sequence"))
        max_lag = max_lag_of(request.scope["query_string"])
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

    return {_PREDICT: predict}

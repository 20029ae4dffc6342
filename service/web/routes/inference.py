"""The routes of the Open Inference Protocol."""

import asyncio
from enum import Enum
from functools import partial
from importlib.metadata import version
from typing import Annotated

import numpy as np
from fastapi import FastAPI, Path, Request, Response

from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.serving import Predicting
from wolfstream.service.errors import (
    AnotherState,
    MemoryFull,
    ModelBroken,
    NoSuchHead,
    NotReached,
    NotReady,
    QuotaExceeded,
    ServerFailed,
    UnknownModel,
    Untrained,
)
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.samples.validation import Question
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.body import receive_inference, respond_binary, respond_json
from wolfstream.service.web.formats.inference import VERSION, metadata, write_inference
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.moments import tag_of
from wolfstream.service.web.formats.paths import INFERENCE_PREFIX as PREFIX
from wolfstream.service.web.formats.pieces import counted_bytes
from wolfstream.service.web.formats.query import check_query
from wolfstream.service.web.formats.wire import JSON
from wolfstream.service.web.layers.shortcut import Endpoint
from wolfstream.service.web.openapi.operations import (
    BODY_REFUSALS,
    INFER,
    INFERRED,
    Responses,
    answer,
    refusals,
)
from wolfstream.service.web.routes import handlers
from wolfstream.service.web.routes.health import check_alive, check_ready
from wolfstream.solver.prepare.named_rows import Rows, named_rows

EXTENSIONS = ("binary_tensor_data", "parameters")

_MODEL = f"{PREFIX}/models/{{name}}"
_OF_VERSION = f"{_MODEL}/versions/{{version}}"
_TAGS: list[str | Enum] = ["inference protocol"]
Version = Annotated[str, Path(json_schema_extra={"enum": [VERSION]})]


def add_inference(
    app: FastAPI, engine: Engine, settings: Settings, memory: MemoryBudget
) -> dict[str, Endpoint]:
    """Add the protocol's routes; those endpoints by path that carry the traffic."""
    _add_server(app, engine)
    _add_models(app, engine, memory)
    return add_predictions(app, engine, settings, memory)


def add_predictions(
    app: FastAPI, engine: Predicting, settings: Settings, memory: MemoryBudget
) -> dict[str, Endpoint]:
    """Add the routes that predict; those endpoints by path that carry the traffic."""
    of_predicting = INFERRED | refusals(
        *BODY_REFUSALS,
        *(UnknownModel, NoSuchHead, Untrained, QuotaExceeded, NotReached, ModelBroken),
        *(AnotherState, MemoryFull),
        inference=True,
    )

    @app.post(f"{_MODEL}/infer", tags=_TAGS, openapi_extra=INFER, responses=of_predicting)
    async def infer(request: Request, name: str) -> Response:
        """Predict."""
        return await _infer(request, engine.model(name))

    @app.post(f"{_OF_VERSION}/infer", tags=_TAGS, openapi_extra=INFER, responses=of_predicting)
    async def infer_of_version(request: Request, name: str, version: Version) -> Response:
        """Predict with a version."""
        return await _infer(request, _of_version(engine, name, version))

    async def _infer(request: Request, model: Model) -> Response:
        check_query(request.scope["query_string"], ())
        named = _has_names(await engine.view(model, model.spec.serve, None))
        with memory.lease() as lease:
            wanted = await receive_inference(request, settings, named, lease)
            grant, question = request.state.grant, Question(wanted.rows)
            predicted = await handlers.predict(
                engine, grant, model, wanted.head, wanted.awaited, question, lease
            )
            large = counted_bytes(predicted) > 0
            write = partial(write_inference, wanted, predicted)
            response, tensors = await asyncio.to_thread(write) if large else write()
            tag = dict(tag_of(predicted))
            if wanted.binary:
                return respond_binary(response, tensors, lease, tag)
            return respond_json(response, lease, tag)

    return {f"{_MODEL}/infer": infer}


def _add_server(app: FastAPI, engine: Engine) -> None:
    server = {"name": "wolfstream", "version": version("wolfstream"), "extensions": EXTENSIONS}
    not_ready = refusals(NotReady, inference=True)

    @app.get(PREFIX, tags=_TAGS, responses=_of("Server"))
    async def inference_server() -> Response:
        """The server, its version and its extensions."""
        return respond_json(server)

    failed = refusals(ServerFailed, inference=True)

    @app.get(f"{PREFIX}/health/live", tags=_TAGS, responses=_of("Live") | failed)
    async def inference_live() -> Response:
        """Whether the server responds at all."""
        check_alive(engine)
        return respond_json({"live": True})

    @app.get(f"{PREFIX}/health/ready", tags=_TAGS, responses=_of("Ready") | not_ready)
    async def inference_ready() -> Response:
        """Whether models are recovered and numerics compiled."""
        check_ready(engine)
        return respond_json({"ready": True})


def _add_models(app: FastAPI, engine: Engine, memory: MemoryBudget) -> None:
    of_model = _of("Model") | refusals(UnknownModel, inference=True)
    of_ready = _of("ModelReady") | refusals(
        UnknownModel, Untrained, ModelBroken, MemoryFull, inference=True
    )

    @app.get(_MODEL, tags=_TAGS, responses=of_model)
    async def inference_model(name: str) -> Response:
        """A model's inputs and outputs."""
        return await _describe(engine.model(name))

    @app.get(_OF_VERSION, tags=_TAGS, responses=of_model)
    async def inference_model_of_version(name: str, version: Version) -> Response:
        """The inputs and outputs of a model's version."""
        return await _describe(_of_version(engine, name, version))

    async def _describe(model: Model) -> Response:
        # A model may have many names.
        return await asyncio.to_thread(lambda: respond_json(metadata(model)))

    @app.get(f"{_MODEL}/ready", tags=_TAGS, responses=of_ready)
    async def inference_model_ready(name: str) -> Response:
        """Whether a model can predict."""
        return await _ready(engine.model(name))

    @app.get(f"{_OF_VERSION}/ready", tags=_TAGS, responses=of_ready)
    async def inference_model_ready_of_version(name: str, version: Version) -> Response:
        """Whether a model's version can predict."""
        return await _ready(_of_version(engine, name, version))

    async def _ready(model: Model) -> Response:
        with memory.lease() as lease:
            await handlers.check_predicts(engine, model, _row_of_zeros(model), lease)
        return respond_json({"name": model.name, "ready": True})


def _has_names(published: ModelView) -> bool:
    schema = published.rows.form.schema
    return published.rows.names is not None or (schema is not None and schema.named)


def _row_of_zeros(model: Model) -> Rows:
    """Return a row that the model can predict if it can predict any."""
    published = model.published
    if published.rows.names is not None:
        return named_rows([{}])
    return np.zeros((1, published.rows.dimension or 1))


def _of(kind: str) -> Responses:
    return {200: answer(f"Inference{kind}", "Done.", (JSON.media_type,))}


def _of_version(engine: Predicting, name: str, version: str) -> Model:
    """Return a version of a model. Raises NotReady, UnknownModel."""
    model = engine.model(name)
    if version != VERSION:
        raise UnknownModel(
            f"model {name!r} has no version {version[:40]!r}; its only version is {VERSION}, "
            "what it has learned so far"
        )
    return model

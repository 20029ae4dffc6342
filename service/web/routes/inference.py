"""The endpoints of the Open Inference Protocol."""

import asyncio
from functools import partial
from importlib.metadata import version
from typing import Annotated

import numpy as np
from fastapi import Path, Request, Response

from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.serving import PredictingEngine
from wolfstream.service.errors import UnknownModel
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.samples.validation import Question
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.body import receive_inference, respond_binary, respond_json
from wolfstream.service.web.formats.chunks import large_response_bytes
from wolfstream.service.web.formats.inference import VERSION, metadata, write_inference
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.revisions import etag_header
from wolfstream.service.web.routes import handlers
from wolfstream.service.web.routes.endpoints import Endpoints, by_name
from wolfstream.service.web.routes.server import check_alive, check_ready
from wolfstream.solver.prepare.named_rows import Rows, named_rows

EXTENSIONS = ("binary_tensor_data", "parameters")
Version = Annotated[str, Path(json_schema_extra={"enum": [VERSION]})]


def inference_endpoints(engine: Engine, settings: Settings, memory: MemoryBudget) -> Endpoints:
    """Return all endpoints of the protocol."""
    return {
        **_server_endpoints(engine),
        **_model_endpoints(engine, memory),
        **infer_endpoints(engine, settings, memory),
    }


def infer_endpoints(
    engine: PredictingEngine, settings: Settings, memory: MemoryBudget
) -> Endpoints:
    """Return the endpoints of the protocol that predict."""

    async def infer(request: Request, name: str) -> Response:
        """Predict."""
        return await _infer(request, engine.model(name))

    async def infer_of_version(request: Request, name: str, version: Version) -> Response:
        """Predict with a version."""
        return await _infer(request, _model_of_version(engine, name, version))

    async def _infer(request: Request, model: Model) -> Response:
        named = _has_names(await engine.view(model, model.spec.serve, None))
        with memory.lease() as lease:
            wanted = await receive_inference(request, settings, named, lease)
            grant, question = request.state.grant, Question(wanted.rows)
            predicted = await handlers.predict(
                engine, grant, model, wanted.head, wanted.awaited, question, lease
            )
            large = large_response_bytes(predicted) > 0
            write = partial(write_inference, wanted, predicted)
            response, tensors = await asyncio.to_thread(write) if large else write()
            tag = dict(etag_header(predicted))
            if wanted.binary:
                return respond_binary(response, tensors, lease, tag)
            return respond_json(response, lease, tag)

    return by_name(infer, infer_of_version)


def _server_endpoints(engine: Engine) -> Endpoints:
    server = {"name": "wolfstream", "version": version("wolfstream"), "extensions": EXTENSIONS}

    async def inference_server() -> Response:
        """Return the name of the server, its version and its extensions."""
        return respond_json(server)

    async def inference_live() -> Response:
        """Return whether the server is alive."""
        check_alive(engine)
        return respond_json({"live": True})

    async def inference_ready() -> Response:
        """Return whether models are recovered and numerics compiled."""
        check_ready(engine)
        return respond_json({"ready": True})

    return by_name(inference_server, inference_live, inference_ready)


def _model_endpoints(engine: Engine, memory: MemoryBudget) -> Endpoints:
    async def inference_model(name: str) -> Response:
        """Describe a model's inputs and outputs."""
        return await _describe(engine.model(name))

    async def inference_model_of_version(name: str, version: Version) -> Response:
        """Describe the inputs and outputs of a model's version."""
        return await _describe(_model_of_version(engine, name, version))

    async def _describe(model: Model) -> Response:
        # A model may have many inputs, and describing them takes a while.
        return await asyncio.to_thread(lambda: respond_json(metadata(model)))

    async def inference_model_ready(name: str) -> Response:
        """Return whether a model can predict."""
        return await _ready(engine.model(name))

    async def inference_model_ready_of_version(name: str, version: Version) -> Response:
        """Return whether a model's version can predict."""
        return await _ready(_model_of_version(engine, name, version))

    async def _ready(model: Model) -> Response:
        with memory.lease() as lease:
            await handlers.check_predicts(engine, model, _row_of_zeros(model), lease)
        return respond_json({"name": model.name, "ready": True})

    return by_name(
        inference_model,
        inference_model_of_version,
        inference_model_ready,
        inference_model_ready_of_version,
    )


def _has_names(published: ModelView) -> bool:
    schema = published.rows.form.schema
    return published.rows.names is not None or (schema is not None and schema.named)


def _row_of_zeros(model: Model) -> Rows:
    """Return a row that the model can predict if it can predict at all."""
    published = model.published
    if published.rows.names is not None:
        return named_rows([{}])
    return np.zeros((1, published.rows.dimension or 1))


def _model_of_version(engine: PredictingEngine, name: str, version: str) -> Model:
    """Return the model, if it has this version. Raises NotReady, UnknownModel."""
    model = engine.model(name)
    if version != VERSION:
        raise UnknownModel(
            f"model {name!r} has no version {version[:40]!r}; its only version is {VERSION}, "
            "what it has learned so far"
        )
    return model

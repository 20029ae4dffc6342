"""The routes of the Open Inference Protocol."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np
from fastapi import FastAPI, Request, Response

from service import api
from service.engine import Engine
from service.errors import NotReady, UnknownModel
from service.inference import (
    JSON_LENGTH_HEADER,
    PREFIX,
    VERSION,
    Inference,
    metadata,
    read_inference,
    write_inference,
)
from service.keys import Grant
from service.model import Model
from service.names import Rows, n_rows, named_rows
from service.wire import JSON

EXTENSIONS = ("binary_tensor_data", "parameters")

ReadBody: TypeAlias = Callable[[Request, Callable[[bytes], Inference]], Awaitable[Inference]]


def add_inference(app: FastAPI, engine: Engine, read: ReadBody) -> None:
    """Add the protocol's routes.

    read: the body of a request, bounded, through a decoder.
    """
    told = {"name": "wolfstream", "version": version("wolfstream"), "extensions": EXTENSIONS}

    async def server(_: Request) -> Response:
        return _json(told)

    async def live(_: Request) -> Response:
        return _json({"live": True})

    async def ready(_: Request) -> Response:
        if not engine.accepting:
            raise NotReady(f"the server is {engine.phase}")
        return _json({"ready": True})

    async def model_metadata(request: Request) -> Response:
        model = _model(engine, request)
        return await asyncio.to_thread(lambda: _json(metadata(model)))  # of many names, maybe

    async def model_ready(request: Request) -> Response:
        model = _model(engine, request)
        await api.predict(engine, model, None, None, _row_of_zeros(model))
        return _json({"name": model.name, "ready": True})

    async def infer(request: Request) -> Response:
        model = _model(engine, request)
        named = model.published.names is not None
        length = request.headers.get(JSON_LENGTH_HEADER)
        wanted = await read(request, lambda body: read_inference(body, length, named))
        grant: Grant = request.state.grant
        grant.check_quota()
        grant.spend(n_rows(wanted.rows))
        answer = await api.predict(engine, model, wanted.head, wanted.min_sequence, wanted.rows)
        content, json_length = write_inference(wanted, answer)
        if json_length == len(content):
            return Response(content, media_type=JSON.media_type)
        headers = {JSON_LENGTH_HEADER: str(json_length)}
        return Response(content, headers=headers, media_type="application/octet-stream")

    app.add_route(PREFIX, server)
    app.add_route(f"{PREFIX}/health/live", live)
    app.add_route(f"{PREFIX}/health/ready", ready)
    for path in (f"{PREFIX}/models/{{name}}", f"{PREFIX}/models/{{name}}/versions/{{version}}"):
        app.add_route(path, model_metadata)
        app.add_route(f"{path}/ready", model_ready)
        app.add_route(f"{path}/infer", infer, methods=["POST"])


def speaks(path: str) -> bool:
    """Whether what is asked for under this path is asked in the protocol."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def _json(data: dict[str, Any]) -> Response:
    return Response(JSON.encode(data), media_type=JSON.media_type)


def _model(engine: Engine, request: Request) -> Model:
    """The model, and the version if there is one, of a path."""
    model = engine.model(request.path_params["name"])
    wanted = request.path_params.get("version", VERSION)
    if wanted != VERSION:
        raise UnknownModel(
            f"model {model.name!r} has no version {wanted[:40]!r}; its one version is {VERSION}, "
            "what it has learned so far"
        )
    return model


def _row_of_zeros(model: Model) -> Rows:
    """A row that can be predicted if any can."""
    published = model.published
    if published.names is not None:
        return named_rows([{}])
    return np.zeros((1, published.dimension or 1))

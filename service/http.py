"""HTTP: routes, status words, bodies. The only place that knows a status code."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response, WebSocket
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from service import api, errors
from service.docs_page import add_docs
from service.engine import Engine
from service.errors import NotReady, Refusal, TooLarge, Unavailable
from service.inference import error_body
from service.inference_routes import add_inference, speaks
from service.lines import Lines, with_lines
from service.openapi import DESCRIPTION, TAGS, answers, completed, problems, spec_body
from service.samples import read_rows, read_samples
from service.settings import Settings
from service.spec import HeadName
from service.stream import Session, Streams
from service.wire import (
    JSON,
    PROBLEM_MEDIA_TYPE,
    Format,
    format_of_answer,
    format_of_body,
    problem,
)

T = TypeVar("T")

# Decoding this many bytes takes about a millisecond.
_INLINE_BYTES = 1 << 17
# A spec is a few hundred bytes.
_SPEC_BYTES = 1 << 16

_STATUS: dict[type[Refusal], int] = {
    errors.Unreadable: 400,
    errors.UnknownModel: 404,
    errors.ModelExists: 409,
    errors.NoSuchHead: 409,
    errors.Untrained: 409,
    errors.TooLarge: 413,
    errors.UnsupportedFormat: 415,
    errors.Invalid: 422,
    errors.Unavailable: 503,
}


class Application(FastAPI):
    """FastAPI, with the routes that it does not serve itself in its OpenAPI."""

    def openapi(self) -> dict[str, Any]:
        """The whole interface."""
        return self.openapi_schema or completed(super().openapi())


def create_app(engine: Engine, settings: Settings, streams: Streams) -> FastAPI:
    """The ASGI application over an engine that someone else starts and stops."""
    app = Application(
        title="wolfstream",
        version=version("wolfstream"),
        description=DESCRIPTION,
        license_info={"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        openapi_tags=TAGS,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,
        redoc_url=None,
    )
    _add_errors(app)
    _add_learning(app, engine, settings)
    _add_health(app, engine)
    _add_models(app, engine, settings)
    _add_stream(app, engine, settings, streams)
    add_docs(app)
    # A tensor for each of many names takes longer to read than an array of as many bytes.
    inline_bytes = _INLINE_BYTES // 16
    add_inference(app, engine, partial(_checked, settings.body_bytes, inline_bytes))
    return app


def _add_health(app: FastAPI, engine: Engine) -> None:
    status = answers("Status", "Yes.", (JSON.media_type,))

    @app.get("/livez", tags=["health"], responses={200: status})
    async def livez() -> dict[str, str]:
        """200 while the process answers at all."""
        return {"status": "alive"}

    @app.get("/readyz", tags=["health"], responses={200: status, **problems(503)})
    async def readyz() -> dict[str, str]:
        """200 once models are recovered and compiled, until the server stops."""
        if not engine.accepting:
            raise NotReady("recovering, compiling or stopping")
        return {"status": "ready"}


def _add_models(app: FastAPI, engine: Engine, settings: Settings) -> None:
    described = answers("Model", "The model.")
    listed = answers("Models", "All models by name.")

    @app.get("/v1/models", tags=["models"], responses={200: listed, **problems(503)})
    async def list_models(request: Request) -> Response:
        """All models with their sequences."""
        return _respond(request, JSON, api.list_models(engine))

    @app.get("/v1/models/{name}", tags=["models"], responses={200: described, **problems(404, 503)})
    async def describe_model(request: Request, name: str) -> Response:
        """A model: spec, sequence, classes, size, objective, gap, scores."""
        return _respond(request, JSON, engine.model(name).describe())

    @app.put(
        "/v1/models/{name}",
        tags=["models"],
        status_code=201,
        openapi_extra=spec_body(),
        responses={
            200: answers("Model", "It exists with this spec."),
            201: answers("Model", "It is new."),
            **problems(400, 409, 413, 415, 422, 503),
        },
    )
    async def create_model(request: Request, name: str) -> Response:
        """Create a model; `{}` is a spec with every default."""
        data = await _read_body(request, min(settings.body_bytes, _SPEC_BYTES))
        body_format = format_of_body(request.headers.get("content-type") if data else None)
        body = body_format.decode(data) if data else {}
        description, new = await api.create(engine, name, body)
        return _respond(request, body_format, description, 201 if new else 200)

    @app.delete("/v1/models/{name}", tags=["models"], status_code=204, responses=problems(404, 503))
    async def delete_model(name: str) -> Response:
        """Forget a model and everything that it learned."""
        await engine.delete(name)
        return Response(status_code=204)


def _add_learning(app: FastAPI, engine: Engine, settings: Settings) -> None:
    """The routes that carry the traffic, without FastAPI's work on each request around them.

    They read their bodies themselves in any case; `service.openapi` describes them.
    """

    def learning(head: HeadName) -> Callable[[Request], Awaitable[Response]]:
        async def learn(request: Request) -> Response:
            model_name = request.path_params["name"]
            body_format, samples = await _read(request, settings.body_bytes, read_samples, True)
            answer = await api.learn(engine, engine.model(model_name), head, samples)
            return _respond(request, body_format, answer)

        return learn

    async def predict(request: Request) -> Response:
        model_name, query = request.path_params["name"], request.query_params
        min_sequence = api.read_min_sequence(query.get("min_sequence"))
        body_format, rows = await _read(request, settings.body_bytes, read_rows, False)
        model = engine.model(model_name)
        answer = await api.predict(engine, model, query.get("head"), min_sequence, rows)
        return _respond(request, body_format, answer)

    app.add_route("/v1/models/{name}/samples", learning("working_set"), methods=["POST"])
    app.add_route("/v1/models/{name}/asset", learning("asset"), methods=["POST"])
    app.add_route("/v1/models/{name}/predict", predict, methods=["POST"])


def _add_stream(app: FastAPI, engine: Engine, settings: Settings, streams: Streams) -> None:
    @app.websocket("/v1/models/{name}/stream")
    async def stream(websocket: WebSocket, name: str) -> None:
        """Learn, asset and predict over one connection."""
        try:
            model = engine.model(name)
        except Refusal as error:
            await websocket.send_denial_response(_problem_response(error))
            return
        await streams.serve(
            Session(websocket, engine, model, settings.window, lambda e: problem(e, _status_of(e)))
        )


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refuse(request: Request, error: Refusal) -> Response:
        lines = getattr(request.state, "line_of_row", None)
        told = _problem_response(with_lines(error, lines) if lines else error)
        return _in_protocol(request, told)

    @app.exception_handler(HTTPException)
    async def refuse_route(request: Request, error: HTTPException) -> Response:
        slug = {404: "no-such-path", 405: "method-not-allowed"}.get(error.status_code, "http")
        headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
        told = _plain_problem(slug, error.detail, error.status_code, headers)
        return _in_protocol(request, told)

    @app.exception_handler(Exception)
    async def fail(request: Request, _: Exception) -> Response:
        told = _plain_problem("internal", "the server made a mistake", 500)
        return _in_protocol(request, told)


def _allowed(request: Request) -> str:
    """The methods of all routes of a path; Starlette names those of the first."""
    matching = [
        route
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    return ", ".join(sorted({method for route in matching for method in route.methods or ()}))


def _status_of(error: Refusal) -> int:
    """The status of the nearest class in the error tree."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def _problem_response(error: Refusal) -> Response:
    status = _status_of(error)
    headers = {}
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(error.retry_after_seconds)
    return Response(JSON.encode(problem(error, status)), status, headers, PROBLEM_MEDIA_TYPE)


def _plain_problem(slug: str, detail: str, status: int, headers: Any = None) -> Response:
    """A problem that no error of the domain stands for."""
    body = {"type": f"urn:wolfstream:{slug}", "title": detail, "status": status, "detail": detail}
    return Response(JSON.encode(body), status, headers, PROBLEM_MEDIA_TYPE)


def _in_protocol(request: Request, told: Response) -> Response:
    """A problem as clients of the Open Inference Protocol expect it, if one has asked."""
    if not speaks(request.url.path):
        return told
    del told.headers["content-length"], told.headers["content-type"]
    body = JSON.encode(error_body(JSON.decode(bytes(told.body))))
    return Response(body, told.status_code, dict(told.headers), JSON.media_type)


async def _read(
    request: Request, most_bytes: int, check: Callable[[Any], T], labelled: bool
) -> tuple[Format, T]:
    """The body, decoded and checked; the lines of its rows, if it has any, are kept."""
    body_format = format_of_body(request.headers.get("content-type"), labelled)

    def read(data: bytes) -> T:
        plain = body_format.decode(data)
        if isinstance(plain, Lines):
            request.state.line_of_row = plain.line_of_row
        return check(plain)

    return body_format, await _checked(most_bytes, _INLINE_BYTES, request, read)


async def _checked(
    most_bytes: int, inline_bytes: int, request: Request, check: Callable[[bytes], T]
) -> T:
    """The body through a decoder; a large one beside the event loop."""
    data = await _read_body(request, most_bytes)
    if len(data) > inline_bytes:
        return await asyncio.to_thread(check, data)
    return check(data)


async def _read_body(request: Request, most_bytes: int) -> bytes:
    """The body, never more of it in memory than the limit. Raises TooLarge."""
    declared = request.headers.get("content-length")
    if declared is not None and declared.isdecimal() and int(declared) <= most_bytes:
        return await request.body()
    parts, size = [], 0
    if declared is None:
        async for part in request.stream():
            size += len(part)
            if size > most_bytes:
                break
            parts.append(part)
        else:
            return b"".join(parts)
    raise TooLarge(f"a body may have {most_bytes} bytes; send smaller batches")


def _respond(request: Request, body_format: Format, data: Any, status: int = 200) -> Response:
    answer_format = format_of_answer(request.headers.get("accept"), body_format)
    return Response(answer_format.encode(data), status, media_type=answer_format.media_type)

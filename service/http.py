"""HTTP: routes, status words, bodies. The only place that knows a status code."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response, WebSocket
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route

from service import api, errors
from service.content_encoding import ACCEPTED, inflate, is_gzipped
from service.docs_page import add_docs
from service.engine import Engine
from service.errors import (
    Invalid,
    NotReady,
    Refusal,
    TooLarge,
    TooManyConnections,
    Unauthenticated,
    Unavailable,
    UnsupportedFormat,
)
from service.guard import Guard
from service.inference import Inference, error_body
from service.inference_routes import add_inference, speaks
from service.keys import Grant, KeyRing
from service.lines import Lines, with_lines
from service.names import n_rows
from service.openapi import (
    DESCRIPTION,
    NO_BODY,
    TAGS,
    answers,
    completed,
    problems,
    spec_body,
)
from service.refits import Job
from service.request_size import check_rows, check_size
from service.samples import read_rows, read_samples
from service.settings import Settings
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
# A tensor for each of many names takes longer to read than an array of as many bytes.
_INLINE_TENSOR_BYTES = _INLINE_BYTES // 16
# A spec is a few hundred bytes.
_SPEC_BYTES = 1 << 16

_STATUS: dict[type[Refusal], int] = {
    errors.Unreadable: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.UnknownModel: 404,
    errors.UnknownJob: 404,
    errors.TooSlow: 408,
    errors.TooManyModels: 409,
    errors.ModelExists: 409,
    errors.NoSuchHead: 409,
    errors.Untrained: 409,
    errors.TooLarge: 413,
    errors.UnsupportedFormat: 415,
    errors.Invalid: 422,
    errors.RefitFailed: 422,
    errors.QuotaExceeded: 429,
    errors.HeadTooLarge: 431,
    errors.Unavailable: 503,
}


class Application(FastAPI):
    """FastAPI, with the routes that it does not serve itself in its OpenAPI."""

    def openapi(self) -> dict[str, Any]:
        """The whole interface."""
        return self.openapi_schema or completed(super().openapi())


def create_app(engine: Engine, settings: Settings, streams: Streams, ring: KeyRing) -> FastAPI:
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
    app.add_middleware(Guard, ring=ring, refuse=problem_response)
    _add_errors(app)
    _add_learning(app, engine, settings)
    _add_refits(app, engine)
    _add_health(app, engine)
    _add_models(app, engine, settings)
    _add_stream(app, engine, settings, streams)
    add_docs(app)
    add_inference(app, engine, partial(_decoded_tensors, settings))
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

    @app.get("/v1/models", tags=["models"], responses={200: listed})
    async def list_models(request: Request) -> Response:
        """All models with their sequences."""
        return _respond(request, JSON, api.list_models(engine, request.state.grant.prefix))

    @app.get("/v1/models/{name}", tags=["models"], responses={200: described, **problems(404)})
    async def describe_model(request: Request, name: str) -> Response:
        """A model: spec, sequence, and how each head stands: classes, size, steps, gap, scores."""
        return _respond(request, JSON, engine.model(name).describe())

    @app.put(
        "/v1/models/{name}",
        tags=["models"],
        status_code=201,
        openapi_extra=spec_body(),
        responses={
            200: answers("Model", "It exists with this spec."),
            201: answers("Model", "It is new."),
            **problems(400, 409, 413, 415, 422),
        },
    )
    async def create_model(request: Request, name: str) -> Response:
        """Create a model of a task, a kernel and heads; `{}` is a spec with every default."""
        data = await _read_body(request, min(settings.body_bytes, _SPEC_BYTES))
        body_format = format_of_body(request.headers.get("content-type") if data else None)
        body = body_format.decode(data) if data else {}
        description, new = await api.create(engine, name, body)
        return _respond(request, body_format, description, 201 if new else 200)

    @app.delete(
        "/v1/models/{name}",
        tags=["models"],
        status_code=204,
        responses=problems(404),
    )
    async def delete_model(name: str) -> Response:
        """Forget a model and everything that it learned."""
        await engine.delete(name)
        return Response(status_code=204)


def _add_learning(app: FastAPI, engine: Engine, settings: Settings) -> None:
    """The routes that carry the traffic, without FastAPI's work on each request around them.

    They read their bodies themselves in any case; `service.openapi` describes them.
    """

    def learning(call: api.LearningCall) -> Callable[[Request], Awaitable[Response]]:
        async def learn(request: Request) -> Response:
            body_format, data = await _receive(request, settings.body_bytes, labelled=True)
            model = engine.model(request.path_params["name"])
            samples = await _decoded(
                request,
                body_format,
                data,
                settings,
                lambda body: read_samples(body, model.spec.task),
            )
            grant: Grant = request.state.grant
            grant.check_quota()
            answer = api.learn(engine, model, call, samples)
            grant.spend(len(samples.y))
            return _respond(request, body_format, await answer)

        return learn

    async def predict(request: Request) -> Response:
        model_name, query = request.path_params["name"], request.query_params
        grant: Grant = request.state.grant
        min_sequence = api.read_min_sequence(query.get("min_sequence"))
        body_format, data = await _receive(request, settings.body_bytes, labelled=False)
        rows = await _decoded(request, body_format, data, settings, read_rows)
        grant.check_quota()
        model = engine.model(model_name)
        grant.spend(n_rows(rows))
        answer = await api.predict(engine, model, query.get("head"), min_sequence, rows)
        return _respond(request, body_format, answer)

    app.add_route("/v1/models/{name}/samples", learning("samples"), methods=["POST"])
    app.add_route("/v1/models/{name}/asset", learning("asset"), methods=["POST"])
    app.add_route("/v1/models/{name}/predict", predict, methods=["POST"])


def _add_refits(app: FastAPI, engine: Engine) -> None:
    one, several = answers("Job", "The job."), answers("Jobs", "The jobs.")

    @app.post(
        "/v1/models/{name}/refit",
        tags=["refitting"],
        status_code=202,
        openapi_extra=NO_BODY,
        responses={
            202: answers("Job", "It is queued, or runs."),
            **problems(400, 404, 409, 413, 415, 422),
        },
    )
    async def refit(request: Request, name: str) -> Response:
        """Fit the semiparametric head to the model's window of recent samples, as a job.

        The window is taken when the job begins to run. While a refit of the model is queued or
        runs, it is the answer to further requests. The body is empty.
        """
        if await _read_body(request, _SPEC_BYTES) not in (b"", b"{}"):
            raise Invalid("a refit takes no body; what it fits is in the model's spec")
        answer = _told(api.refit(engine, engine.model(name)))
        response = _respond(request, JSON, answer, 202)
        response.headers["Location"] = answer["href"]
        return response

    @app.get(
        "/v1/models/{name}/jobs", tags=["refitting"], responses={200: several, **problems(404)}
    )
    async def list_jobs(request: Request, name: str) -> Response:
        """The model's refits that are remembered, newest first."""
        jobs = engine.refits.jobs(engine.model(name))
        return _respond(request, JSON, {"jobs": [_told(job) for job in jobs]})

    @app.get(
        "/v1/models/{name}/jobs/{job}",
        tags=["refitting"],
        responses={200: one, **problems(404)},
    )
    async def describe_job(request: Request, name: str, job: str) -> Response:
        """A refit: how far it is, and how it ended."""
        return _respond(request, JSON, _told(engine.refits.job(engine.model(name), job)))


def _told(job: Job) -> dict[str, Any]:
    return api.describe_job(job, lambda error: problem(error, _status_of(error)))


def _add_stream(app: FastAPI, engine: Engine, settings: Settings, streams: Streams) -> None:
    @app.websocket("/v1/models/{name}/stream")
    async def stream(websocket: WebSocket, name: str) -> None:
        """Learn, asset and predict over one connection."""
        try:
            model = engine.model(name)
        except Refusal as error:
            await websocket.send_denial_response(problem_response(error, websocket.url.path))
            return
        await streams.serve(
            Session(
                websocket,
                engine,
                model,
                websocket.state.grant,
                settings,
                lambda e: problem(e, _status_of(e)),
            )
        )


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refuse(request: Request, error: Refusal) -> Response:
        lines = getattr(request.state, "line_of_row", None)
        return problem_response(with_lines(error, lines) if lines else error, request.url.path)

    @app.exception_handler(ClientDisconnect)
    async def forget(_: Request, __: ClientDisconnect) -> Response:
        return Response()  # to nobody

    @app.exception_handler(HTTPException)
    async def refuse_route(request: Request, error: HTTPException) -> Response:
        slug = {404: "no-such-path", 405: "method-not-allowed"}.get(error.status_code, "http")
        headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
        told = _plain_problem(slug, error.detail, error.status_code, headers)
        return _in_protocol(request.url.path, told)

    @app.exception_handler(Exception)
    async def fail(request: Request, _: Exception) -> Response:
        told = _plain_problem("internal", "the server made a mistake", 500)
        return _in_protocol(request.url.path, told)


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


def problem_response(error: Refusal, path: str) -> Response:
    """The answer to a request for a path that is refused; "" where it did not get so far."""
    status = _status_of(error)
    headers = {}
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, TooManyConnections):
        headers["Connection"] = "close"
    if isinstance(error, UnsupportedFormat):
        headers["Accept-Encoding"] = ACCEPTED
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="wolfstream"'
    body = JSON.encode(problem(error, status))
    return _in_protocol(path, Response(body, status, headers, PROBLEM_MEDIA_TYPE))


def _plain_problem(slug: str, detail: str, status: int, headers: Any = None) -> Response:
    """A problem that no error of the domain stands for."""
    body = {"type": f"urn:wolfstream:{slug}", "title": detail, "status": status, "detail": detail}
    return Response(JSON.encode(body), status, headers, PROBLEM_MEDIA_TYPE)


def _in_protocol(path: str, told: Response) -> Response:
    """A problem as clients of the Open Inference Protocol expect it, if one asked for the path."""
    if not speaks(path):
        return told
    del told.headers["content-length"], told.headers["content-type"]
    body = JSON.encode(error_body(JSON.decode(bytes(told.body))))
    return Response(body, told.status_code, dict(told.headers), JSON.media_type)


async def _receive(request: Request, most_bytes: int, labelled: bool) -> tuple[Format, bytes]:
    """The body and the format it is in. Raises UnsupportedFormat, TooLarge."""
    body_format = format_of_body(request.headers.get("content-type"), labelled)
    return body_format, await _read_body(request, most_bytes)


async def _decoded(
    request: Request,
    body_format: Format,
    data: bytes,
    settings: Settings,
    check: Callable[[Any], T],
) -> T:
    """The body, decoded and checked; the lines of its rows, if it has any, are kept."""

    def checked() -> T:
        plain = body_format.decode(data)
        if isinstance(plain, Lines):
            request.state.line_of_row = plain.line_of_row
        check_size(plain, settings)
        return check(plain)

    return await _run(checked, len(data) <= _INLINE_BYTES)


async def _decoded_tensors(
    settings: Settings, request: Request, check: Callable[[bytes], Inference]
) -> Inference:
    """A request of the Open Inference Protocol, decoded and checked."""
    data = await _read_body(request, settings.body_bytes)

    def checked() -> Inference:
        wanted = check(data)
        check_rows(wanted.rows, settings)
        return wanted

    return await _run(checked, len(data) <= _INLINE_TENSOR_BYTES)


async def _run(work: Callable[[], T], inline: bool) -> T:
    """What the work gives, done here or beside the event loop."""
    return work() if inline else await asyncio.to_thread(work)


async def _read_body(request: Request, most_bytes: int) -> bytes:
    """The body, unpacked, never more of it in memory than the limit. Raises TooLarge."""
    if is_gzipped(request.headers.get("content-encoding")):
        packed = await _read_bytes(request, most_bytes)
        return await asyncio.to_thread(inflate, packed, most_bytes)
    return await _read_bytes(request, most_bytes)


async def _read_bytes(request: Request, most_bytes: int) -> bytes:
    """The body as it comes, never more of it in memory than the limit. Raises TooLarge."""
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

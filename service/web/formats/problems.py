"""Turns refusals into HTTP responses; the only place that determines their statuses."""

from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route

from wolfstream.service import errors
from wolfstream.service.calls.values import Problem
from wolfstream.service.diagnostics import tracing
from wolfstream.service.errors import (
    Refusal,
    TooManyConnections,
    Unauthenticated,
    Unavailable,
    UnsupportedFormat,
)
from wolfstream.service.web.formats.content_encoding import ACCEPTED
from wolfstream.service.web.formats.inference import error_body
from wolfstream.service.web.formats.memory import RESERVE
from wolfstream.service.web.formats.paths import DOCS, MODELS, speaks_inference
from wolfstream.service.web.formats.wire import JSON, PROBLEM_MEDIA_TYPE, problem

_STATUS: dict[type[Refusal], int] = {
    errors.Unreadable: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.ForeignHost: 403,
    errors.ForeignOrigin: 403,
    errors.UnknownModel: 404,
    errors.UnknownJob: 404,
    errors.UnknownSnapshot: 404,
    errors.TooSlow: 408,
    errors.TooManyModels: 409,
    errors.ModelExists: 409,
    errors.UnusableSnapshot: 409,
    errors.IdTaken: 409,
    errors.Follows: 409,
    errors.NotFollowing: 409,
    errors.NoSuchHead: 409,
    errors.Untrained: 409,
    errors.AnotherState: 412,
    errors.TooLarge: 413,
    errors.UnsupportedFormat: 415,
    errors.NotLeader: 421,
    errors.Invalid: 422,
    errors.KeyReused: 422,
    errors.RefitFailed: 422,
    errors.QuotaExceeded: 429,
    errors.HeadTooLarge: 431,
    errors.Unavailable: 503,
    errors.ModelsFull: 507,
}


# HTTP has no status for a client that closed the connection; proxies log such requests as 499.
CLIENT_LEFT = 499


def add_problems(app: FastAPI) -> None:
    """Make an application respond to all errors with problems (RFC 9457)."""

    @app.exception_handler(Refusal)
    async def refuse(request: Request, error: Refusal) -> Response:
        origin = getattr(request.state, "origin", None)
        error.without_frames()  # of handlers, which refer to the samples and the future that failed
        return problem_response(origin.locate_errors(error) if origin else error, request.url.path)

    @app.exception_handler(MemoryError)
    async def refuse_for_memory(request: Request, _: MemoryError) -> Response:
        return problem_response(RESERVE.release(), request.url.path)

    @app.exception_handler(ClientDisconnect)
    async def end_disconnected(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=CLIENT_LEFT)  # only the log sees it

    @app.exception_handler(HTTPException)
    async def refuse_route(request: Request, error: HTTPException) -> Response:
        body, headers = _routing_problem(request, error)
        return _response(body, request.url.path, headers)

    @app.exception_handler(Exception)
    async def fail(request: Request, _: Exception) -> Response:
        # `Observer` adds the id to other responses.
        trace = tracing.current()
        headers = {tracing.REQUEST_ID: trace.request_id} if trace else {}
        detail = "the server failed in an unexpected way; its log has the request's id"
        body = _plain_problem("internal", "Internal server error", 500, detail)
        return _response(body, request.url.path, headers)


def status_of(kind: type[Refusal]) -> int:
    """Return the status of a class of refusals, or else of its nearest base class."""
    return next(_STATUS[base] for base in kind.__mro__ if base in _STATUS)


def problem_of(error: Refusal) -> Problem:
    """Return a refusal as plain data, with its status."""
    return problem(error, status_of(type(error)))


def problem_response(error: Refusal, path: str) -> Response:
    """Return the response to a refused request.

    Args:
        error: why the request was refused.
        path: path of the request; "" if the request ended before its path was known.
    """
    headers = {}
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, TooManyConnections):
        headers["Connection"] = "close"
    if isinstance(error, UnsupportedFormat):
        headers["Accept-Encoding"] = ACCEPTED
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="wolfstream"'
    return _response(problem_of(error), path, headers)


def _routing_problem(
    request: Request, error: HTTPException
) -> tuple[Problem, Mapping[str, str] | None]:
    """Return the problem and the headers for a request to a path or method without a route."""
    match error.status_code:
        case 404:
            creates = request.method == "PUT" and request.url.path.startswith(f"{MODELS}/")
            what = "this path, and a model's name has no slash" if creates else "this path"
            detail = f"nothing is served at {what}; GET {DOCS} describes what is"
            return _plain_problem("no-such-path", "There is no such path", 404, detail), None
        case 405:
            allowed = _allowed(request)
            detail = f"this path takes {allowed}; GET {DOCS} describes what each does"
            title = "The path does not take this method"
            body = _plain_problem("method-not-allowed", title, 405, detail)
            return body, {"Allow": allowed}
    return _plain_problem("http", error.detail, error.status_code, error.detail), error.headers


def _allowed(request: Request) -> str:
    """Return the methods of all routes of a path; Starlette would only name those of the first."""
    matching = [
        route
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    return ", ".join(sorted({method for route in matching for method in route.methods or ()}))


def _plain_problem(slug: str, title: str, status: int, detail: str) -> Problem:
    """Return a problem for which there is no class of refusals."""
    kind = f"urn:wolfstream:{slug}"
    return {"type": kind, "title": title, "status": status, "detail": detail}


def _response(problem: Problem, path: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response with a problem, in the form of the protocol that the path belongs to.

    The problem contains the id under which the request is logged.
    """
    status = problem["status"]
    if trace := tracing.current():
        problem = {**problem, "request_id": trace.request_id}  # reading it adds it to the headers
    if speaks_inference(path):
        return Response(JSON.content(error_body(problem)), status, headers, JSON.media_type)
    return Response(JSON.content(problem), status, headers, PROBLEM_MEDIA_TYPE)

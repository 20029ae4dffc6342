"""Refusals as answers: the only place that knows the status code of an error."""

from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route

from service import errors
from service.content_encoding import ACCEPTED
from service.errors import (
    Refusal,
    TooManyConnections,
    Unauthenticated,
    Unavailable,
    UnsupportedFormat,
)
from service.inference import error_body
from service.inference_routes import speaks
from service.lines import with_lines
from service.wire import JSON, PROBLEM_MEDIA_TYPE, problem

_STATUS: dict[type[Refusal], int] = {
    errors.Unreadable: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.UnknownModel: 404,
    errors.UnknownJob: 404,
    errors.UnknownSnapshot: 404,
    errors.TooSlow: 408,
    errors.TooManyModels: 409,
    errors.ModelExists: 409,
    errors.UnusableSnapshot: 409,
    errors.NoSuchHead: 409,
    errors.Untrained: 409,
    errors.TooLarge: 413,
    errors.UnsupportedFormat: 415,
    errors.Invalid: 422,
    errors.KeyReused: 422,
    errors.RefitFailed: 422,
    errors.QuotaExceeded: 429,
    errors.HeadTooLarge: 431,
    errors.Unavailable: 503,
}


def add_problems(app: FastAPI) -> None:
    """Let everything that goes wrong be told as a problem."""

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


def problem_of(error: Refusal) -> dict[str, Any]:
    """A refusal as plain data, with the status of the nearest class in the error tree."""
    status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    return problem(error, status)


def problem_response(error: Refusal, path: str) -> Response:
    """The answer to a request for a path that is refused; "" where it did not get so far."""
    body = problem_of(error)
    headers = {}
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, TooManyConnections):
        headers["Connection"] = "close"
    if isinstance(error, UnsupportedFormat):
        headers["Accept-Encoding"] = ACCEPTED
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="wolfstream"'
    told = Response(JSON.encode(body), body["status"], headers, PROBLEM_MEDIA_TYPE)
    return _in_protocol(path, told)


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

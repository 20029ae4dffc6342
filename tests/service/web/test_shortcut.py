"""The shortcut of the busiest calls: what it takes, and that routes and errors are the same."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wolfstream.service.errors import TooLarge, Unreadable
from wolfstream.service.web.formats.problems import add_problems
from wolfstream.service.web.transport.shortcut import Shortcut

PATH = "/v1/models/{name}/predict"


async def predict(request: Request, name: str) -> Response:
    """Answers with the model's name, or as its body says."""
    match await request.body():
        case b"unreadable":
            raise Unreadable("no")
        case b"large":
            raise TooLarge("no")
        case b"gone":
            raise ClientDisconnect
    return Response(f"{name} {request.query_params}")


class Recorder:
    """ASGI middleware behind the shortcut: the paths that took the long way."""

    def __init__(self, app: ASGIApp, routed: list[str]) -> None:
        self._app, self._routed = app, routed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._routed.append(scope["path"])
        await self._app(scope, receive, send)


def application() -> tuple[FastAPI, list[str]]:
    """One call, as a route and over the shortcut; and where the long way is noted."""
    app, routed = FastAPI(openapi_url=None, docs_url=None, redoc_url=None), list[str]()
    app.add_middleware(Recorder, routed=routed)
    app.add_middleware(Shortcut, endpoints={"predict": predict})
    add_problems(app)
    app.post(PATH)(predict)
    return app, routed


def answer(method: str, path: str, body: bytes = b"") -> tuple[int, str, dict[str, str], bool]:
    """Status, body, headers, and whether it went straight there."""
    app, routed = application()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "server": ("localhost", 80),
        "query_string": query.encode(),
        "headers": [],
        "state": {},
    }
    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], b"".join(m["body"] for m in sent[1:]).decode(), headers, not routed


def test_a_call_that_it_knows_goes_straight_there():
    assert answer("POST", "/v1/models/some.name/predict?head=asset") == (
        200,
        "some.name head=asset",
        {"content-length": "20"},
        True,
    )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models/m/predict", 405),
        ("POST", "/v1/models//predict", 404),
        ("POST", "/v1/models/m/else", 404),
        ("POST", "/v1/models/m/predict/more", 404),
        ("POST", "/v0/models/m/predict", 404),
        ("POST", "/", 404),
    ],
)
def test_all_else_is_left_to_the_routes(method: str, path: str, status: int):
    told, _, headers, straight = answer(method, path)
    assert (told, straight) == (status, False)
    assert headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("body", "status"), [(b"unreadable", 400), (b"large", 413)])
def test_refusals_are_told_as_they_are_of_routes(body: bytes, status: int):
    told, text, headers, straight = answer("POST", "/v1/models/m/predict", body)
    assert (told, straight) == (status, True)
    assert headers["content-type"] == "application/problem+json"
    assert f'"status":{status}' in text


def test_a_client_that_left_is_no_error():
    assert answer("POST", "/v1/models/m/predict", b"gone")[1] == ""

"""What the outermost layer puts into a request's state."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from wolfstream.service.diagnostics.metrics import Histogram
from wolfstream.service.web.transport.observer import OTHER, Observer


def test_headers_are_kept_by_name_and_the_first_of_two_counts() -> None:
    found: list[dict[bytes, bytes]] = []

    async def inner(scope: Any, *_: Any) -> None:
        found.append(scope["state"]["headers"])

    given = [(b"accept", b"a"), (b"host", b"localhost"), (b"accept", b"b")]
    scope = {"type": "http", "method": "GET", "path": "/livez", "headers": given, "state": {}}

    async def unused(*_: Any) -> Any:
        raise AssertionError("nothing is read or sent")

    observer = Observer(inner, {}, "none", lambda _: False, unused)
    asyncio.run(observer(scope, unused, unused))
    assert found == [{b"accept": b"a", b"host": b"localhost"}]


def test_failure_is_answered_counted_and_raised() -> None:
    async def fail(*_: Any) -> None:
        raise ValueError("unexpected")

    async def failed(_: Request, error: Exception) -> Response:
        return Response(str(error), 500)

    async def unused(*_: Any) -> Any:
        raise AssertionError("nothing is read")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    app = FastAPI()
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "state": {}, "app": app}
    requests: dict[tuple[str, str, str], Histogram] = {}
    observer = Observer(fail, requests, "none", lambda _: True, failed)
    with pytest.raises(ValueError, match="unexpected"):
        asyncio.run(observer(scope, unused, send))
    assert [sent[0]["status"], sent[1]["body"]] == [500, b"unexpected"]
    assert list(requests) == [(OTHER, "GET", "5xx")]


def test_call_answered_by_no_route_has_its_template() -> None:
    """A replica predicts with the views that it follows around its routes."""

    async def of_view(scope: Any, _: Any, send: Any) -> None:
        scope["endpoint"], scope["path_params"] = of_view, {"name": "m"}
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def unused(*_: Any) -> Any:
        return None

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/models/m/predict",
        "headers": [],
        "state": {},
        "app": FastAPI(),
    }
    requests: dict[tuple[str, str, str], Histogram] = {}
    observer = Observer(of_view, requests, "none", lambda _: True, unused)
    asyncio.run(observer(scope, unused, unused))
    assert list(requests) == [("/v1/models/{name}/predict", "POST", "2xx")]

"""Answers hot calls without FastAPI; no other module bypasses it.

The routes of these calls are declared with FastAPI like all others. But its router compares a path
with the patterns of one route after another, and for each request it resolves dependencies and
validates parameters that these endpoints do not have. Without this layer, a request takes up to
twice the processor time (`benchmarks/README.md`).
"""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wolfstream.service.calls.lookup import target
from wolfstream.service.errors import Refusal
from wolfstream.service.web.formats.query import check_query

Endpoint = Callable[[Request, str], Awaitable[Response]]


class Shortcut:
    """The innermost ASGI middleware, which answers hot calls and passes on all other requests.

    Args:
        endpoints: name of a call -> endpoint, which takes the request and the model's name. All of
            them are also routes, which refuse other methods.
    """

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, Endpoint]) -> None:
        self._app = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        call = name = endpoint = None
        if scope["type"] == "http":
            call, _, name, _ = target(scope["path"], scope["method"])
        if call is not None and call.hot:
            endpoint = self._endpoints.get(call.name)
        if call is None or name is None or endpoint is None:
            await self._app(scope, receive, send)
            return
        scope["endpoint"], scope["path_params"] = endpoint, {"name": name}
        request = Request(scope, receive, send)
        try:
            check_query(scope["query_string"], call.query)
            response = await endpoint(request, name)
        except (Refusal, ClientDisconnect, MemoryError) as error:
            response = await _response_to(error, request)
        await response(scope, receive, send)


async def _response_to(error: Exception, request: Request) -> Response:
    """Return the response of the application's handler for errors of this class."""
    handlers = request.app.exception_handlers
    handler = next(handlers[kind] for kind in type(error).__mro__ if kind in handlers)
    response: Response = await handler(request, error)
    return response

"""The shortcut of the hot calls, around FastAPI: the only place that goes around it.

The routes of these calls are declared with FastAPI like all others, which documents them. But its
router compares a path with the pattern of one route after another, and around each endpoint it
resolves dependencies and validates parameters that these endpoints do not have. Without this
layer a request costs up to twice the processor time (`benchmarks/README.md`).
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
    """ASGI middleware, the innermost: a hot call is answered here, others go on.

    endpoints: by the names of their calls; each takes the request and the model's name. They are
        routes as well, which answer other methods.
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
    """Return the response of the handler that the application has for errors of this class."""
    handlers = request.app.exception_handlers
    handler = next(handlers[kind] for kind in type(error).__mro__ if kind in handlers)
    response: Response = await handler(request, error)
    return response

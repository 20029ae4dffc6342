"""The shortcut of the calls that carry the traffic, around the search for a route.

The routes of these calls are declared with FastAPI like all others, which documents them. But its
router compares a path with the pattern of one route after another, and around each endpoint it
resolves dependencies and validates parameters that these endpoints do not have. Without this
layer a request costs up to twice the processor time (`benchmarks/README.md`).
"""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wolfstream.service.errors import Refusal

Endpoint = Callable[[Request, str], Awaitable[Response]]


class Shortcut:
    """ASGI middleware, the innermost: a POST to a known path is answered here, others go on.

    endpoints: by the template of their path, like `/v1/models/{name}/predict`; each takes the
        request and the name. They are routes as well, which answer other methods.
    """

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, Endpoint]) -> None:
        self._app = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        endpoint, name = None, ""
        if scope["type"] == "http" and scope["method"] == "POST":
            parts = scope["path"].split("/")
            if len(parts) == 5:
                _, version, models, name, call = parts
                endpoint = self._endpoints.get(f"/{version}/{models}/{{name}}/{call}")
        if endpoint is None or not name:
            await self._app(scope, receive, send)
            return
        scope["endpoint"], scope["path_params"] = endpoint, {"name": name}
        request = Request(scope, receive, send)
        try:
            response = await endpoint(request, name)
        except (Refusal, ClientDisconnect) as error:
            response = await _response_to(error, request)
        await response(scope, receive, send)


async def _response_to(error: Exception, request: Request) -> Response:
    """Return the response of the handler that the application has for errors of this class."""
    handlers = request.app.exception_handlers
    handler = next(handlers[kind] for kind in type(error).__mro__ if kind in handlers)
    response: Response = await handler(request, error)
    return response

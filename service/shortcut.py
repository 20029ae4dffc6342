"""The way of the calls that carry the traffic, past the layers that look for routes.

What `POST /v1/models/{name}/{call}` asks is plain from its path. Searching all routes for it, and
the layers that FastAPI has around them, take as long as decoding a sample.
"""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import Refusal

Endpoint = Callable[[Request], Awaitable[Response]]
_V1 = ["", "v1", "models"]


class Shortcut:
    """ASGI middleware, the innermost: what it does not know goes on to the routes.

    calls: what answers a call, by its name. They are routes as well, which have the description,
    and the answer to another method.
    """

    def __init__(self, app: ASGIApp, calls: Mapping[str, Endpoint]) -> None:
        self._app = app
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        call = None
        if scope["type"] == "http" and scope["method"] == "POST":
            parts = scope["path"].split("/")
            if len(parts) == 5 and parts[:3] == _V1 and parts[3]:
                call = self._calls.get(parts[4])
        if call is None:
            await self._app(scope, receive, send)
            return
        scope["endpoint"], scope["path_params"] = call, {"name": parts[3]}
        request = Request(scope, receive, send)
        try:
            response = await call(request)
        except (Refusal, ClientDisconnect) as error:
            response = await _told(request, error)
        await response(scope, receive, send)


async def _told(request: Request, error: Exception) -> Response:
    """The answer to an error as the application has it for all routes."""
    handlers = request.app.exception_handlers
    handler = next(handlers[kind] for kind in type(error).__mro__ if kind in handlers)
    response: Response = await handler(request, error)
    return response

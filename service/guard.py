"""The layer below all routes: who sends a request, and whether the key allows it.

| call | scope |
|---|---|
| GET, `predict`, opening a stream | predict |
| `samples`, `asset`, `refit`; learning on a stream | learn, which implies predict |
| all else: create, delete | admin, which implies both |

A path of a model needs a key for this model; one that is of no model, like the metrics, a key
for all of them. What the paths without a key tell is no secret: that the server is there, and an
interface that is the same everywhere.

A key comes in the `Authorization` header only, over the websocket too. Browsers cannot set it
there; a key in the URL or the subprotocol would be written into logs by proxies on the way.
"""

from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from service.errors import Refusal, TooManyConnections
from service.keys import Grant, KeyRing, Scope

_OPEN = {"/livez", "/readyz", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json"}
_MODELS = ["", "v1", "models"]
_POSTS: dict[str, Scope] = {
    "predict": "predict",
    "samples": "learn",
    "asset": "learn",
    "refit": "learn",
}
# A refit brings no samples: those of its window were counted when they were learned.
_COUNTED = _POSTS.keys() - {"refit"}


class Guard:
    """ASGI middleware. It leaves the sender's Grant in the request's state, as `grant`.

    refuse: the answer to a request that is not let through.
    """

    def __init__(self, app: ASGIApp, ring: KeyRing, refuse: Callable[[Refusal], Response]) -> None:
        self._app = app
        self._ring = ring
        self._refuse = refuse

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass a call on, or refuse it."""
        if scope["path"] not in _OPEN:
            try:
                scope["state"]["grant"] = self._admit(scope)
            except Refusal as error:
                await self._refuse(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _admit(self, scope: AsgiScope) -> Grant:
        """Raises TooManyConnections, Unauthenticated, Forbidden, QuotaExceeded."""
        if "crowded" in scope["state"]:
            raise TooManyConnections("this server has as many connections as it may; try again")
        headers = scope["headers"]
        given = next((value for name, value in headers if name == b"authorization"), None)
        grant = self._ring.grant(given)
        parts = scope["path"].split("/")
        if parts[:3] != _MODELS:
            grant.check_all_models()
        elif len(parts) > 3:
            grant.check_model(parts[3])
        grant.check(_needed(scope, parts))
        if len(parts) == 5 and parts[4] in _COUNTED:
            grant.check_quota()
        return grant


def _needed(scope: AsgiScope, parts: list[str]) -> Scope:
    """The scope that a call needs; admin for what is not known here."""
    if scope["type"] == "websocket" or scope["method"] in ("GET", "HEAD"):
        return "predict"
    if scope["method"] == "POST" and len(parts) == 5:
        return _POSTS.get(parts[4], "admin")
    return "admin"

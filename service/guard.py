"""The layer below all routes: who sends a request, and whether the key allows it.

| call | scope |
|---|---|
| GET (also `history`), `predict`, `infer`, opening a stream | predict |
| `samples`, `asset`, `refit`; learning on a stream | learn, which implies predict |
| all else: create, delete, `snapshot`, `rollback` | admin, which implies both |

A path of a model needs a key for this model; one that is of no model, like the metrics, a key
for all of them, but for what the Open Inference Protocol tells of the server. What the paths
without a key tell is no secret: that the server is there, and an interface that is the same
everywhere.

A key comes in the `Authorization` header only, over the websocket too. Browsers cannot set it
there; a key in the URL or the subprotocol would be written into logs by proxies on the way.
"""

from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from service.errors import Refusal, TooManyConnections
from service.inference import PREFIX
from service.keys import Grant, KeyRing, Scope

OPEN = {
    "/livez",
    "/readyz",
    "/docs",
    "/openapi.json",
    f"{PREFIX}/health/live",
    f"{PREFIX}/health/ready",
}
_V1, _V2 = ["", "v1", "models"], [*PREFIX.split("/"), "models"]
_POSTS: dict[tuple[str, str], Scope] = {
    ("v1", "predict"): "predict",
    ("v1", "samples"): "learn",
    ("v1", "asset"): "learn",
    ("v1", "refit"): "learn",
    ("v2", "infer"): "predict",
}
# A refit brings no samples: those of its window were counted when they were learned.
_COUNTED = _POSTS.keys() - {("v1", "refit")}


class Guard:
    """ASGI middleware. It leaves the sender's Grant in the request's state, as `grant`.

    refuse: the answer to a request for a path that is not let through.
    """

    def __init__(
        self, app: ASGIApp, ring: KeyRing, refuse: Callable[[Refusal, str], Response]
    ) -> None:
        self._app = app
        self._ring = ring
        self._refuse = refuse

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass a call on, or refuse it."""
        if scope["path"] not in OPEN:
            try:
                scope["state"]["grant"] = self._admit(scope)
            except Refusal as error:
                await self._refuse(error, scope["path"])(scope, receive, send)
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
        if parts[:3] in (_V1, _V2):
            if len(parts) > 3:
                grant.check_model(parts[3])
        elif scope["path"] != PREFIX:
            grant.check_all_models()
        call = _call(parts)
        grant.check(_needed(scope, call))
        if call in _COUNTED:
            grant.check_quota()
        return grant


def _call(parts: list[str]) -> tuple[str, str]:
    """What is asked of a model: the interface's version and the last part of the path."""
    if parts[:3] == _V2 and parts[4:5] == ["versions"]:
        parts = parts[:4] + parts[6:]
    return (parts[1], parts[4]) if len(parts) == 5 else ("", "")


def _needed(scope: AsgiScope, call: tuple[str, str]) -> Scope:
    """The scope that a call needs; admin for what is not known here."""
    if scope["type"] == "websocket" or scope["method"] in ("GET", "HEAD"):
        return "predict"
    if scope["method"] == "POST":
        return _POSTS.get(call, "admin")
    return "admin"

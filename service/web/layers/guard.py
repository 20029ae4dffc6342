"""The layer that checks keys: who sends a request, and whether the key allows it.

| call | scope |
|---|---|
| GET (also `history`, `challengers`), `predict`, `infer`, opening a stream | predict |
| `samples`, `asset`, `labels`, `refit`; learning on a stream; `predict` with ids (by its \
body) | learn, which implies predict |
| all others: create, delete, `snapshot`, `rollback`, `promote`, `state` | admin, implies both |

GET of `state` is among the latter, because it reveals samples.

The path of a model needs a key for this model. A path without a model, like that of the metrics,
needs a key for all models, except the Open Inference Protocol's description of the server. Paths
that need no key reveal nothing: that the server runs, and an interface that is the same on every
server. The replicas of a fleet ask each other for views without a key: they seal what they send.

A key is accepted in the `Authorization` header, never in a URL, which proxies log. Browsers cannot
set the header for a websocket: there the key may be offered as one more subprotocol,
`wolfstream.key.KEY`, which the server does not choose.
"""

import functools
from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from wolfstream.service.access.key_ring import Grant, KeyRing, Need
from wolfstream.service.access.keys import Scope
from wolfstream.service.errors import Refusal, TooManyConnections
from wolfstream.service.web.formats.paths import INFERENCE_PREFIX, is_open

# Needs of shorter paths are remembered; one of 60 kB, which no route has, would stay in memory.
_LONGEST_REMEMBERED = 256
_KEY_SUBPROTOCOL = "wolfstream.key."
_V1, _V2 = ["", "v1", "models"], [*INFERENCE_PREFIX.split("/"), "models"]
_POSTS: dict[tuple[str, str], Scope] = {
    ("v1", "predict"): "predict",
    ("v1", "samples"): "learn",
    ("v1", "asset"): "learn",
    ("v1", "labels"): "learn",
    ("v1", "refit"): "learn",
    ("v2", "infer"): "predict",
}
# A refit uses samples that were counted against the quota when they were learned.
_COUNTED = _POSTS.keys() - {("v1", "refit")}


class Guard:
    """ASGI middleware. It puts the sender's Grant into the request's state, as `grant`.

    refuse: makes the response to a refused request for a path.
    """

    def __init__(
        self, app: ASGIApp, ring: KeyRing, refuse: Callable[[Refusal, str], Response]
    ) -> None:
        self._app = app
        self._ring = ring
        self._refuse = refuse

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass a call on, or refuse it."""
        path = scope["path"]
        need_of = _remembered_need if len(path) <= _LONGEST_REMEMBERED else _need
        need = need_of(path, scope.get("method"))
        if need is not None:
            try:
                scope["state"]["grant"] = self._admit(scope, need)
            except Refusal as error:
                await self._refuse(error, path)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _admit(self, scope: AsgiScope, need: Need) -> Grant:
        """Raises TooManyConnections, Unauthenticated, Forbidden, QuotaExceeded."""
        if "crowded" in scope["state"]:
            raise TooManyConnections("the server has reached its limit of connections; try again")
        return self._ring.admit(_authorization(scope), need)


def _need(path: str, method: str | None) -> Need | None:
    """Return what a request needs a key for; None if it needs none. method: None of a websocket."""
    if is_open(path):
        return None
    parts = path.split("/")
    of_models, call = parts[:3] in (_V1, _V2), _call(parts)
    return Need(
        _needed(method, call),
        model=parts[3] if of_models and len(parts) > 3 else None,
        every_model=not of_models and path != INFERENCE_PREFIX,
        under_quota=call in _COUNTED,
    )


_remembered_need = functools.lru_cache(maxsize=1024)(_need)


def _authorization(scope: AsgiScope) -> bytes | None:
    """Return the value of the header `Authorization`, or of its substitute."""
    given: bytes | None = scope["state"]["headers"].get(b"authorization")
    if given is None and scope["type"] == "websocket":
        for offered in scope["subprotocols"]:
            if offered.startswith(_KEY_SUBPROTOCOL):
                return f"Bearer {offered.removeprefix(_KEY_SUBPROTOCOL)}".encode()
    return given


def _call(parts: list[str]) -> tuple[str, str]:
    """Return the version of the interface and the last part of the path of a model's call."""
    if parts[:3] == _V2 and parts[4:5] == ["versions"]:
        parts = parts[:4] + parts[6:]
    return (parts[1], parts[4]) if len(parts) == 5 else ("", "")


def _needed(method: str | None, call: tuple[str, str]) -> Scope:
    """Return the scope that a call needs; admin for one that is not known here."""
    if call == ("v1", "state"):
        return "admin"
    if method in (None, "GET", "HEAD"):
        return "predict"
    if method == "POST":
        return _POSTS.get(call, "admin")
    return "admin"

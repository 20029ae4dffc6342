"""Checks API keys: who sends a request, and whether the key allows it.

The table of calls (`service.calls.table`) has the scope that each call needs. A request that is not
a call needs the scope predict if it only reads, else admin. Learning over a stream, and predictions
with ids, also need the scope learn; their handlers check that.

The path of a model needs a key for this model. A path without a model, such as that of the metrics,
needs a key for all models, except for the Open Inference Protocol's description of the server.
Paths that need no key only reveal that the server is running, and an interface that is the same on
every server. The replicas of a fleet request views from each other without a key; they seal their
messages.

A key is accepted in the `Authorization` header, never in a URL, because proxies log URLs. A browser
cannot set this header for a websocket. There the key may be offered as an additional subprotocol,
`wolfstream.key.KEY`, which the server never selects.
"""

import functools
from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from wolfstream.service.access.key_ring import KeyRing, Requirement
from wolfstream.service.access.scopes import Scope
from wolfstream.service.calls.lookup import LONGEST_CACHED, Target, target
from wolfstream.service.calls.table import INFERENCE, WEBSOCKET
from wolfstream.service.errors import Refusal, TooManyConnections
from wolfstream.service.web.formats.paths import is_public, is_vital

_KEY_SUBPROTOCOL = "wolfstream.key."
_READING = (WEBSOCKET, "GET", "HEAD")


class Guard:
    """ASGI middleware that puts the sender's Grant into the state of a request, as `grant`.

    Args:
        refuse: returns the response to a refused request for a path.
    """

    def __init__(
        self, app: ASGIApp, ring: KeyRing, refuse: Callable[[Refusal, str], Response]
    ) -> None:
        self._app = app
        self._ring = ring
        self._refuse = refuse

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        path = scope["path"]
        need_of = _cached_need if len(path) <= LONGEST_CACHED else _need
        need = need_of(path, scope.get("method", WEBSOCKET))
        try:
            check_crowd(scope)
            if need is not None:
                scope["state"]["grant"] = self._ring.admit(_authorization(scope), need)
        except Refusal as error:
            await self._refuse(error, path)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def check_crowd(scope: AsgiScope) -> None:
    """Raise TooManyConnections for a request on a connection too many, unless it is vital."""
    if "crowded" in scope["state"] and not is_vital(scope["path"]):
        raise TooManyConnections("the server has reached its limit of connections; try again")


def _need(path: str, method: str) -> Requirement | None:
    """Return what the key of a request has to allow; None if the request needs no key."""
    if is_public(path):
        return None
    asked = target(path, method)
    return Requirement(
        _scope(asked, method),
        model=asked.model,
        every_model=not asked.of_models and path != INFERENCE,
        under_quota=any(call.counted for call in asked.at_path.values()),
    )


def _scope(asked: Target, method: str) -> Scope:
    """Return the scope that a request needs.

    A request that reads, but is not a call, needs the scope of a GET of the same path if that is a
    call, else predict.
    """
    call = asked.call
    if call is None and method in _READING:
        call = asked.at_path.get("GET")
        return "predict" if call is None or call.scope is None else call.scope
    return "admin" if call is None or call.scope is None else call.scope


_cached_need = functools.lru_cache(maxsize=1024)(_need)


def _authorization(scope: AsgiScope) -> bytes | None:
    """Return the `Authorization` header, or the equivalent of the subprotocol that replaces it."""
    given: bytes | None = scope["state"]["headers"].get(b"authorization")
    if given is None and scope["type"] == "websocket":
        for offered in scope["subprotocols"]:
            if offered.startswith(_KEY_SUBPROTOCOL):
                return f"Bearer {offered.removeprefix(_KEY_SUBPROTOCOL)}".encode()
    return given

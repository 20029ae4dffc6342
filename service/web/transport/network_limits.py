"""Bounds how many connections that last the clients of one network may have.

A websocket, or a listener to events, takes a connection for as long as its client likes, and is
never closed to make room for another (`connection_eviction`). So those of one network may take
three quarters of the connections that other networks' ones leave; the rest is for calls.

The network is that of the connection's other end: behind a proxy, all clients are of one network.
With workers, each one grants its part of the connections.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wolfstream.service.calls.lookup import is_for
from wolfstream.service.errors import Refusal, TooManyConnections
from wolfstream.service.settings import Settings
from wolfstream.service.web.transport.connection_eviction import network_of

# The part of the connections left by others that one network's lasting ones may take.
_SHARE = 3 / 4


class LastingConnections:
    """ASGI middleware that refuses streams and listeners beyond the share of their network.

    Args:
        refuse: returns the response to a refused request for a path.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, refuse: Callable[[Refusal, str], Response]
    ) -> None:
        self._app, self._refuse = app, refuse
        self._most = max(settings.connections // max(settings.workers, 1), 1)
        # network -> number of its open streams and listeners.
        self._open = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse a stream or listener."""
        if scope["type"] != "websocket" and not is_for(scope, "events"):
            await self._app(scope, receive, send)
            return
        try:
            with self._counted(network_of(scope["client"])):
                await self._app(scope, receive, send)
        except TooManyConnections as error:
            await self._refuse(error, scope["path"])(scope, receive, send)

    @contextmanager
    def _counted(self, network: str) -> Iterator[None]:
        """Count a connection while it lasts. Raises TooManyConnections."""
        n_open = self._open[network]
        if n_open >= _SHARE * (self._most - self._open.total() + n_open):
            raise TooManyConnections(
                f"this address has {n_open} streams and listeners to events, and may not have "
                "more; close some, or try again"
            )
        self._open[network] += 1
        try:
            yield
        finally:
            self._open[network] -= 1
            if not self._open[network]:
                del self._open[network]

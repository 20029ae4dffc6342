"""Refuses requests from pages of other sites that are open in a user's browser.

Any page can send requests to a server on the user's machine; if the server has no keys, nothing
else stops them. Browsers send the site of the page in `Origin`, and its relation to the server in
`Sec-Fetch-Site`; other clients send neither.

| request | refused with 403 if |
|---|---|
| any, if the server has no keys or `hosts` is set | `Host` is neither local nor one of `hosts` |
| all but GET and HEAD, and opening a stream | it comes from a site that `origins` does not name |
| GET and HEAD | the same, unless the browser says that the user followed a link |

Although a page cannot read the response to a GET, it could find out which models exist, or listen
to events in as many connections as its browser allows.

The first line protects against pages whose own host name resolves to this machine (DNS rebinding);
an address cannot be such a name. Paths that need no key are always answered.

Responses to a page of `origins` have the headers that let the page read them (CORS).
"""

import functools
import ipaddress
import re
from collections.abc import Callable, Collection

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.errors import ForeignHost, ForeignOrigin, Refusal
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.paths import is_public

# A DNS name has at most 253 characters. Longer ones would only fill the cache of `_is_known`.
_MAX_HOST_LENGTH = 300
# An IPv6 address or a name, and a port.
_HOST = re.compile(rb"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([\w.-]+))(?::\d*)?")
_PLAIN = ("GET", "HEAD")
# The values of Sec-Fetch-Site for the server's own page, and for no page.
_OWN_SITE = (b"same-origin", b"none")
_EXPOSED = (
    "ETag",
    "Retry-After",
    "Idempotency-Replayed",
    "Preference-Applied",
    "Location",
    "X-Request-ID",
)


class Origins:
    """ASGI middleware.

    Args:
        ring: the server's keys.
        refuse: returns the response to a refused request for a path.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        ring: KeyRing,
        refuse: Callable[[Refusal, str], Response],
    ) -> None:
        self._app = app
        if settings.origins:
            self._app = CORSMiddleware(
                app,
                allow_origins=settings.origins,
                allow_methods=["*"],
                allow_headers=["*"],
                expose_headers=_EXPOSED,
            )
        self._origins = {origin.encode() for origin in settings.origins}
        self._hosts = frozenset({*settings.hosts, settings.host.lower()})
        self._checks_host = bool(settings.hosts)
        self._ring = ring
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        try:
            self._check(scope)
        except Refusal as error:
            if not is_public(scope["path"]):
                await self._refuse(error, scope["path"])(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Raise ForeignHost or ForeignOrigin if a request is refused."""
        headers = scope["state"]["headers"]
        host, origin = headers.get(b"host", b""), headers.get(b"origin")
        checked = self._checks_host or not self._ring.required
        if checked and (len(host) > _MAX_HOST_LENGTH or not _is_known(host, self._hosts)):
            raise ForeignHost(
                f"this server is not known as {host[:100].decode('latin-1')!r}; use its address, "
                "or start it with WOLFSTREAM_HOSTS=NAME"
            )
        own = headers.get(b"sec-fetch-site", b"none") in _OWN_SITE
        reads = scope["type"] == "http" and scope["method"] in _PLAIN
        if reads and (own or headers.get(b"sec-fetch-dest") == b"document"):
            return
        if origin is None:
            foreign = not own
        else:
            scheme = str(scope["scheme"]).replace("ws", "http").encode()  # a stream has ws or wss
            foreign = origin not in {*self._origins, scheme + b"://" + host}
        if foreign:
            raise ForeignOrigin(
                "pages of another site may not use this server; where they should, start it with "
                "WOLFSTREAM_ORIGINS=https://their.site"
            )


@functools.lru_cache(maxsize=256)
def _is_known(host: bytes, names: Collection[str]) -> bool:
    """Return whether a `Host` header is an address, a name of this machine or one of the names."""
    if not host:
        return True  # every browser sends the header
    match = _HOST.fullmatch(host)
    if not match:
        return False
    name = (match[1] or match[2]).decode().lower()
    if name in names or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True

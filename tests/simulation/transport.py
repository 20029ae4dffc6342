"""The transport of httpx over the simulated network, in the place of its own."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx

from tests.simulation.network import Broken, Call, Network, NotConnected

_FOREVER_SECONDS = 1e6


class Transport(httpx.AsyncBaseTransport):
    """Sends the requests of the product's clients, within their time limits."""

    network: Network

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the beginning of its response. Raises TransportError."""
        limits = request.extensions["timeout"]
        content = await request.aread()
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        try:
            call = await self.network.begin(
                request.method,
                str(request.url),
                headers,
                content,
                limits["connect"] or _FOREVER_SECONDS,
            )
        except NotConnected as error:
            kind = httpx.ConnectTimeout if error.timed_out else httpx.ConnectError
            raise kind(str(error)) from None
        body = _Body(call, limits["read"])
        try:
            status, given = await body.within(call.head())
        except BaseException:
            call.close()
            raise
        return httpx.Response(status, headers=given, stream=body)


class _Body(httpx.AsyncByteStream):
    def __init__(self, call: Call, seconds: float | None) -> None:
        self._call, self._seconds = call, seconds

    async def within(self, waiting: Any) -> Any:
        """Return what is waited for, in time. Raises TransportError."""
        try:
            async with asyncio.timeout(self._seconds):
                return await waiting
        except TimeoutError:
            raise httpx.ReadTimeout("no answer") from None
        except Broken:
            raise httpx.ReadError("the connection is gone") from None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self._call.pieces()
        while True:
            try:
                yield await self.within(anext(pieces))
            except StopAsyncIteration:
                return

    async def aclose(self) -> None:
        self._call.close()


def install(network: Network) -> None:
    """Let every new client of httpx use a network."""
    Transport.network = network
    replaced: Any = httpx
    replaced.AsyncHTTPTransport = Transport
    replaced = httpx._client
    replaced.AsyncHTTPTransport = Transport

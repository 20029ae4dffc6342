"""Requests views from the other replicas, over HTTP."""

import asyncio
from collections.abc import Mapping

import httpx

from wolfstream.service.cluster.members import Replica
from wolfstream.service.cluster.versions import ViewVersion
from wolfstream.service.cluster.view_messages import (
    MAX_BYTES,
    SEAL,
    ViewResponse,
    read_response,
    seal_request,
)
from wolfstream.service.errors import Refusal

# A replica responds within half a second, apart from delays of the network.
SILENT_SECONDS = 3.0
# Checking the seal of more bytes would keep requests waiting for the event loop.
_INLINE_BYTES = 1 << 20


class PeerUnreachable(Exception):
    """No connection to a replica's address could be made."""


class PeerFailed(Exception):
    """A replica has given no usable response."""


class Peers:
    """Requests views from other replicas. Used on the event loop."""

    def __init__(self, path: str, client: httpx.AsyncClient) -> None:
        """Use a client, which `close` closes.

        Args:
            path: the path at which replicas serve views.
            client: made by `connections.client_of_replicas`.
        """
        self._path, self._client = path, client

    async def views(
        self, target: Replica, versions: Mapping[str, ViewVersion | None]
    ) -> ViewResponse:
        """Request newer views of some models. Raises PeerUnreachable, PeerFailed.

        Args:
            target: the replica.
            versions: model -> version of this replica's copy of its view; None without a copy.
        """
        request, content, seal = seal_request(target.secret, versions)
        try:
            body, body_seal = await self._post(f"{target.url}{self._path}", content, seal)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise PeerUnreachable(repr(error)) from None
        except httpx.HTTPError as error:
            raise PeerFailed(repr(error)) from None
        try:
            if len(body) > _INLINE_BYTES:
                return await asyncio.to_thread(
                    read_response, target.secret, request, body, body_seal
                )
            return read_response(target.secret, request, body, body_seal)
        except Refusal as error:
            raise PeerFailed(error.detail) from None

    async def _post(self, url: str, content: bytes, seal: str) -> tuple[bytes, str]:
        """Return the body of a response, and its seal."""
        headers = {SEAL: seal, "content-type": "application/octet-stream"}
        async with self._client.stream("POST", url, content=content, headers=headers) as response:
            response.raise_for_status()
            chunks, size = list[bytes](), 0
            async for chunk in response.aiter_raw():
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_BYTES:
                    raise PeerFailed(f"the response has more than {MAX_BYTES} bytes")
            return b"".join(chunks), response.headers.get(SEAL, "")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

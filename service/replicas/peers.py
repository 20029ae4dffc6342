"""Requests for views to the other replicas, over HTTP."""

import asyncio
from collections.abc import Mapping

import httpx

from wolfstream.service.errors import Refusal
from wolfstream.service.replicas.director import Target
from wolfstream.service.replicas.view_messages import (
    MOST_BYTES,
    SEAL,
    ViewAnswer,
    read_answer,
    sealed_question,
)
from wolfstream.service.views.versions import Position

# A replica answers within half a second; the rest is for slow networks.
SILENT_SECONDS = 3.0
# Checking the seal of more bytes would keep requests waiting for the event loop.
_INLINE_BYTES = 1 << 20


class NotConnected(Exception):
    """No connection to the replica's address could be made."""


class NoAnswer(Exception):
    """The replica has given no usable answer."""


class Peers:
    """Asks other replicas. path: where they serve views. Used on the event loop."""

    def __init__(self, path: str, client: httpx.AsyncClient) -> None:
        self._path, self._client = path, client

    async def views(self, target: Target, held: Mapping[str, Position | None]) -> ViewAnswer:
        """Ask a replica for newer views of some models. Raises NotConnected, NoAnswer."""
        question, content, seal = sealed_question(target.secret, held)
        try:
            answered, sealed = await self._answer(f"{target.url}{self._path}", content, seal)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NotConnected(repr(error)) from None
        except httpx.HTTPError as error:
            raise NoAnswer(repr(error)) from None
        try:
            if len(answered) > _INLINE_BYTES:
                return await asyncio.to_thread(
                    read_answer, target.secret, question, answered, sealed
                )
            return read_answer(target.secret, question, answered, sealed)
        except Refusal as error:
            raise NoAnswer(error.detail) from None

    async def _answer(self, url: str, content: bytes, seal: str) -> tuple[bytes, str]:
        headers = {SEAL: seal, "content-type": "application/octet-stream"}
        async with self._client.stream("POST", url, content=content, headers=headers) as response:
            response.raise_for_status()
            pieces, size = list[bytes](), 0
            async for piece in response.aiter_raw():
                pieces.append(piece)
                size += len(piece)
                if size > MOST_BYTES:
                    raise NoAnswer(f"an answer may have {MOST_BYTES} bytes")
            return b"".join(pieces), response.headers.get(SEAL, "")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

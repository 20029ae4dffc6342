"""Whether the other replicas of a fleet answer this one over HTTP.

NATS says that a replica lives, and not whether calls reach it: its address may lead nowhere, its
certificate may be unknown here, a connection may be accepted and never answered. So each replica
asks the others again and again. What is known here moves no model to another leader.
"""

import asyncio
import logging
import time
from typing import Any

import httpx

from wolfstream.service.replicas.director import Director

logger = logging.getLogger(__name__)

_PATH = "/livez"
_ASK_SECONDS = 1.0
# A replica that works hard may answer late.
SILENT_SECONDS = 5.0


class _Neighbour:
    """What is known of one replica.

    Attributes:
        answered: when it was last asked what it then answered, by time.monotonic().
        error: why it does not answer; empty while it does.
        silent: whether it counts as unreachable.
    """

    def __init__(self) -> None:
        self.answered = time.monotonic()
        self.error = ""
        self.silent = False

    @property
    def silent_seconds(self) -> float:
        return time.monotonic() - self.answered if self.error else 0.0


class Neighbours:
    """The other replicas, as far as they answer. Used on the event loop; `run` asks them.

    unanswered: how many calls were given up that were sent to replicas which do not answer.
    """

    def __init__(self, director: Director, client: httpx.AsyncClient) -> None:
        self._director, self._client = director, client
        self._neighbours: dict[str, _Neighbour] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self.unanswered = 0

    def why_unreachable(self, url: str) -> str:
        """Return why a replica counts as unreachable; empty if it does not."""
        neighbour = self._neighbours.get(url)
        if neighbour is None or not neighbour.silent:
            return ""
        return (
            f"the replica {url} has not answered this one over HTTP for "
            f"{neighbour.silent_seconds:.0f} s ({neighbour.error})"
        )

    async def run(self) -> None:
        """Ask the living replicas until cancelled."""
        try:
            while True:
                others = [one for one in self._director.living() if not self._director.is_here(one)]
                urls = {one.url for one in others}
                self._neighbours = {
                    url: self._neighbours.get(url) or _Neighbour() for url in sorted(urls)
                }
                self._asking = {url: one for url, one in self._asking.items() if not one.done()}
                for url in sorted(self._neighbours.keys() - self._asking.keys()):
                    self._asking[url] = asyncio.create_task(self._ask(url))
                await asyncio.sleep(_ASK_SECONDS)
        finally:
            unfinished = list(self._asking.values())
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
            await self._client.aclose()

    async def _ask(self, url: str) -> None:
        asked, error = time.monotonic(), ""
        try:
            await self._client.get(f"{url}{_PATH}", timeout=SILENT_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as failure:
            error = f"{type(failure).__name__}: {failure}".removesuffix(": ")
        neighbour = self._neighbours.get(url)
        if neighbour is None:
            return
        if not error:
            neighbour.answered = asked
        neighbour.error = error
        self._note(url, neighbour)

    def _note(self, url: str, neighbour: _Neighbour) -> None:
        """Log that a replica has fallen silent, or answers again."""
        silent = neighbour.silent_seconds >= SILENT_SECONDS
        if silent and not neighbour.silent:
            logger.warning(
                "replica unreachable over HTTP, calls to it are refused: url=%s error=%s",
                url,
                neighbour.error,
            )
        elif neighbour.silent and not silent:
            logger.info("replica answers over HTTP again: url=%s", url)
        neighbour.silent = silent

    def describe(self) -> dict[str, dict[str, Any]]:
        """Return what is known of each replica, by its address."""
        return {
            url: {
                "answers": not one.silent,
                "silent_seconds": round(one.silent_seconds, 3),
                "error": one.error,
            }
            for url, one in self._neighbours.items()
        }

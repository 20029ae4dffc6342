"""Checks whether the other replicas of a fleet respond to this one over HTTP.

NATS shows that a replica is alive, but not that calls reach it: its address may be wrong, its
certificate may not be trusted here, or it may accept connections without ever responding. So each
replica keeps probing the others. The result never moves a model to another leader.
"""

import asyncio
import logging
import time
from typing import Any

import httpx

from wolfstream.service.cluster.roles import Roles

logger = logging.getLogger(__name__)

_PATH = "/livez"
# Time between two probes of a replica.
_ASK_SECONDS = 1.0
# A replica that has not responded for this long counts as unreachable; a busy one may be slow.
SILENT_SECONDS = 5.0


class _Neighbour:
    """What is known about one replica.

    Attributes:
        answered: when the last successful probe began, by time.monotonic().
        error: why the last probe failed; empty if it succeeded.
        silent: whether the replica counts as unreachable.
    """

    def __init__(self) -> None:
        self.answered = time.monotonic()
        self.error = ""
        self.silent = False

    @property
    def silent_seconds(self) -> float:
        return time.monotonic() - self.answered if self.error else 0.0


class Neighbours:
    """The other replicas, and whether they respond. Used on the event loop; `run` probes them.

    Attributes:
        unanswered: number of calls that were given up because a replica was unreachable.
    """

    def __init__(self, roles: Roles, client: httpx.AsyncClient) -> None:
        """Begin without probes.

        Args:
            roles: knows the living replicas.
            client: for the probes; `run` closes it at its end.
        """
        self._roles, self._client = roles, client
        self._neighbours: dict[str, _Neighbour] = {}  # by address
        self._probes: dict[str, asyncio.Task[None]] = {}  # address -> its probe under way
        self.unanswered = 0

    def why_unreachable(self, url: str) -> str:
        """Return why a replica counts as unreachable; "" if it does not."""
        neighbour = self._neighbours.get(url)
        if neighbour is None or not neighbour.silent:
            return ""
        return (
            f"the replica {url} has not answered this one over HTTP for "
            f"{neighbour.silent_seconds:.0f} s ({neighbour.error})"
        )

    async def run(self) -> None:
        """Probe the living replicas until cancelled."""
        try:
            while True:
                replicas = self._roles.living()
                urls = {replica.url for replica in replicas if not self._roles.is_here(replica)}
                self._neighbours = {
                    url: self._neighbours.get(url) or _Neighbour() for url in sorted(urls)
                }
                self._probes = {url: task for url, task in self._probes.items() if not task.done()}
                for url in sorted(self._neighbours.keys() - self._probes.keys()):
                    self._probes[url] = asyncio.create_task(self._probe(url))
                await asyncio.sleep(_ASK_SECONDS)
        finally:
            unfinished = list(self._probes.values())
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
            await self._client.aclose()

    async def _probe(self, url: str) -> None:
        began, error = time.monotonic(), ""
        try:
            await self._client.get(f"{url}{_PATH}", timeout=SILENT_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as failure:
            error = f"{type(failure).__name__}: {failure}".removesuffix(": ")
        neighbour = self._neighbours.get(url)
        if neighbour is None:  # it has left the fleet meanwhile
            return
        if not error:
            neighbour.answered = began
        neighbour.error = error
        self._log_change(url, neighbour)

    def _log_change(self, url: str, neighbour: _Neighbour) -> None:
        """Log that a replica has become unreachable, or reachable again."""
        silent = neighbour.silent_seconds >= SILENT_SECONDS
        if silent and not neighbour.silent:
            logger.warning(
                "replica unreachable over HTTP, calls to it are refused: url=%s error=%s",
                url,
                neighbour.error,
            )
        elif neighbour.silent and not silent:
            logger.info("replica reachable over HTTP again: url=%s", url)
        neighbour.silent = silent

    def describe(self) -> dict[str, dict[str, Any]]:
        """Return address -> state of the replica, as plain data."""
        return {
            url: {
                "answers": not neighbour.silent,
                "silent_seconds": round(neighbour.silent_seconds, 3),
                "error": neighbour.error,
            }
            for url, neighbour in self._neighbours.items()
        }

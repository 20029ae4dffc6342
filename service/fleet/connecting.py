"""The first connection to NATS, and the reason why there is none."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from nats.aio.client import Client

from wolfstream.service.errors import StartupError

logger = logging.getLogger(__name__)

# After two of these without an answer, the client connects to another server.
_PING_SECONDS = 2
_CONNECT_SECONDS = 2
_RECONNECT_SECONDS = 0.25
# The time limit of the first connection.
_PATIENCE_SECONDS = 20.0
# So many refusals by each server, and nothing else between them, are final.
_REFUSALS_OF_EACH = 2


async def connected_client(servers: Sequence[str], name: str) -> Client:
    """Return a client of any of some servers, which connects again by itself from then on.

    servers: addresses, such as nats://host:4222. name: how the servers list it. Raises
    StartupError if no server can be reached in time, or each has refused this client.
    """
    client, problems = Client(), _Problems(len(servers))
    options: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "reconnect_time_wait": _RECONNECT_SECONDS,
        "max_reconnect_attempts": -1,
        "ping_interval": _PING_SECONDS,
        "max_outstanding_pings": 1,
    }
    connecting = asyncio.ensure_future(
        client.connect(list(servers), name=name, error_cb=problems.note, **options)
    )
    refused = asyncio.ensure_future(problems.refused.wait())
    first: set[asyncio.Future[Any]] = {connecting, refused}
    await asyncio.wait(first, timeout=_PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    refused.cancel()
    if connecting.done() and connecting.exception() is None:
        return client
    connecting.cancel()
    (outcome,) = await asyncio.gather(connecting, return_exceptions=True)
    if isinstance(outcome, Exception):  # such as for an invalid address
        problems.last = str(outcome)
    await client.close()
    raise StartupError(_reason(servers, problems))


class _Problems:
    """What has gone wrong with a client's connections.

    n_servers: how many it tries, one after another. refused: whether all of them have refused who
    asks. refusal: the message of the last one. last: the last problem.
    """

    def __init__(self, n_servers: int) -> None:
        self.refused, self.refusal, self.last = asyncio.Event(), "", ""
        self._most, self._refusals = _REFUSALS_OF_EACH * n_servers, 0

    async def note(self, error: Exception) -> None:
        """Log a problem; called by the client, also of a connection that was there."""
        self.last = str(error) or type(error).__name__
        logger.warning("NATS: %s", self.last)
        if "authorization" in self.last.lower():
            self.refusal = self.last
            self._refusals += 1
        elif not isinstance(error, ConnectionResetError):  # how a refusal looks that came too late
            self._refusals = 0
        if self._refusals >= self._most:
            self.refused.set()


def _reason(servers: Sequence[str], problems: _Problems) -> str:
    places = without_passwords(servers)
    if problems.refused.is_set():
        return (
            f"the NATS servers at {places} refuse this authorization ({problems.refusal}): check "
            "the user and the password, or the token, in the addresses of --fleet"
        )
    problem = problems.refusal or problems.last or f"no answer within {_PATIENCE_SECONDS:g} s"
    return (
        f"no NATS server can be reached at {places}: {problem}; start them first, or name others "
        "with --fleet"
    )


def without_passwords(servers: Sequence[str]) -> str:
    """Return the addresses of servers as messages name them."""
    return ", ".join(server.rpartition("@")[2] for server in servers)

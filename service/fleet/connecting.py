"""The first connection to NATS, and the reason why there is none."""

import asyncio
import logging
import re
import ssl
import time
from collections.abc import Sequence
from typing import Any

from nats.aio.client import Client
from nats.errors import Error

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.login import NOBODY, Login

logger = logging.getLogger(__name__)

# After two of these without an answer, the client connects to another server.
_PING_SECONDS = 2
_CONNECT_SECONDS = 2
_RECONNECT_SECONDS = 0.25
# The time limit of the first connection.
_PATIENCE_SECONDS = 20.0
# So many refusals by each server, and nothing else between them, are final.
_REFUSALS_OF_EACH = 2
# What servers say of somebody whom they do not know, or not any more.
_OF_AUTHORIZATION = "authorization", "authentication", "revoked"
_FORBIDDEN = re.compile(r'permissions violation for (?:publish|subscription) to "([^"]+)"', re.I)
_INBOX = "_inbox."


async def connected_client(
    servers: Sequence[str], name: str, login: Login = NOBODY
) -> "PersistentClient":
    """Return a client of any of some servers, which connects again by itself from then on.

    servers: addresses, such as nats://host:4222. name: how the servers list it. login: who it is,
    unless the addresses say so. Raises StartupError if no server can be reached in time, or each
    has refused this client.
    """
    bare, shown = login.options(servers)
    problems = _Problems(len(servers), login)
    client = PersistentClient(problems)
    options: dict[str, Any] = {
        **shown,
        "connect_timeout": _CONNECT_SECONDS,
        "reconnect_time_wait": _RECONNECT_SECONDS,
        "max_reconnect_attempts": -1,
        "ping_interval": _PING_SECONDS,
        "max_outstanding_pings": 1,
    }
    connecting = asyncio.ensure_future(
        client.connect(bare, name=name, error_cb=problems.note, **options)
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


class PersistentClient(Client):
    """A client that stays one when a server ends its connection for want of an authorization.

    The library's own gives up for good then, though the next connection may show what was renewed.
    So it does also where it connects again already, as the end of the connection came first.
    """

    def __init__(self, problems: "_Problems") -> None:
        super().__init__()
        self._problems = problems

    @property
    def refusals(self) -> int:
        """How many connections the servers have refused for who this client is."""
        return self._problems.refusals

    def forbidden_since(self, began: float, subject: str) -> str:
        """Return what the servers have forbidden since a time that concerns a request."""
        return self._problems.forbidden_since(began, subject)

    async def _process_err(self, err_msg: str) -> None:
        if any(word in err_msg.lower() for word in _OF_AUTHORIZATION):
            await self._problems.note(Error(f"nats: {err_msg.strip()}"))
            await self._process_op_err(Error(f"nats: {err_msg.strip()}"))
            return
        await super()._process_err(err_msg)


class _Problems:
    """What has gone wrong with a client's connections.

    n_servers: how many it tries, one after another. refused: whether all of them have refused who
    asks. refusals: how many connections were. refusal: the message of the last one. last: the last
    problem.
    """

    def __init__(self, n_servers: int, login: Login) -> None:
        self.refused, self.refusal, self.last = asyncio.Event(), "", ""
        self._login = login
        # Subjects that may not be used, and when that was said last, by time.monotonic().
        self._forbidden: dict[str, tuple[float, str]] = {}
        self._most, self._in_a_row = _REFUSALS_OF_EACH * n_servers, 0
        self.refusals = 0

    async def note(self, error: Exception) -> None:
        """Log a problem; called by the client, also of a connection that was there."""
        self.last = str(error) or type(error).__name__
        logger.warning("NATS: %s", self.last)
        self._login.renew_tls()
        if found := _FORBIDDEN.search(self.last):
            self._forbidden[found[1].lower()] = time.monotonic(), self.last
            return
        if _is_refusal(error, self.last):
            self.refusal = self.last
            self.refusals += 1
            # A certificate is the same the next time.
            is_certificate = isinstance(error, ssl.SSLCertVerificationError)
            self._in_a_row += _REFUSALS_OF_EACH if is_certificate else 1
        elif not isinstance(error, ConnectionResetError):  # how a refusal looks that came too late
            self._in_a_row = 0
        if self._in_a_row >= self._most:
            self.refused.set()

    def forbidden_since(self, began: float, subject: str) -> str:
        """Return what was forbidden: a subject since a time, or ever the subscription to answers.

        The library subscribes to answers once, and tells of all in small letters.
        """
        for of, (at, message) in self._forbidden.items():
            if of.startswith(_INBOX) or (of == subject.lower() and at >= began):
                return message
        return ""


def _is_refusal(error: Exception, text: str) -> bool:
    """Return whether another attempt with the same files would fail alike."""
    if isinstance(error, ssl.SSLError):
        return True
    return any(word in text.lower() for word in _OF_AUTHORIZATION)


def _reason(servers: Sequence[str], problems: _Problems) -> str:
    places = without_passwords(servers)
    refusal = problems.refusal
    if "ssl" in refusal.lower():
        return (
            f"no connection over TLS to the NATS servers at {places} ({refusal}): name the "
            "authority that has signed their certificates with WOLFSTREAM_NATS_CA, and with "
            "WOLFSTREAM_NATS_CERT and _KEY what they ask this server for"
        )
    if problems.refused.is_set():
        return (
            f"the NATS servers at {places} refuse this authorization ({refusal}): check the user "
            "and the password, or the token, in the addresses of --fleet, with characters such as "
            "@ and / percent-encoded, or the file that WOLFSTREAM_NATS_PASSWORD_FILE, "
            "_CREDENTIALS or _NKEY_SEED names"
        )
    problem = refusal or problems.last or f"no answer within {_PATIENCE_SECONDS:g} s"
    return (
        f"no NATS server can be reached at {places}: {problem}; start them first, or name others "
        "with --fleet"
    )


def without_passwords(servers: Sequence[str]) -> str:
    """Return the addresses of servers as messages name them."""
    return ", ".join(server.rpartition("@")[2] for server in servers)

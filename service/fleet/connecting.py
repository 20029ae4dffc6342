"""Connects to NATS for the first time; an error says why that failed."""

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

# After two pings without a response, the client connects to another server.
_PING_SECONDS = 2
_CONNECT_SECONDS = 2
_RECONNECT_SECONDS = 0.25
# Timeout of the first connection.
_FIRST_CONNECT_SECONDS = 20.0
# After this many refusals by each server in a row, the client gives up.
_MAX_REFUSALS_EACH = 2
# Words in the errors of servers that refuse a client's credentials.
_AUTHORIZATION_WORDS = "authorization", "authentication", "revoked"
_FORBIDDEN = re.compile(r'permissions violation for (?:publish|subscription) to "([^"]+)"', re.I)
_INBOX = "_inbox."


async def connected_client(
    servers: Sequence[str], name: str, login: Login = NOBODY
) -> "PersistentClient":
    """Connect to one of several servers; the client reconnects by itself from then on.

    Args:
        servers: addresses, such as nats://host:4222.
        name: the name under which the servers list the client.
        login: the client's credentials, unless the addresses have them.

    Raises StartupError if no server can be reached in time, or each has refused this client.
    """
    bare, login_options = login.options(servers)
    problems = _Problems(len(servers), login)
    client = PersistentClient(problems)
    options: dict[str, Any] = {
        **login_options,
        "connect_timeout": _CONNECT_SECONDS,
        "reconnect_time_wait": _RECONNECT_SECONDS,
        "max_reconnect_attempts": -1,
        "ping_interval": _PING_SECONDS,
        "max_outstanding_pings": 1,
    }
    connecting = asyncio.ensure_future(
        client.connect(bare, name=name, error_cb=problems.record, **options)
    )
    refused = asyncio.ensure_future(problems.refused.wait())
    first: set[asyncio.Future[Any]] = {connecting, refused}
    await asyncio.wait(first, timeout=_FIRST_CONNECT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    refused.cancel()
    if connecting.done() and connecting.exception() is None:
        return client
    connecting.cancel()
    (outcome,) = await asyncio.gather(connecting, return_exceptions=True)
    if isinstance(outcome, Exception):  # for example, for an invalid address
        problems.last = str(outcome)
    await client.close()
    raise StartupError(_reason(servers, problems))


class PersistentClient(Client):
    """A client that also reconnects after a server has closed its connection as unauthorized.

    The library's own client then gives up finally, even if it is already reconnecting. But the
    credentials may have been renewed, and the next connection uses the new ones.
    """

    def __init__(self, problems: "_Problems") -> None:
        super().__init__()
        self._problems = problems

    @property
    def refusals(self) -> int:
        """The number of connections that the servers have refused as unauthorized."""
        return self._problems.refusals

    def forbidden_since(self, began: float, subject: str) -> str:
        """Return why the servers forbade a request that began at a time; "" if they did not."""
        return self._problems.forbidden_since(began, subject)

    async def _process_err(self, err_msg: str) -> None:
        if any(word in err_msg.lower() for word in _AUTHORIZATION_WORDS):
            await self._problems.record(Error(f"nats: {err_msg.strip()}"))
            await self._process_op_err(Error(f"nats: {err_msg.strip()}"))
            return
        await super()._process_err(err_msg)


class _Problems:
    """The problems of a client's connections.

    Attributes:
        refused: set once all servers have refused the client as unauthorized.
        refusals: number of refused connections.
        refusal: message of the last refusal.
        last: message of the last problem.
    """

    def __init__(self, n_servers: int, login: Login) -> None:
        """Begin without problems.

        Args:
            n_servers: number of servers that the client tries, one after another.
            login: the credentials, whose certificates are read again after each problem.
        """
        self.refused, self.refusal, self.last = asyncio.Event(), "", ""
        self._login = login
        # Forbidden subject in lower case -> (when, why) of the last such error.
        self._forbidden: dict[str, tuple[float, str]] = {}
        # The refusals in a row after which the client gives up, and those so far.
        self._max_refusals, self._in_a_row = _MAX_REFUSALS_EACH * n_servers, 0
        self.refusals = 0

    async def record(self, error: Exception) -> None:
        """Log and record a problem; the client calls it, also for established connections."""
        self.last = str(error) or type(error).__name__
        logger.warning("NATS: %s", self.last)
        self._login.renew_tls()
        if match := _FORBIDDEN.search(self.last):
            self._forbidden[match[1].lower()] = time.monotonic(), self.last
            return
        if _is_refusal(error, self.last):
            self.refusal = self.last
            self.refusals += 1
            # A second attempt would fail with the same certificate.
            is_certificate = isinstance(error, ssl.SSLCertVerificationError)
            self._in_a_row += _MAX_REFUSALS_EACH if is_certificate else 1
        elif not isinstance(error, ConnectionResetError):  # a late refusal looks like a reset
            self._in_a_row = 0
        if self._in_a_row >= self._max_refusals:
            self.refused.set()

    def forbidden_since(self, began: float, subject: str) -> str:
        """Return why the servers forbade a request: its subject, or its inbox for the reply.

        The library subscribes to the inbox only once, so its error may be older than the request.
        It reports subjects in lower case.
        """
        for forbidden, (at, message) in self._forbidden.items():
            if forbidden.startswith(_INBOX) or (forbidden == subject.lower() and at >= began):
                return message
        return ""


def _is_refusal(error: Exception, text: str) -> bool:
    """Return whether another attempt with the same credentials would fail in the same way."""
    if isinstance(error, ssl.SSLError):
        return True
    return any(word in text.lower() for word in _AUTHORIZATION_WORDS)


def _reason(servers: Sequence[str], problems: _Problems) -> str:
    """Return why the connection failed, and what to do."""
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
    problem = refusal or problems.last or f"no answer within {_FIRST_CONNECT_SECONDS:g} s"
    return (
        f"no NATS server can be reached at {places}: {problem}; start them first, or name others "
        "with --fleet"
    )


def without_passwords(servers: Sequence[str]) -> str:
    """Return the addresses of servers for messages, without users and passwords."""
    return ", ".join(server.rpartition("@")[2] for server in servers)

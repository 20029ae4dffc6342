"""Connects to NATS for the first time: how a client authenticates, and why connecting failed.

Passwords, tokens and `.creds` files are read again for each connection, so they can be renewed
without a restart: replace the file, then reconfigure the servers, which close the connections that
used the old one. Replace a file atomically, by a rename.
"""

import asyncio
import logging
import re
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from nats.aio.client import Client, RawCredentials
from nats.errors import Error

from wolfstream.service.errors import StartupError

logger = logging.getLogger(__name__)

# Lines of a `.creds` file that precede its token and its seed.
_MARKS = "BEGIN NATS USER JWT", "BEGIN USER NKEY SEED"


class Login(NamedTuple):
    """Credentials in addition to those in the servers' addresses, and the settings of TLS.

    Attributes:
        user: the user whose password is in `password_file`; if empty, that file has a token.
        password_file: a file with a password or token; None if the addresses have it.
        credentials: a `.creds` file, with a token (JWT) and the seed of its key.
        nkey_seed: a file with the seed of an nkey.
        tls: verifies the servers and presents a certificate; None trusts the system's authorities.
        renew_tls: reads the certificates again, for the next connection.
    """

    user: str = ""
    password_file: Path | None = None
    credentials: Path | None = None
    nkey_seed: Path | None = None
    tls: ssl.SSLContext | None = None
    renew_tls: Callable[[], None] = lambda: None

    def options(self, servers: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
        """Return the addresses without users, and the client's options.

        Raises StartupError, also if there is more than one identity to show.
        """
        bare, from_addresses = _split_users(servers)
        identities = [from_addresses] if from_addresses else []
        if self.password_file is not None:
            read = _SecretFile(self.password_file, "password")
            identities.append(
                {"user": self.user, "password": read} if self.user else {"token": read}
            )
        if self.credentials is not None:
            _check_nkeys_installed()
            identities.append({"user_credentials": _Credentials(self.credentials)})
        if self.nkey_seed is not None:
            _check_nkeys_installed()
            identities.append({"nkeys_seed": str(_checked_seed(self.nkey_seed))})
        if len(identities) > 1:
            raise StartupError(
                "there is more than one identity for NATS: give either users in the addresses of "
                "--fleet, or one of WOLFSTREAM_NATS_PASSWORD_FILE, _CREDENTIALS and _NKEY_SEED"
            )
        tls = {} if self.tls is None else {"tls": self.tls}
        return bare, {**tls, **(identities[0] if identities else {})}


NOBODY = Login()


class _SecretFile:
    """A callable that returns the text of a file, which may be replaced at any time."""

    def __init__(self, path: Path, what: str, marks: Sequence[str] = ()) -> None:
        """Read the file once.

        Args:
            path: path of the file.
            what: description of its content, for messages.
            marks: texts that it must contain.

        Raises StartupError.
        """
        self._path, self._what, self._marks = path, what, marks
        self._text = self._read()

    def _read(self) -> str:
        try:
            text = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StartupError(f"the {self._what} {self._path} cannot be read: {reason}") from None
        missing = [mark for mark in self._marks if mark not in text]
        if missing or not text:
            raise StartupError(f"{self._path} is no {self._what}: it has no {missing or 'text'}")
        return text

    def __call__(self) -> str:
        """Return the present text of the file; if it cannot be read, the previous text."""
        try:
            self._text = self._read()
        except StartupError as error:
            logger.warning("NATS: the previous %s is used again: %s", self._what, error)
        return self._text


class _Credentials(RawCredentials):
    """The content of a `.creds` file, read for each connection."""

    def __init__(self, path: Path) -> None:
        self._file = _SecretFile(path, "file of credentials", _MARKS)

    @property
    def data(self) -> str:  # type: ignore[override]  # an attribute that the client reads
        """The present content of the file."""
        return self._file() + "\n"


def _split_users(servers: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return addresses without users, and the options for the user, password or token in them.

    They are percent-decoded here, because the library does not decode them. Raises StartupError if
    the addresses have different ones.
    """
    users = {urlsplit(server).netloc.rpartition("@")[0] for server in servers}
    if users == {""}:
        return list(servers), {}
    if len(users) > 1:
        raise StartupError(
            "the addresses of --fleet name different users: give each address the same user"
        )
    user, has_password, password = users.pop().partition(":")
    bare = [
        server.replace(urlsplit(server).netloc.rpartition("@")[0] + "@", "", 1)
        for server in servers
    ]
    if not has_password:
        return bare, {"token": unquote(user)}
    return bare, {"user": unquote(user), "password": unquote(password)}


def _check_nkeys_installed() -> None:
    """Raise StartupError without the package that signs with credentials and nkeys."""
    try:
        import nkeys  # noqa: F401
    except ModuleNotFoundError:
        raise StartupError(
            "credentials and nkeys of NATS need the package nkeys: pip install nkeys"
        ) from None


def _checked_seed(path: Path) -> Path:
    """Return the path of a file if it has the seed of an nkey. Raises StartupError otherwise."""
    import nkeys

    seed = _SecretFile(path, "seed of an nkey")()
    try:
        nkeys.from_seed(bytearray(seed.encode())).wipe()
    except Exception as error:  # the library raises errors of several kinds, base64's included
        raise StartupError(f"{path} is not the seed of an nkey: {error!r}") from None
    return path


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

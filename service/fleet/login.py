"""How a client authenticates to NATS servers, and which servers it trusts: options for `connect`.

Passwords, tokens and `.creds` files are read again for each connection, so they can be renewed
without a restart: replace the file, then reconfigure the servers, which close the connections that
used the old one. Replace a file atomically, by a rename.
"""

import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from nats.aio.client import RawCredentials

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

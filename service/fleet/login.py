"""How a client shows NATS servers who it is, and whom it trusts: its options for `connect`.

Passwords, tokens and `.creds` files are read again whenever a connection is made. So they are
renewed without a restart: replace the file, then let the servers know, which end the connections of
those who showed the old one. A file must be replaced at once, by a rename.
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

# What a `.creds` file has before its token and its seed.
_MARKS = "BEGIN NATS USER JWT", "BEGIN USER NKEY SEED"


class Login(NamedTuple):
    """What is shown to the servers beside what their addresses say, and whom they are trusted by.

    Attributes:
        user: the name for the password in `password_file`; without it that is a token.
        password_file: holds a password or a token; None if the addresses have them.
        credentials: a `.creds` file, with a token (JWT) and the seed that signs for it.
        nkey_seed: a file with the seed of an nkey.
        tls: what verifies the servers, and shows a certificate; None for the system's authorities.
        renew_tls: reads the certificates again, for the next connection.
    """

    user: str = ""
    password_file: Path | None = None
    credentials: Path | None = None
    nkey_seed: Path | None = None
    tls: ssl.SSLContext | None = None
    renew_tls: Callable[[], None] = lambda: None

    def options(self, servers: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
        """Return the addresses without users, and the options that show who connects.

        Raises StartupError.
        """
        bare, of_addresses = _parted(servers)
        given = [of_addresses] if of_addresses else []
        if self.password_file is not None:
            read = _File(self.password_file, "password")
            given.append({"user": self.user, "password": read} if self.user else {"token": read})
        if self.credentials is not None:
            _check_signs()
            given.append({"user_credentials": _Credentials(self.credentials)})
        if self.nkey_seed is not None:
            _check_signs()
            given.append({"nkeys_seed": str(_checked_seed(self.nkey_seed))})
        if len(given) > 1:
            raise StartupError(
                "NATS is to be shown more than one identity: give either users in the addresses of "
                "--fleet, or WOLFSTREAM_NATS_PASSWORD_FILE, _CREDENTIALS or _NKEY_SEED"
            )
        tls = {} if self.tls is None else {"tls": self.tls}
        return bare, {**tls, **(given[0] if given else {})}


NOBODY = Login()


class _File:
    """A file with a text that may be replaced. Raises StartupError unless it can be read now."""

    def __init__(self, path: Path, what: str, marks: Sequence[str] = ()) -> None:
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
        """Return the text that the file has now, or the last one that could be read."""
        try:
            self._text = self._read()
        except StartupError as error:
            logger.warning("NATS: the last %s is shown again: %s", self._what, error)
        return self._text


class _Credentials(RawCredentials):
    """The content of a `.creds` file at the time of each connection."""

    def __init__(self, path: Path) -> None:
        self._file = _File(path, "file of credentials", _MARKS)

    @property
    def data(self) -> str:  # type: ignore[override]  # which the client reads
        """What the file has now."""
        return self._file() + "\n"


def _parted(servers: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return addresses without their users, and the user, password or token that they name.

    The library takes what an address says as it stands there, percent signs included. Raises
    StartupError.
    """
    found = {urlsplit(server).netloc.rpartition("@")[0] for server in servers}
    if found == {""}:
        return list(servers), {}
    if len(found) > 1:
        raise StartupError(
            "the addresses of --fleet name different users: give each of them the same one"
        )
    user, has_password, password = found.pop().partition(":")
    bare = [
        server.replace(urlsplit(server).netloc.rpartition("@")[0] + "@", "", 1)
        for server in servers
    ]
    if not has_password:
        return bare, {"token": unquote(user)}
    return bare, {"user": unquote(user), "password": unquote(password)}


def _check_signs() -> None:
    try:
        import nkeys  # noqa: F401
    except ModuleNotFoundError:
        raise StartupError(
            "credentials and nkeys of NATS need the package nkeys: pip install nkeys"
        ) from None


def _checked_seed(path: Path) -> Path:
    import nkeys

    seed = _File(path, "seed of an nkey")()
    try:
        nkeys.from_seed(bytearray(seed.encode())).wipe()
    except Exception as error:  # the library raises errors of several kinds, also of base64
        raise StartupError(f"{path} is no seed of an nkey: {error!r}") from None
    return path

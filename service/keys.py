"""API keys: who may use a server, and over which models.

`DIR/keys.json` holds what is known of each key, and of the key itself its SHA-256 only. A plain
hash suffices where a password would need salt and a slow one: 160 random bits are neither
guessed nor found in a table. Commands replace the file as a whole; a server that runs looks at
it twice a second.

Where the file exists keys are needed, also where it has none any more: then nobody is let in.
"""

import contextlib
import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from service.errors import Forbidden, Unauthenticated, WolfstreamError
from service.quota import Quota

Scope = Literal["predict", "learn", "admin"]

_FILE = "keys.json"
# A scanner of leaked secrets, or a person, knows a key by these letters.
_MARK = "wfs"
_ID_BYTES, _SECRET_BYTES = 4, 20
# The answer to a learned sample tells what the model predicted for it, so learn has predict.
_IMPLIED: dict[Scope, frozenset[Scope]] = {
    "predict": frozenset({"predict"}),
    "learn": frozenset({"predict", "learn"}),
    "admin": frozenset({"predict", "learn", "admin"}),
}


class KeysError(WolfstreamError):
    """The keys cannot be read or changed; the message says what to do."""


class Key(BaseModel):
    """What is kept of a key.

    id: the part of the key that is no secret; the key is found by it, and named in listings.
    digest: SHA-256 of the whole key, hexadecimal.
    prefix: the key is good for models whose names begin so.
    samples_per_second: rows that may be learned or predicted with it; None for any number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    id: str
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    scopes: tuple[Scope, ...]
    prefix: str
    created: datetime
    samples_per_second: float | None = Field(gt=0, allow_inf_nan=False)


_KEYS = TypeAdapter(list[Key])


class Grant(NamedTuple):
    """What the sender of a request may do.

    key_id: of the key, empty where none is needed.
    """

    key_id: str
    scopes: frozenset[Scope]
    prefix: str
    quota: Quota | None

    def check_quota(self) -> None:
        """Raise QuotaExceeded where the key has to wait before it may send more samples."""
        if self.quota is not None:
            self.quota.check()

    def spend(self, samples: int) -> None:
        """Note samples that are learned or predicted."""
        if self.quota is not None:
            self.quota.spend(samples)

    def check(self, scope: Scope) -> None:
        """Raise Forbidden where the key does not have this scope."""
        if scope not in self.scopes:
            raise Forbidden(f"this key does not have the scope {scope!r}; use one that has")

    def check_model(self, name: str) -> None:
        """Raise Forbidden where the key is not for this model, whether or not it exists."""
        if not name.startswith(self.prefix):
            raise Forbidden(f"this key is for models whose names begin with {self.prefix!r}")

    def check_all_models(self) -> None:
        """Raise Forbidden where the key is for some models only."""
        if self.prefix:
            raise Forbidden(f"this key is only for models whose names begin with {self.prefix!r}")


def add_key(
    data: Path,
    name: str,
    scopes: tuple[Scope, ...],
    prefix: str = "",
    samples_per_second: float | None = None,
) -> str:
    """A new key; nothing else knows it afterwards. Raises KeysError."""
    key_id = f"{_MARK}_{secrets.token_hex(_ID_BYTES)}"
    key = f"{key_id}_{secrets.token_hex(_SECRET_BYTES)}"
    with _changing(data) as keys:
        if any(other.name == name for other in keys):
            raise KeysError(f"there is a key {name!r}; revoke it first, or choose another name")
        keys.append(
            Key(
                name=name,
                id=key_id,
                digest=_digest(key.encode()),
                scopes=scopes,
                prefix=prefix,
                created=datetime.now(UTC).replace(microsecond=0),
                samples_per_second=samples_per_second,
            )
        )
    return key


def revoke_key(data: Path, name: str) -> None:
    """Forget a key. Raises KeysError where there is none of this name."""
    with _changing(data) as keys:
        left = [key for key in keys if key.name != name]
        if len(left) == len(keys):
            raise KeysError(
                f"there is no key {name!r} in {data / _FILE}; see `wolfstream keys list`"
            )
        keys[:] = left


def read_keys(data: Path) -> list[Key] | None:
    """The keys of a data directory; None where none was ever made. Raises KeysError."""
    path = data / _FILE
    try:
        return _KEYS.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KeysError(
            f"{path} cannot be read: {error.strerror}; it must belong to the server's user"
        ) from error
    except ValidationError as error:
        raise KeysError(
            f"{path} is damaged: {error.errors()[0]['msg']}; "
            "restore it, or delete it and add keys anew"
        ) from None


class KeyRing:
    """The keys of a running server, as they are in its data directory now.

    Raises KeysError where they cannot be read.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._seen = self._stamp()
        self._required = False
        self._keys: dict[str, Key] = {}
        self._grants: dict[str, Grant] = {}
        self._everybody = Grant("", _IMPLIED["admin"], "", None)
        self._take(read_keys(data))

    @property
    def required(self) -> bool:
        """Whether a request needs a key."""
        return self._required

    def refresh(self) -> bool:
        """Whether the file has changed since the last look; then its keys are those in force.

        A file that is gone changes nothing: it shuts nobody in and nobody out by accident.
        Raises KeysError where the file cannot be read; the keys stay as they were, and the next
        call looks again.
        """
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        keys = read_keys(self._data)
        self._seen = stamp
        if keys is None:
            return False
        self._take(keys)
        return True

    def grant(self, authorization: bytes | None) -> Grant:
        """What the bearer of an `Authorization` header may do. Raises Unauthenticated."""
        if not self._required:
            return self._everybody
        scheme, _, key = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer":
            raise Unauthenticated("this server needs a key; send Authorization: Bearer KEY")
        key = key.strip()
        found = self._keys.get(key.rpartition(b"_")[0].decode("latin-1"))
        if found is None or not hmac.compare_digest(found.digest, _digest(key)):
            raise Unauthenticated("the key is not known here; it may have been revoked")
        return self._grants[found.id]

    def holds(self, grant: Grant) -> bool:
        """Whether what was granted is still so."""
        if not self._required:
            return True
        return self._grants.get(grant.key_id) is grant

    def _take(self, keys: list[Key] | None) -> None:
        """Put keys in force; the grants of those that are the same stay the same objects."""
        self._required = keys is not None
        before, grants = self._keys, self._grants
        self._keys = {key.id: key for key in keys or []}
        self._grants = {
            key.id: grants[key.id] if before.get(key.id) == key else _grant_of(key)
            for key in self._keys.values()
        }

    def _stamp(self) -> tuple[int, ...] | None:
        """What differs between two versions of the file."""
        try:
            stat = (self._data / _FILE).stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size, stat.st_uid, stat.st_mode


def _grant_of(key: Key) -> Grant:
    scopes = frozenset[Scope]().union(*(_IMPLIED[scope] for scope in key.scopes))
    quota = None if key.samples_per_second is None else Quota(key.samples_per_second)
    return Grant(key.id, scopes, key.prefix, quota)


def _digest(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


@contextlib.contextmanager
def _changing(data: Path) -> Iterator[list[Key]]:
    """The keys, written back as they are at the end; one command at a time."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        folder = os.open(data, os.O_RDONLY)
    except OSError as error:
        raise KeysError(f"the data directory {data} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        keys = read_keys(data) or []
        yield keys
        _write(data / _FILE, _KEYS.dump_json(keys, indent=1))
        os.fsync(folder)
    except OSError as error:
        raise KeysError(f"{data / _FILE} cannot be written: {error.strerror}") from error
    finally:
        os.close(folder)


def _write(path: Path, content: bytes) -> None:
    """Replace a file that nobody else may read, durably once its directory is fsynced."""
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            if os.geteuid() == 0:
                # An administrator's command must not take the file away from the server's user.
                owner = path.parent.stat()
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise

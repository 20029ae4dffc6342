"""API keys: who may use a server, and for which models.

Only the SHA-256 of a key is kept. A plain hash suffices where a password would need salt and a
slow one: 160 random bits can neither be guessed nor found in a table.
"""

import hashlib
import secrets
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from wolfstream.service.access.scopes import Scope
from wolfstream.service.errors import WolfstreamError

# A scanner of leaked secrets, or a person, recognises a key by these letters.
_MARK = "wfs"
_ID_BYTES, _SECRET_BYTES = 4, 20


class KeysError(WolfstreamError):
    """The keys cannot be read or changed; the message says what to do."""


class Key(BaseModel):
    """What is stored about a key.

    id: the part of the key that is no secret; the key is found by it, and named in listings.
    digest: SHA-256 of the whole key, hexadecimal.
    prefix: the key is good for models whose names begin with it.
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


class ApiKeys(Protocol):
    """Where the keys of a server are kept; commands change them while the server runs.

    Once a key was added, requests need keys, even after the last one was revoked: then no client is
    admitted.

    name: what messages call it, such as the path of its file.
    """

    name: str

    def read(self) -> list[Key] | None:
        """Return all keys; None if none was ever added. Raises KeysError."""

    def version(self) -> object:
        """Return a value that differs after each change; None if there is nothing to read."""

    def changing(self) -> AbstractContextManager[list[Key]]:
        """Return all keys, to be changed in place by one process at a time.

        They are durable, as the `with` block leaves them, once it has ended. Raises KeysError.
        """


def add_key(
    keys: ApiKeys,
    name: str,
    scopes: tuple[Scope, ...],
    prefix: str = "",
    samples_per_second: float | None = None,
) -> str:
    """Add a new key and return it; it cannot be found again. Raises KeysError."""
    key_id = f"{_MARK}_{secrets.token_hex(_ID_BYTES)}"
    key = f"{key_id}_{secrets.token_hex(_SECRET_BYTES)}"
    with keys.changing() as known:
        if any(other.name == name for other in known):
            raise KeysError(f"there is a key {name!r}; revoke it first, or choose another name")
        known.append(
            Key(
                name=name,
                id=key_id,
                digest=digest(key.encode()),
                scopes=scopes,
                prefix=prefix,
                created=datetime.now(UTC).replace(microsecond=0),
                samples_per_second=samples_per_second,
            )
        )
    return key


def revoke_key(keys: ApiKeys, name: str) -> None:
    """Remove a key. Raises KeysError if there is none of this name."""
    with keys.changing() as known:
        left = [key for key in known if key.name != name]
        if len(left) == len(known):
            raise KeysError(f"there is no key {name!r} in {keys.name}; see `wolfstream keys list`")
        known[:] = left


def digest(key: bytes) -> str:
    """Return the SHA-256 of a whole key, hexadecimal."""
    return hashlib.sha256(key).hexdigest()

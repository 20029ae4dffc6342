"""API keys: who may use a server, for what, and for which models.

Only the SHA-256 of a key is stored. A password would need salt and a slow hash; a key has 160
random bits, which can neither be guessed nor found in a table, so a plain hash suffices.
"""

import hashlib
import secrets
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from wolfstream.service.access.scopes import Scope
from wolfstream.service.errors import WolfstreamError

# All keys begin with this, so that people and secret scanners recognise them.
_MARK = "wfs"
_ID_BYTES, _SECRET_BYTES = 4, 20


class KeysError(WolfstreamError):
    """The keys cannot be read or changed; the message says why, and what to do."""


class Key(BaseModel):
    """What is stored about a key.

    Attributes:
        name: of the client.
        id: the part of the key that is not secret, for lookups and listings.
        digest: SHA-256 of the whole key, hexadecimal.
        scopes: what the key allows.
        prefix: the key is for models whose names begin with it.
        created: when it was added.
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
    """The stored keys of a server; commands change them while the server runs.

    Once a key has been added, requests need one. If all are revoked later, no client is admitted.

    Attributes:
        name: where the keys are stored, for messages; such as the path of a file.
    """

    name: str

    def read(self) -> list[Key] | None:
        """Return all keys; None if none has ever been added. Raises KeysError."""

    def version(self) -> object:
        """Return a value that differs after each change; None if no keys are stored."""

    def changing(self) -> AbstractContextManager[list[Key]]:
        """Yield all keys, to be changed in place; only one process at a time can do so.

        The changed keys are durable once the `with` block has ended. Raises KeysError.
        """


def add_key(
    keys: ApiKeys,
    name: str,
    scopes: tuple[Scope, ...],
    prefix: str = "",
    samples_per_second: float | None = None,
) -> str:
    """Add a new key, and return it. It cannot be shown again: only its digest is stored.

    Args:
        keys: the stored keys.
        name: the client's name; no other key may have it.
        scopes: what the key allows.
        prefix: the key is for models whose names begin with it.
        samples_per_second: the quota; None for any number.

    Raises KeysError.
    """
    key_id = f"{_MARK}_{secrets.token_hex(_ID_BYTES)}"
    key = f"{key_id}_{secrets.token_hex(_SECRET_BYTES)}"
    with keys.changing() as stored:
        if any(other.name == name for other in stored):
            raise KeysError(f"there is a key {name!r}; revoke it first, or choose another name")
        stored.append(
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
    """Remove the key with a name. Raises KeysError if there is none."""
    with keys.changing() as stored:
        others = [key for key in stored if key.name != name]
        if len(others) == len(stored):
            raise KeysError(f"there is no key {name!r} in {keys.name}; see `wolfstream keys list`")
        stored[:] = others


def digest(key: bytes) -> str:
    """Return the SHA-256 of a whole key, hexadecimal."""
    return hashlib.sha256(key).hexdigest()

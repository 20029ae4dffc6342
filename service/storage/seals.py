"""Seals: the content of a row in the journal, preceded by a digest of the whole row.

SQLite checks the structure of its pages, but not their content.
"""

import hashlib
from typing import Any

# Nothing in MessagePack or JSON begins with this byte.
_MARK = b"\xc1"
_DIGEST_BYTES = 8


class BrokenSeal(Exception):
    """The row is not what was written."""

    def __str__(self) -> str:
        return "a row does not match its checksum"


def seal(content: bytes, *columns: object) -> bytes:
    """Return the content, sealed together with the row's other values."""
    return _MARK + _digest(content, columns) + content


def unseal(sealed: Any, *columns: object) -> bytes:
    """Invert `seal`. Raises BrokenSeal."""
    if not isinstance(sealed, bytes) or not sealed.startswith(_MARK):
        raise BrokenSeal
    digest, content = sealed[1 : 1 + _DIGEST_BYTES], sealed[1 + _DIGEST_BYTES :]
    if digest != _digest(content, columns):
        raise BrokenSeal
    return content


def unseal_if_marked(sealed: Any, *columns: object) -> bytes:
    """Inverse of `seal`; content that an earlier version wrote without a seal is returned as it is.

    Raises BrokenSeal.
    """
    if isinstance(sealed, bytes) and not sealed.startswith(_MARK):
        return sealed
    return unseal(sealed, *columns)


def _digest(content: bytes, columns: tuple[object, ...]) -> bytes:
    hashed = hashlib.blake2b(repr(columns).encode(), digest_size=_DIGEST_BYTES)
    hashed.update(content)
    return hashed.digest()

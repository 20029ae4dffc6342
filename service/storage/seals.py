"""Seals: a row's content in the journal, preceded by a digest of the whole row.

SQLite checks the structure of its pages, not their content: a seal reveals damage there. It does
not prove who wrote a row.
"""

import hashlib
from typing import Any

# First byte of a seal. Neither MessagePack nor JSON ever begins with it.
_MARK = b"\xc1"
_DIGEST_BYTES = 8


class BrokenSeal(Exception):
    """A row differs from what was written."""

    def __str__(self) -> str:
        return "a row does not match its checksum"


def seal(content: bytes, *columns: object) -> bytes:
    """Return the content with a seal over it and the row's other columns."""
    return _MARK + _digest(content, columns) + content


def unseal(sealed: Any, *columns: object) -> bytes:
    """Invert `seal`. Raises BrokenSeal."""
    if not isinstance(sealed, bytes) or not sealed.startswith(_MARK):
        raise BrokenSeal
    digest, content = sealed[1 : 1 + _DIGEST_BYTES], sealed[1 + _DIGEST_BYTES :]
    if digest != _digest(content, columns):
        raise BrokenSeal
    return content


def _digest(content: bytes, columns: tuple[object, ...]) -> bytes:
    hashed = hashlib.blake2b(repr(columns).encode(), digest_size=_DIGEST_BYTES)
    hashed.update(content)
    return hashed.digest()

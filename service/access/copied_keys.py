"""Copies of the API keys, which one process of a server sends to another."""

from contextlib import AbstractContextManager

from pydantic import TypeAdapter

from wolfstream.service.access.keys import Key, KeysError

_KEYS = TypeAdapter(list[Key])


def encode_keys(keys: list[Key] | None) -> bytes | None:
    """Return keys as bytes for `CopiedKeys`; None if requests need no key."""
    return None if keys is None else _KEYS.dump_json(keys)


class CopiedKeys:
    """`access.keys.ApiKeys` that another process stores, and sends to this one."""

    name = "the process that learns"

    def __init__(self, content: bytes | None) -> None:
        """Begin with the first copy.

        Args:
            content: the result of `encode_keys`.
        """
        self._version = 0
        self._keys: list[Key] | None = None
        self.take(content)

    def take(self, content: bytes | None) -> None:
        """Replace all keys.

        Args:
            content: the result of `encode_keys`.
        """
        self._version += 1
        self._keys = None if content is None else _KEYS.validate_json(content)

    def read(self) -> list[Key] | None:
        """Return all keys, as last copied; None if requests need no key."""
        return self._keys

    def version(self) -> int:
        """Return how often the keys have been copied."""
        return self._version

    def changing(self) -> AbstractContextManager[list[Key]]:
        """Raise KeysError: only the process that stores keys can change them."""
        raise KeysError(f"the keys are stored by {self.name}; change them there")

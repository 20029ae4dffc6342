"""API keys as one process of a server sends them to another."""

from contextlib import AbstractContextManager

from pydantic import TypeAdapter

from wolfstream.service.access.keys import Key, KeysError

_KEYS = TypeAdapter(list[Key])


def written(keys: list[Key] | None) -> bytes | None:
    """Return keys as `CopiedKeys` takes them; None if none is needed."""
    return None if keys is None else _KEYS.dump_json(keys)


class CopiedKeys:
    """`access.keys.ApiKeys` that another process keeps. content: as `written` returns it."""

    name = "the process that learns"

    def __init__(self, content: bytes | None) -> None:
        self._version = 0
        self._keys: list[Key] | None = None
        self.take(content)

    def take(self, content: bytes | None) -> None:
        """Use these keys from now on."""
        self._version += 1
        self._keys = None if content is None else _KEYS.validate_json(content)

    def read(self) -> list[Key] | None:
        """Return all keys, as they came last."""
        return self._keys

    def version(self) -> int:
        """Return how often keys came."""
        return self._version

    def changing(self) -> AbstractContextManager[list[Key]]:
        """Raise KeysError: keys are changed where they are kept."""
        raise KeysError(f"the keys are kept by {self.name}; change them there")

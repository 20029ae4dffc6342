"""API keys in a file of the data directory, and their copies in other processes of a server.

Each change replaces the whole file.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from wolfstream.service.access.keys import Key, KeysError

_KEYS = TypeAdapter(list[Key])


class KeyFile:
    """`access.keys.ApiKeys` in `DIR/keys.json`, which exists once a key has been added."""

    def __init__(self, data: Path) -> None:
        """Use a data directory, which may be missing."""
        self._data = data
        self._path = data / "keys.json"
        self.name = str(self._path)

    def read(self) -> list[Key] | None:
        """Return all keys; None if none has ever been added. Raises KeysError."""
        try:
            return _KEYS.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeysError(
                f"{self._path} cannot be read: {error.strerror}; it must belong to the server's "
                "user"
            ) from error
        except ValidationError as error:
            raise KeysError(
                f"{self._path} is damaged: {error.errors()[0]['msg']}; "
                "restore it, or delete it and add the keys again"
            ) from None

    def version(self) -> tuple[int, ...] | None:
        """Return a value that differs between any two versions of the file; None without one."""
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size, stat.st_uid, stat.st_mode

    @contextlib.contextmanager
    def changing(self) -> Iterator[list[Key]]:
        """Yield all keys, and write them after the block; only one process at a time can do so.

        Raises KeysError.
        """
        try:
            self._data.mkdir(parents=True, exist_ok=True)
            folder = os.open(self._data, os.O_RDONLY)
        except OSError as error:
            raise KeysError(
                f"the data directory {self._data} cannot be used: {error.strerror}"
            ) from error
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            keys = self.read() or []
            yield keys
            _replace(self._path, _KEYS.dump_json(keys, indent=1))
            os.fsync(folder)
        except OSError as error:
            raise KeysError(f"{self._path} cannot be written: {error.strerror}") from error
        finally:
            os.close(folder)


def _replace(path: Path, content: bytes) -> None:
    """Replace a file that only its owner may read; durable once its directory is fsynced."""
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            if os.geteuid() == 0:
                # The server's user must be able to read the file, also if root runs the command.
                owner = path.parent.stat()
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


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

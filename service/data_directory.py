"""The data directory of a server, and who holds it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.errors import StartupError


class DirectoryInUse(StartupError):
    """Another process holds it."""


def log_path(data: Path) -> Path:
    """Where the log is."""
    return data / "log.sqlite"


def snapshots_path(data: Path) -> Path:
    """Where the snapshots are."""
    return data / "snapshots"


@contextmanager
def owned(data: Path) -> Iterator[None]:
    """Hold the data directory: two servers on one log would each lose the other's samples.

    Raises DirectoryInUse, StartupError.
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = (data / "lock").open("w")
    except OSError as error:
        raise StartupError(
            f"the data directory {data} cannot be used: {error}; choose another with --data"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DirectoryInUse(
                f"the data directory {data} is in use by another server; "
                "stop it, or choose another directory with --data"
            ) from None
        yield

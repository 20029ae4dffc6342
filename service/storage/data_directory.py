"""The data directory of a server: what is where, and which process holds it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.errors import StartupError
from service.storage.interfaces import Storage
from service.storage.snapshot_files import SnapshotFiles
from service.storage.sqlite_answers import SqliteAnswers
from service.storage.sqlite_catalogue import SqliteCatalogue
from service.storage.sqlite_file import SqliteFile
from service.storage.sqlite_journal import SqliteJournal
from service.storage.wal_check import check_write_ahead, write_ahead_path


class DirectoryInUse(StartupError):
    """Another process holds the data directory."""


def journal_path(data: Path) -> Path:
    """The path of the journal's file, which also holds the catalogue and the answers."""
    return data / "log.sqlite"


def snapshots_path(data: Path) -> Path:
    """The path of the directory of the snapshots."""
    return data / "snapshots"


def open_storage(data: Path, snapshots_kept: int = 4, read_only: bool = False) -> Storage:
    """The storage in a data directory.

    read_only: opens the journal as it is now, also while a server writes it. Raises StartupError.
    """
    file = SqliteFile(journal_path(data), read_only)
    snapshots = SnapshotFiles(snapshots_path(data), snapshots_kept)
    return Storage(SqliteJournal(file), SqliteCatalogue(file), SqliteAnswers(file), snapshots)


@contextmanager
def owned(data: Path) -> Iterator[None]:
    """Hold the data directory: two servers on one journal would each lose the other's samples.

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


def check_journal_end(data: Path) -> None:
    """Raise StartupError where damage would hide the journal's last commits from SQLite."""
    check_write_ahead(write_ahead_path(journal_path(data)))


def n_bytes(data: Path) -> int:
    """The size of a data directory's journal and snapshots."""
    files = [*snapshots_path(data).glob("*/*.snapshot"), journal_path(data)]
    return sum(file.stat().st_size for file in files if file.exists())

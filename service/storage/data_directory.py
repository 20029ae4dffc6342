"""The data directory of a server: what is where, and which process holds it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wolfstream.service.errors import StartupError
from wolfstream.service.storage.directories import (
    aside_path,
    is_plain_file,
    make_directory,
    make_private,
    sync_directory,
)
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.replay_marks import ReplayMarks
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.sqlite_catalogue import SqliteCatalogue
from wolfstream.service.storage.sqlite_file import SqliteFile, is_blank
from wolfstream.service.storage.sqlite_journal import SqliteJournal
from wolfstream.service.storage.wal_check import check_write_ahead, write_ahead_path


class JournalMissing(StartupError):
    """A data directory has snapshots, but not the journal that they belong to."""


class DirectoryInUse(StartupError):
    """Another process holds the data directory."""


def journal_path(data: Path) -> Path:
    """Return the path of the journal's file, which also holds the catalogue and the answers."""
    return data / "log.sqlite"


def high_water_path(data: Path) -> Path:
    """The path of the file of what was durable, which notices that the journal lost its end."""
    return data / "high-water"


def side_path(data: Path) -> Path:
    """The path of the file of the last hours' numbers and of alerts, which nothing depends on."""
    return data / "monitor.sqlite"


def replays_path(data: Path) -> Path:
    """The path of the file of replays that have begun, some of which may have ended a process."""
    return data / "replays"


def running_path(data: Path) -> Path:
    """The path of the file that says that a process runs, and what memory it takes."""
    return data / "running"


def fleet_path(data: Path) -> Path:
    """The path of the file that names the fleet of a replica whose directory it is."""
    return data / "fleet"


def crash_path(data: Path) -> Path:
    """Return the path of the trace of a process that crashed."""
    return data / "crash"


def snapshots_path(data: Path) -> Path:
    """Return the path of the directory of the snapshots."""
    return data / "snapshots"


def open_storage(data: Path, snapshots_kept: int = 4, read_only: bool = False) -> Storage:
    """Return the storage in a data directory.

    read_only: opens the journal as it is now, also while a server writes it. Raises JournalMissing,
    StartupError.
    """
    _check_files(data)
    if not read_only:
        _check_journal_is_there(data)
    snapshots = SnapshotFiles(snapshots_path(data), snapshots_kept)
    file = SqliteFile(journal_path(data), read_only, snapshots.pin)
    high_water = HighWater(high_water_path(data), read_only)
    replays = ReplayMarks(replays_path(data), read_only)
    journal = SqliteJournal(file, high_water, replays)
    catalogue = SqliteCatalogue(file, high_water)
    # A server may mark what comes after the moment that is read.
    if not read_only and high_water.last() > catalogue.last_event():
        journal.close()
        raise StartupError(
            f"samples of a model were acknowledged that {journal.name} does not know: it has lost "
            "its end. Restore the data directory from a backup (`wolfstream restore`); `wolfstream "
            "serve --recover` goes on without what is lost"
        )
    return Storage(journal, catalogue, snapshots)


@contextmanager
def owned(data: Path) -> Iterator[None]:
    """Hold the data directory: two servers on one journal would each lose the other's samples.

    Raises DirectoryInUse, StartupError.
    """
    try:
        make_directory(data)
        _check_files(data)
        make_private(data / "lock")
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


def set_aside(data: Path) -> Path:
    """Rename all that a lost journal left, so that a new one begins with nothing.

    Returns the directory in which the snapshots are now. Raises OSError.
    """
    snapshots = aside_path(snapshots_path(data))
    for path in (write_ahead_path(journal_path(data)), high_water_path(data)):
        if path.exists():
            path.rename(aside_path(path))
    if snapshots_path(data).exists():
        snapshots_path(data).rename(snapshots)
    sync_directory(data)
    return snapshots


def _check_files(data: Path) -> None:
    """Raise StartupError for a pipe, a device or a directory in place of a file.

    To open a pipe waits for ever, and a device may have no end.
    """
    journal = journal_path(data)
    marks = high_water_path(data), replays_path(data), running_path(data), crash_path(data)
    for path in (data / "lock", data / "keys.json", journal, write_ahead_path(journal), *marks):
        with suppress(FileNotFoundError):
            if not is_plain_file(path):
                raise StartupError(
                    f"{path} is not a file; move it away, or choose another directory with --data"
                )


def has_lost_journal(data: Path) -> bool:
    """Return whether something shows that a journal was there which is missing or empty.

    A journal may be empty because its write-ahead file is gone, where all of it was.
    """
    path = journal_path(data)
    traces = [high_water_path(data)]
    if path.exists() and path.stat().st_size:
        if not is_blank(path):
            return False
    else:
        traces.append(write_ahead_path(path))
    left = any(snapshots_path(data).glob("[0-9]*/*.snapshot"))
    return left or any(trace.exists() and trace.stat().st_size for trace in traces)


def forget_high_water(data: Path) -> None:
    """Set the marks of what was durable aside, so that a journal without its end is accepted.

    Those of replays that ended a process are forgotten. Raises OSError.
    """
    replays_path(data).unlink(missing_ok=True)
    path = high_water_path(data)
    if path.exists():
        path.rename(aside_path(path))
        sync_directory(data)


def _check_journal_is_there(data: Path) -> None:
    """Raise JournalMissing if a journal was lost, StartupError if there was never one."""
    if fleet_path(data).exists():
        raise StartupError(
            f"{data} is the directory of a replica of a fleet, which keeps its models in NATS: "
            "name the fleet with --fleet, or another directory with --data"
        )
    if has_lost_journal(data):
        path = journal_path(data)
        raise JournalMissing(
            f"{data} has models, but their journal {path} is missing or empty. Restore the "
            "directory from a backup (`wolfstream restore`); `wolfstream serve --recover` makes "
            "models of the newest snapshots, without what was learned after them"
        )


def check_journal_end(data: Path) -> None:
    """Raise StartupError if damage would hide the journal's last commits from SQLite."""
    check_write_ahead(write_ahead_path(journal_path(data)))


def n_bytes(data: Path) -> int:
    """Return the size of a data directory's journal and snapshots."""
    files = [*snapshots_path(data).glob("*/*.snapshot"), journal_path(data)]
    return sum(file.stat().st_size for file in files if file.exists())

"""The data directory of a server: paths and sizes of its files, its lock, and checks before use."""

import fcntl
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.errors import StartupError
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.directories import (
    aside_path,
    is_plain_file,
    make_directory,
    make_private,
    sync_directory,
)
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.sqlite_catalogue import SqliteCatalogue
from wolfstream.service.storage.sqlite_file import SqliteFile, is_blank
from wolfstream.service.storage.sqlite_journal import SqliteJournal
from wolfstream.service.storage.wal_check import check_write_ahead, write_ahead_path


class JournalMissing(StartupError):
    """A data directory has traces of models, such as snapshots, but no journal."""


class DirectoryInUse(StartupError):
    """Another process has locked the data directory."""


def journal_path(data: Path) -> Path:
    """Return the path of the journal's database, which also has the catalogue and the responses."""
    return data / "log.sqlite"


def high_water_path(data: Path) -> Path:
    """Return the path of the high-water marks, which reveal that the journal has lost its end."""
    return data / "high-water"


def side_path(data: Path) -> Path:
    """Return the path of the console's history and alerts, which nothing else depends on."""
    return data / "monitor.sqlite"


def replays_path(data: Path) -> Path:
    """Return the path of the marks of replays under way; see `storage.crash_marks`."""
    return data / "replays"


def running_path(data: Path) -> Path:
    """Return the path of the running process's mark; see `storage.crash_marks`."""
    return data / "running"


def fleet_path(data: Path) -> Path:
    """Return the path of the file with a replica's fleet; see `storage.replica_directory`."""
    return data / "fleet"


def crash_path(data: Path) -> Path:
    """Return the path of the trace of a crashed process; see `storage.crash_marks`."""
    return data / "crash"


def snapshots_path(data: Path) -> Path:
    """Return the path of the snapshots' directory."""
    return data / "snapshots"


def open_storage(data: Path, snapshots_kept: int = 4, read_only: bool = False) -> Storage:
    """Open the storage in a data directory.

    Args:
        data: the data directory.
        snapshots_kept: the number of snapshots kept for each model.
        read_only: read the journal as it is now, even while a server writes it.

    Raises JournalMissing, StartupError.
    """
    _check_files(data)
    if not read_only:
        _check_journal_exists(data)
    snapshots = SnapshotFiles(snapshots_path(data), snapshots_kept)
    with ExitStack() as opened:
        file = opened.enter_context(closing(SqliteFile(journal_path(data), read_only)))
        high_water = opened.enter_context(closing(HighWater(high_water_path(data), read_only)))
        replays = opened.enter_context(closing(ReplayMarks(replays_path(data), read_only)))
        journal = SqliteJournal(file, high_water, replays)
        catalogue = SqliteCatalogue(file, high_water)
        # Not if read-only: a server may raise the marks after the moment that is read.
        if not read_only and high_water.last_model() > catalogue.last_event():
            raise StartupError(
                f"samples of a model were acknowledged that {journal.name} does not know: it has "
                "lost its end. Restore the data directory from a backup (`wolfstream restore`); "
                "`wolfstream serve --recover` goes on without what is lost"
            )
        opened.pop_all()  # the storage closes them from now on
    return Storage(journal, catalogue, snapshots)


def check_exists(data: Path) -> None:
    """Raise StartupError unless there is a data directory at a path."""
    if not journal_path(data).exists():
        raise StartupError(f"{data} is no data directory: it has no {journal_path(data).name}")


@contextmanager
def owned(data: Path) -> Iterator[None]:
    """Lock the data directory: two servers on one journal would lose each other's samples.

    Creates the directory if it is missing. Raises DirectoryInUse, StartupError.
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
                f"a server holds the data directory {data}: stop it first, or choose another "
                "directory with --data"
            ) from None
        yield


def set_aside(data: Path) -> Path:
    """Rename everything that a lost journal left behind, so a new one starts empty.

    Returns the new path of the snapshots. Raises OSError.
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
    """Raise StartupError if a pipe, a device or a directory is in the place of a file.

    Opening a pipe blocks for ever, and a device may have no end.
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
    """Return whether the journal is missing or empty although other files show that there was one.

    A journal without tables is empty: its write-ahead file, which held everything, may be gone.
    """
    path = journal_path(data)
    traces = [high_water_path(data)]
    if path.exists() and path.stat().st_size:
        if not is_blank(path):
            return False
    else:
        traces.append(write_ahead_path(path))
    has_snapshots = any(snapshots_path(data).glob("[0-9]*/*.snapshot"))
    return has_snapshots or any(trace.exists() and trace.stat().st_size for trace in traces)


def forget_high_water(data: Path) -> None:
    """Set the high-water marks aside, so a journal that has lost its end is accepted.

    Also deletes the marks of replays, so models that were left out are tried again. Raises OSError.
    """
    replays_path(data).unlink(missing_ok=True)
    path = high_water_path(data)
    if path.exists():
        path.rename(aside_path(path))
        sync_directory(data)


def _check_journal_exists(data: Path) -> None:
    """Raise JournalMissing if the journal was lost, StartupError for a replica's directory."""
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


class DiskUse(NamedTuple):
    """Bytes used by the journal and by snapshots, and free bytes on their file system."""

    log: int
    snapshots: int
    free: int


def disk_use(data: Path) -> DiskUse:
    """Measure a data directory. Raises OSError if it does not exist."""
    journal, snapshots = journal_path(data), snapshots_path(data)
    return DiskUse(
        log=_size(journal.parent.glob(f"{journal.name}*")),
        snapshots=_size(snapshots.glob("*/*")),
        free=shutil.disk_usage(data).free,
    )


def _size(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        try:
            total += file.stat().st_size
        except OSError:  # replaced or deleted since it was listed
            continue
    return total

"""Copies of a data directory's files, each of them on disk when a function returns.

A server may be writing the directory. It saves a state before the journal names it, and deletes one
after the journal names another. So what is listed before the journal's moment is not ahead of it,
and nothing that the journal names is missing in the list, unless a model was made or rolled back
while the files were listed.

    journal's names -> files are listed -> journal's moment -> its names, compared -> files, journal
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.storage.data_directory import journal_path, snapshots_path
from wolfstream.service.storage.directories import make_directory, make_private, sync_directory
from wolfstream.service.storage.sqlite_file import SqliteFile

_COPIED = ("*.snapshot", "*.pinned")


class ChangedMeanwhile(Exception):
    """A model was made or rolled back while its files were listed."""


class _Listed(NamedTuple):
    """A file as it was when it was listed. identity: differs if it was replaced since."""

    path: Path
    identity: tuple[int, int, int]


def copy_directory(source: Path, to: Path) -> None:
    """Copy the journal as of one moment, and the states that were saved before it.

    A state that was deleted or replaced in the meantime is left out. Raises ChangedMeanwhile.
    """
    folder = snapshots_path(source)
    with closing(SqliteFile(journal_path(source), read_only=True)) as file:
        before = _named(file)
    listed = list(_list_states(folder))
    with closing(SqliteFile(journal_path(source), read_only=True)) as file:
        if not _named(file) <= before:
            raise ChangedMeanwhile
        for one in listed:
            _copy_state(one, snapshots_path(to) / one.path.relative_to(folder))
        for name in {one.path.parent.name for one in listed}:
            sync_directory(snapshots_path(to) / name)
        make_directory(to)
        make_private(journal_path(to))
        with closing(sqlite3.connect(journal_path(to))) as copy:
            file.db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, which is whole
    sync(journal_path(to))
    sync_directory(to)


def copy_files(files: list[Path], to: Path) -> None:
    """Copy files into a directory, readable by their owner alone."""
    for path in files:
        make_private(to / path.name)
        shutil.copyfile(path, to / path.name)
        sync(to / path.name)


def _named(file: SqliteFile) -> set[tuple[int, int, int]]:
    """Return the rows of the journal that name a state: creations and rollbacks."""
    with file.reading():
        return set(
            file.db.execute(
                "SELECT model, sequence, place FROM log WHERE kind IN ('created', 'rollback')"
            )
        )


def _list_states(folder: Path) -> Iterator[_Listed]:
    for pattern in _COPIED:
        for path in folder.glob(f"[0-9]*/{pattern}"):
            with suppress(FileNotFoundError):  # deleted just now
                yield _Listed(path, _identity(path.stat()))


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _copy_state(listed: _Listed, to: Path) -> None:
    """Copy a file with its time, unless it was deleted or replaced since it was listed."""
    make_directory(to.parent)
    with suppress(FileNotFoundError), listed.path.open("rb") as file:
        found = os.fstat(file.fileno())
        if _identity(found) != listed.identity:
            return
        make_private(to)
        with to.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        os.utime(to, ns=(found.st_atime_ns, found.st_mtime_ns))
        sync(to)


def sync(path: Path) -> None:
    """Bring a file's content to disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())

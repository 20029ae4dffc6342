"""Durable copies of a data directory's files, while a server may be writing them.

A server saves a state before the journal names it, and deletes a state only after the journal names
another. So files listed before the journal is read are never ahead of it. The list is complete
unless a model was created or rolled back meanwhile; comparing the states that the journal names
before and after the listing tells.

    read the names in the journal -> list files -> open the journal's copy, compare its names
    -> copy files -> copy the journal
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
    """A model was created or rolled back while the files were listed."""


class _StateFile(NamedTuple):
    """A file at the time of listing."""

    path: Path
    identity: tuple[int, int, int]  # inode, time and size: they change if it is replaced


def copy_directory(source: Path, to: Path) -> None:
    """Copy the journal at one moment, and the states saved before it.

    States that are deleted or replaced during the copy are left out. Raises ChangedMeanwhile.
    """
    folder = snapshots_path(source)
    with closing(SqliteFile(journal_path(source), read_only=True)) as file:
        before = _rows_naming_states(file)
    states = list(_list_states(folder))
    with closing(SqliteFile(journal_path(source), read_only=True)) as file:
        if not _rows_naming_states(file) <= before:
            raise ChangedMeanwhile
        for state in states:
            _copy_state(state, snapshots_path(to) / state.path.relative_to(folder))
        for name in {state.path.parent.name for state in states}:
            sync_directory(snapshots_path(to) / name)
        make_directory(to)
        make_private(journal_path(to))
        with closing(sqlite3.connect(journal_path(to))) as copy:
            file.db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, no write-ahead file beside it
    sync(journal_path(to))
    sync_directory(to)


def copy_files(files: list[Path], to: Path) -> None:
    """Copy files into a directory, readable by their owner only; durable on return."""
    for path in files:
        make_private(to / path.name)
        shutil.copyfile(path, to / path.name)
        sync(to / path.name)


def _rows_naming_states(file: SqliteFile) -> set[tuple[int, int, int]]:
    """Return (model, sequence, place) of rows that may name a state: creations and rollbacks."""
    with file.reading():
        return set(
            file.db.execute(
                "SELECT model, sequence, place FROM log WHERE kind IN ('created', 'rollback')"
            )
        )


def _list_states(folder: Path) -> Iterator[_StateFile]:
    for pattern in _COPIED:
        for path in folder.glob(f"[0-9]*/{pattern}"):
            with suppress(FileNotFoundError):  # deleted just now
                yield _StateFile(path, _identity(path.stat()))


def _identity(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _copy_state(state: _StateFile, to: Path) -> None:
    """Copy a file with its times, unless it was deleted or replaced since it was listed."""
    make_directory(to.parent)
    with suppress(FileNotFoundError), state.path.open("rb") as file:
        stat = os.fstat(file.fileno())
        if _identity(stat) != state.identity:
            return
        make_private(to)
        with to.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        os.utime(to, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        sync(to)


def sync(path: Path) -> None:
    """Make a file's content durable. Raises OSError."""
    with path.open("rb") as file:
        os.fsync(file.fileno())

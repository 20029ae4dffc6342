"""Copies of a data directory's files, each of them on disk when a function returns."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from service.storage.data_directory import journal_path, snapshots_path
from service.storage.directories import make_directory, make_private, sync_directory
from service.storage.sqlite_file import SqliteFile

_COPIED = ("*.snapshot", "*.pinned")


def copy_directory(source: Path, to: Path) -> None:
    """Copy the journal as of one moment, and the snapshots that existed before it."""
    folder = snapshots_path(source)
    listed = [path for pattern in _COPIED for path in folder.glob(f"[0-9]*/{pattern}")]
    with closing(SqliteFile(journal_path(source), read_only=True)) as file:
        for path in listed:
            _copy_snapshot(path, snapshots_path(to) / path.relative_to(folder))
        for name in {path.parent.name for path in listed}:
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


def _copy_snapshot(path: Path, to: Path) -> None:
    make_directory(to.parent)
    try:
        shutil.copy2(path, to)
    except FileNotFoundError:  # a server has deleted it in the meantime
        return
    sync(to)


def sync(path: Path) -> None:
    """Bring a file's content to disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())

"""Backups: copies of a data directory that a server may be writing, and their reach.

A backup is itself a data directory, with a manifest that is written last. It has the journal at one
moment, and the states saved before that moment. Its reach is the range of sequences at which each
of its models can be restored.

The copy starts over if it lacks a state that the journal needs: the server may have deleted the
state meanwhile, or created or rolled back a model.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from wolfstream.service.errors import WolfstreamError
from wolfstream.service.storage.data_directory import (
    DirectoryInUse,
    check_exists,
    check_journal_end,
    high_water_path,
    journal_path,
    open_storage,
    owned,
    snapshots_path,
)
from wolfstream.service.storage.directories import make_directory, make_private, sync_directory
from wolfstream.service.storage.entries import CatalogueEntry, Rollback
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_format import DamagedSnapshot
from wolfstream.service.storage.sqlite_file import SqliteFile

# Written last, so a directory that has it is a complete backup.
MANIFEST = "backup.json"


class BackupError(WolfstreamError):
    """A backup cannot be made or restored; the message says why, and what to do."""


class Reach(NamedTuple):
    """The oldest and newest sequence at which a model can be restored."""

    model: str
    oldest: int
    newest: int


def model_reaches(
    storage: Storage, acknowledged: Mapping[int, int] | None = None
) -> Iterator[Reach | str]:
    """Yield the reach of each model, or a message that says what it lacks.

    Args:
        storage: the backup's storage.
        acknowledged: model -> sequence up to which it was durable before the copy was made.
    """
    for model in storage.catalogue.models():
        yield _model_reach(model, storage, (acknowledged or {}).get(model.number, 0))


def _model_reach(model: CatalogueEntry, storage: Storage, acknowledged: int) -> Reach | str:
    number = model.number
    log = storage.journal.reader(number)
    begin, end = log.begin(), log.end()
    saved, rollbacks = storage.snapshots.sequences(number), log.rollbacks()
    pinned = [
        rollback.description["at"]
        for rollback in rollbacks
        if _is_intact(rollback, number, storage)
    ]
    last = max((rollback.description["at"] for rollback in rollbacks), default=None)
    if last is not None and last not in pinned and last >= max(saved, default=0):
        return f"model {model.name!r}: the state that it was rolled back to at {last} is missing"
    # Recovery starts from a base: an empty model, a snapshot or a pinned state.
    bases = [0] if begin in (None, 0) and model.follows is None else []
    bases += [*saved, *pinned]
    usable = [base for base in bases if begin is None or begin <= base]  # the log continues it
    if not usable:
        back_to = min(bases, default=begin)
        return f"model {model.name!r}: the backup reaches back to sequence {back_to}, not further"
    newest = max(end, *usable)
    samples_log = log if model.follows is None else storage.journal.reader(model.follows)
    if max(newest, samples_log.end()) < acknowledged:
        return f"model {model.name!r}: the backup reaches {newest} of {acknowledged} samples"
    return Reach(model.name, min(usable), newest)


def _is_intact(rollback: Rollback, model: int, storage: Storage) -> bool:
    """Return whether the state that a rollback restored is pinned and undamaged."""
    try:
        storage.snapshots.pinned(model, rollback.digest)
    except DamagedSnapshot:
        return False
    return True


def check_empty(path: Path) -> None:
    """Raise BackupError unless a directory is missing or empty."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BackupError(
            f"{path} exists and is not empty; name a directory that does not exist yet"
        )


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


_ATTEMPTS = 3


def back_up(data: Path, to: Path, also: tuple[Path, ...] = ()) -> list[Reach]:
    """Copy a data directory, which a server may be writing; return the reach of each model.

    Args:
        data: the data directory.
        to: a directory that is missing or empty.
        also: other files to copy, if they exist.

    Raises BackupError, StartupError, OSError.
    """
    check_exists(data)
    check_empty(to)
    try:
        with owned(data):  # no server runs, so the journal's end must be intact
            check_journal_end(data)
    except DirectoryInUse:
        pass
    missing = ""
    for _ in range(_ATTEMPTS):
        acknowledged = _acknowledged(data)
        try:
            copy_directory(data, to)
        except ChangedMeanwhile:
            missing = "models were created or rolled back while their files were listed"
            continue
        with closing(open_storage(to, read_only=True)) as storage:
            results = list(model_reaches(storage, acknowledged))
        missing = next((problem for problem in results if isinstance(problem, str)), "")
        if not missing:
            reaches = [reach for reach in results if isinstance(reach, Reach)]
            copy_files([path for path in also if path.exists()], to)
            finish(to, reaches)
            return reaches
        shutil.rmtree(to)
    raise BackupError(f"{missing}: the server changed faster than it could be copied; try again")


def _acknowledged(data: Path) -> dict[int, int]:
    """Return model number -> sequence up to which the model is durable now."""
    with (
        closing(open_storage(data, read_only=True)) as storage,
        closing(HighWater(high_water_path(data), read_only=True)) as marks,
    ):
        return {model.number: marks.sequence(model.number) for model in storage.catalogue.models()}


def finish(to: Path, reaches: list[Reach]) -> None:
    """Write the manifest that makes a data directory a complete backup; durable on return.

    Args:
        to: the data directory.
        reaches: the reach of each of its models.
    """
    manifest: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "models": [reach._asdict() for reach in reaches],
    }
    make_private(to / MANIFEST)
    (to / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    sync(to / MANIFEST)
    sync_directory(to)

"""A data directory as a whole: copied while a server writes it, brought back to a point in time.

A backup is a data directory itself, with `backup.json`, which is written last. It holds the journal
as of one moment, and the snapshots that were there before that moment, so none is ahead of it.

    snapshots are listed -> the journal's moment is fixed -> snapshots, then the journal are copied

Where the server purged meanwhile what the listed snapshots need, the copy begins again.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from service.errors import StorageFailed, WolfstreamError
from service.storage.data_directory import (
    DirectoryInUse,
    check_journal_end,
    journal_path,
    open_storage,
    owned,
    snapshots_path,
)
from service.storage.directories import make_directory, make_private, sync_directory
from service.storage.entries import new_epoch
from service.storage.interfaces import Storage
from service.storage.snapshot_files import SnapshotFiles
from service.storage.sqlite_catalogue import SqliteCatalogue
from service.storage.sqlite_file import SqliteFile
from service.storage.sqlite_point import Cut, cut_at_sequence, cut_at_time, cut_challenger

_MANIFEST = "backup.json"
_ATTEMPTS = 3
_COPIED = ("*.snapshot", "*.pinned")


class BackupError(WolfstreamError):
    """A backup cannot be made, or not be restored so; the message says what to do."""


class Reach(NamedTuple):
    """The sequences of a model, from the oldest to the newest, to which it can be brought back."""

    model: str
    oldest: int
    newest: int


class Point(NamedTuple):
    """A point in time: a moment, in milliseconds since 1970, or the sequence of one model."""

    time: int | None = None
    model: str = ""
    sequence: int = 0


def back_up(data: Path, to: Path, also: tuple[Path, ...] = ()) -> list[Reach]:
    """Copy a data directory, which a server may be writing; what the copy reaches.

    to: a directory that does not exist or is empty. also: other files of the directory.
    Raises BackupError, StartupError, OSError.
    """
    if not journal_path(data).exists():
        raise BackupError(f"{data} is no data directory: it has no {journal_path(data).name}")
    _check_empty(to)
    try:
        with owned(data):  # no server: what it left must be whole
            check_journal_end(data)
    except DirectoryInUse:
        pass
    missing = ""
    for _ in range(_ATTEMPTS):
        _copy(data, to)
        with closing(open_storage(to, read_only=True)) as storage:
            found = list(_reaches(storage))
        missing = next((problem for problem in found if isinstance(problem, str)), "")
        if not missing:
            reaches = [reach for reach in found if isinstance(reach, Reach)]
            _finish(to, also, reaches)
            return reaches
        shutil.rmtree(to)
    raise BackupError(f"{missing}: the server saved snapshots faster than they could be copied")


def restore(backup: Path, data: Path, to: Point | None) -> list[Reach]:
    """Make a data directory of a backup, as it was at its end or at an earlier point.

    data: does not exist or is empty. Another epoch of each model begins. What each model reaches,
    its newest sequence being where it is. Raises BackupError, StartupError, OSError.
    """
    if not (backup / _MANIFEST).exists():
        raise BackupError(
            f"{backup} is no complete backup: it has no {_MANIFEST}; `wolfstream backup` makes one"
        )
    _check_empty(data)
    partial = data.with_name(f"{data.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _copy(backup, partial)
        reaches = _bring_back(partial, to)
        _copy_files([path for path in backup.glob("*.json") if path.name != _MANIFEST], partial)
        if data.exists():
            data.rmdir()
        partial.rename(data)
        sync_directory(data.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return reaches


def _bring_back(data: Path, to: Point | None) -> list[Reach]:
    """Cut what came after the point, and let another epoch of each model begin."""
    try:
        ends = {} if to is None else _cut(data, to)
        with closing(open_storage(data)) as storage:
            reaches = list[Reach]()
            for found in _reaches(storage):
                if isinstance(found, str):
                    raise BackupError(found)
                if found.newest != ends.get(found.model, found.newest):
                    raise BackupError(
                        f"model {found.model!r}: the backup has its state at sequence "
                        f"{found.newest}, not at {ends[found.model]}; choose another point"
                    )
                reaches.append(found)
            newest = {reach.model: reach.newest for reach in reaches}
            for number, name, *_ in storage.catalogue.models():
                pinned = {rollback.digest for rollback in storage.journal.rollbacks(number)}
                storage.snapshots.unpin_others(number, pinned)
                storage.journal.append_epoch(number, newest[name], new_epoch())
    except StorageFailed as error:
        raise BackupError(error.detail) from None
    return reaches


def _cut(data: Path, to: Point) -> dict[str, int]:
    """Forget what came after a point; where each model that was cut ends now.

    Raises BackupError, StorageFailed.
    """
    ends = dict[str, int]()
    with closing(SqliteFile(journal_path(data))) as file:
        there = SqliteCatalogue(file).models()
        models = {model.name: model.number for model in there}
        challengers = {one.number: one.follows for one in there if one.follows in models.values()}
        if to.time is None and to.model not in models:
            raise BackupError(f"the backup has no model {to.model!r}; it has {', '.join(models)}")
        for name, number in models.items():
            found: Cut | None
            if number in challengers:
                continue
            if to.time is not None:
                found = cut_at_time(file, number, to.time)
            elif name == to.model:
                found = cut_at_sequence(file, number, to.sequence)
            else:
                continue
            _forget_snapshots(data, number, found, to.time)
            if found is not None:
                ends[name] = found.end
        named = models.get(to.model)
        for number, champion in challengers.items():
            if to.time is not None or named in (number, champion):
                of_champion = ends.get(to.model, to.sequence)
                end = to.sequence if named == number else of_champion
                _cut_challenger(data, file, number, end if to.time is None else None, to.time)
    return ends


def _cut_challenger(
    data: Path, file: SqliteFile, number: int, end: int | None, time: int | None
) -> None:
    """Forget what a model that follows another one has of after a sequence, or a time.

    Raises StorageFailed.
    """
    snapshots = SnapshotFiles(snapshots_path(data))
    if not cut_challenger(file, number, end, time):
        snapshots.delete(number)
    for sequence in snapshots.sequences(number):
        path = Path(snapshots.name(number, sequence))
        is_later = time is not None and path.stat().st_mtime * 1000 > time
        if is_later or (end is not None and sequence > end):
            path.unlink()


def _forget_snapshots(data: Path, number: int, left: Cut | None, time: int | None) -> None:
    """Forget the snapshots of a model from after its end; None: all of them."""
    snapshots = SnapshotFiles(snapshots_path(data))
    for sequence in snapshots.sequences(number):
        path = Path(snapshots.name(number, sequence))
        later = time is not None and path.stat().st_mtime * 1000 > time
        if left is None or sequence > left.end:
            path.unlink()
        elif sequence == left.end and later and (left.events or not left.dated):
            path.unlink()  # of which it is not known that it is the state of that time
    if left is None:
        snapshots.delete(number)


def _reaches(storage: Storage) -> Iterator[Reach | str]:
    """Of each model what can be brought back, or what is missing for that."""
    journal = storage.journal
    for model in storage.catalogue.models():
        begin, end = journal.begin(model.number), journal.end(model.number)
        bases = [0] if begin in (None, 0) else []
        bases += storage.snapshots.sequences(model.number)
        bases += [rollback.description["at"] for rollback in journal.rollbacks(model.number)]
        whole = [base for base in bases if begin is None or begin <= base]
        if not whole:
            yield (
                f"model {model.name!r}: the backup reaches back to sequence "
                f"{min(bases, default=begin)}, not further"
            )
            continue
        yield Reach(model.name, min(whole), max(end, *whole))


def _copy(source: Path, to: Path) -> None:
    """Copy the journal as of one moment, and the snapshots that were there before it."""
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
    _sync(journal_path(to))
    sync_directory(to)


def _copy_snapshot(path: Path, to: Path) -> None:
    make_directory(to.parent)
    try:
        shutil.copy2(path, to)
    except FileNotFoundError:  # a server has deleted it meanwhile
        return
    _sync(to)


def _copy_files(files: list[Path], to: Path) -> None:
    for path in files:
        make_private(to / path.name)
        shutil.copyfile(path, to / path.name)
        _sync(to / path.name)


def _finish(to: Path, also: tuple[Path, ...], reaches: list[Reach]) -> None:
    """Mark a backup as complete."""
    _copy_files([path for path in also if path.exists()], to)
    told: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "models": [reach._asdict() for reach in reaches],
    }
    make_private(to / _MANIFEST)
    (to / _MANIFEST).write_text(json.dumps(told, indent=2) + "\n")
    _sync(to / _MANIFEST)
    sync_directory(to)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _check_empty(path: Path) -> None:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BackupError(f"{path} is there and not empty; name a directory that is not there yet")

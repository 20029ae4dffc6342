"""Restoring a backup: a data directory as it was at the backup's end, or at an earlier point.

The copy is cut at the point and completed in another directory, which is renamed last.
"""

import shutil
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.data_directory import journal_path, open_storage, snapshots_path
from wolfstream.service.storage.directories import sync_directory
from wolfstream.service.storage.directory_copy import copy_directory, copy_files
from wolfstream.service.storage.entries import new_epoch
from wolfstream.service.storage.reach import MANIFEST, BackupError, Reach, check_empty, reaches_of
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.sqlite_catalogue import models_in
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_point import (
    Cut,
    cut_at_sequence,
    cut_at_time,
    cut_challenger,
)


class Point(NamedTuple):
    """A point in time: a moment, in milliseconds since 1970, or the sequence of one model."""

    time: int | None = None
    model: str = ""
    sequence: int = 0


def restore(backup: Path, data: Path, to: Point | None) -> list[Reach]:
    """Make a data directory of a backup, as it was at its end or at an earlier point.

    data: a directory that does not exist or is empty. A new epoch of each model begins. Returns
    what each model reaches; the newest sequence is the one at which it is. Raises BackupError,
    StartupError, OSError.
    """
    if not (backup / MANIFEST).exists():
        raise BackupError(
            f"{backup} is no complete backup: it has no {MANIFEST}; `wolfstream backup` makes one"
        )
    check_empty(data)
    partial = data.with_name(f"{data.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        copy_directory(backup, partial)
        reaches = _bring_back(partial, to)
        copy_files([path for path in backup.glob("*.json") if path.name != MANIFEST], partial)
        if data.exists():
            data.rmdir()
        partial.rename(data)
        sync_directory(data.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return reaches


def _bring_back(data: Path, to: Point | None) -> list[Reach]:
    """Delete everything after the point, and begin a new epoch of each model."""
    try:
        ends = {} if to is None else _cut(data, to)
        with closing(open_storage(data)) as storage:
            reaches = list[Reach]()
            for found in reaches_of(storage):
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
                log, snapshots = storage.journal.reader(number), storage.snapshots
                needed = {rollback.digest for rollback in log.rollbacks()}
                snapshots.unpin(number, set(snapshots.pinned_names(number)) - needed)
                log.begin_term(newest[name], new_epoch())
    except StorageFailed as error:
        raise BackupError(error.detail) from None
    return reaches


def _cut(data: Path, to: Point) -> dict[str, int]:
    """Delete everything after a point; return where each model that was cut ends now.

    Raises BackupError, StorageFailed.
    """
    ends = dict[str, int]()
    with closing(SqliteFile(journal_path(data))) as file:
        listed = models_in(file)
        models = {model.name: model.number for model in listed}
        challengers = {one.number: one.follows for one in listed if one.follows in models.values()}
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
    """Delete what a challenger has from after a sequence, or a time.

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
    """Delete the snapshots of a model from after its end; all of them where `left` is None."""
    snapshots = SnapshotFiles(snapshots_path(data))
    for sequence in snapshots.sequences(number):
        path = Path(snapshots.name(number, sequence))
        later = time is not None and path.stat().st_mtime * 1000 > time
        if left is None or sequence > left.end:
            path.unlink()
        elif sequence == left.end and later and (left.events or not left.dated):
            path.unlink()  # it may not be the state of that time
    if left is None:
        snapshots.delete(number)

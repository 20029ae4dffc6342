"""Restores a backup to a data directory, at the end of the backup or at an earlier point.

The backup is copied to a directory with another name, cut at the point, completed and then renamed.
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
from wolfstream.service.storage.reach import (
    MANIFEST,
    BackupError,
    Reach,
    check_empty,
    model_reaches,
)
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.sqlite_catalogue import models_in
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_point import (
    Cut,
    cut_at_sequence,
    cut_at_time,
    cut_challenger,
)


class RestorePoint(NamedTuple):
    """The time at which to restore all models, or the sequence at which to restore one."""

    time: int | None = None  # milliseconds since 1970; None for a sequence
    model: str = ""
    sequence: int = 0


def restore(backup: Path, data: Path, to: RestorePoint | None) -> list[Reach]:
    """Make a data directory from a backup, with a new epoch for each model.

    Args:
        backup: the directory of the backup.
        data: a directory that is missing or empty.
        to: an earlier point; None restores the end of the backup.

    Returns the reach of each model; the model is at its newest sequence. Raises BackupError,
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
        reaches = _rewind(partial, to)
        copy_files([path for path in backup.glob("*.json") if path.name != MANIFEST], partial)
        if data.exists():
            data.rmdir()
        partial.rename(data)
        sync_directory(data.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return reaches


def _rewind(data: Path, to: RestorePoint | None) -> list[Reach]:
    """Delete everything after the point, and begin a new epoch of each model."""
    try:
        ends = {} if to is None else _cut(data, to)
        with closing(open_storage(data)) as storage:
            reaches = list[Reach]()
            for reach in model_reaches(storage):
                if isinstance(reach, str):
                    raise BackupError(reach)
                if reach.newest != ends.get(reach.model, reach.newest):
                    raise BackupError(
                        f"model {reach.model!r}: the backup has its state at sequence "
                        f"{reach.newest}, not at {ends[reach.model]}; choose another point"
                    )
                reaches.append(reach)
            newest = {reach.model: reach.newest for reach in reaches}
            for number, name, *_ in storage.catalogue.models():
                log, snapshots = storage.journal.reader(number), storage.snapshots
                needed = {rollback.digest for rollback in log.rollbacks()}
                snapshots.unpin(number, set(snapshots.pinned_names(number)) - needed)
                log.begin_term(newest[name], new_epoch())
    except StorageFailed as error:
        raise BackupError(error.detail) from None
    return reaches


def _cut(data: Path, to: RestorePoint) -> dict[str, int]:
    """Delete everything after a point; return the end of each model that was cut, by name.

    Raises BackupError, StorageFailed.
    """
    ends = dict[str, int]()
    with closing(SqliteFile(journal_path(data))) as file:
        entries = models_in(file)
        models = {entry.name: entry.number for entry in entries}
        # challenger -> champion, both by number. Challengers learn from the champion's log, so
        # they are cut after it, at its new end.
        challengers = {
            entry.number: entry.follows for entry in entries if entry.follows in models.values()
        }
        if to.time is None and to.model not in models:
            raise BackupError(f"the backup has no model {to.model!r}; it has {', '.join(models)}")
        for name, number in models.items():
            cut: Cut | None
            if number in challengers:
                continue
            if to.time is not None:
                cut = cut_at_time(file, number, to.time)
            elif name == to.model:
                cut = cut_at_sequence(file, number, to.sequence)
            else:
                continue
            _delete_later_snapshots(data, number, cut, to.time)
            if cut is not None:
                ends[name] = cut.end
        chosen = models.get(to.model)
        for number, champion in challengers.items():
            if to.time is not None or chosen in (number, champion):
                champion_end = ends.get(to.model, to.sequence)
                end = to.sequence if chosen == number else champion_end
                _cut_challenger(data, file, number, end if to.time is None else None, to.time)
    return ends


def _cut_challenger(
    data: Path, file: SqliteFile, number: int, end: int | None, time: int | None
) -> None:
    """Delete what a challenger has after a sequence or a time. Raises StorageFailed."""
    snapshots = SnapshotFiles(snapshots_path(data))
    if not cut_challenger(file, number, end, time):
        snapshots.delete(number)
    for sequence in snapshots.sequences(number):
        path = Path(snapshots.name(number, sequence))
        is_later = time is not None and path.stat().st_mtime * 1000 > time
        if is_later or (end is not None and sequence > end):
            path.unlink()


def _delete_later_snapshots(data: Path, number: int, cut: Cut | None, time: int | None) -> None:
    """Delete a model's snapshots from after the cut; all of them if `cut` is None."""
    snapshots = SnapshotFiles(snapshots_path(data))
    for sequence in snapshots.sequences(number):
        path = Path(snapshots.name(number, sequence))
        is_later = time is not None and path.stat().st_mtime * 1000 > time
        if cut is None or sequence > cut.end:
            path.unlink()
        elif sequence == cut.end and is_later and (cut.events or not cut.dated):
            path.unlink()  # it may hold an event that was cut off, or be of a later time
    if cut is None:
        snapshots.delete(number)

"""Restores a backup to a data directory, at the end of the backup or at an earlier point.

The backup is copied to a directory with another name, cut at the point, completed and then renamed.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.backup import (
    MANIFEST,
    BackupError,
    Reach,
    check_empty,
    copy_directory,
    copy_files,
    model_reaches,
)
from wolfstream.service.storage.data_directory import journal_path, open_storage, snapshots_path
from wolfstream.service.storage.directories import sync_directory
from wolfstream.service.storage.entries import LEAST_PART_SAMPLES, PART_BYTES, new_epoch
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.sqlite_catalogue import models_in
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_rows import LATER, OF_SERVER, WITH_SAMPLES

_OF_MODEL = "FROM log WHERE model = ?"


class CutPoint(NamedTuple):
    """Where a model ends after a cut."""

    end: int  # the model's sequence
    dated: bool  # whether an entry is left that is known to be from before the point
    events: bool  # whether predictions, fits, rollbacks or epochs at the end itself were deleted


def cut_at_sequence(file: SqliteFile, model: int, sequence: int) -> CutPoint:
    """Delete what a model learned after a sequence. Raises StorageFailed."""
    end = max((end for end in _ends(file, model) if end <= sequence), default=None)
    if end is None:
        first = f"SELECT min(sequence - samples) {_OF_MODEL} AND kind IN {WITH_SAMPLES}"
        (begin,) = file.db.execute(first, (model,)).fetchone()
        end = sequence if begin is None or begin > sequence else begin
    with file.transaction():
        file.run(f"DELETE {_OF_MODEL} AND sequence > ?", (model, end))
    return CutPoint(int(end), True, False)


def _ends(file: SqliteFile, model: int) -> Iterator[int]:
    """Yield the sequences at which the log may be cut: the ends of groups that belong together.

    The journal does not say which blocks are parts of one request. Parts are consecutive, have the
    same time and head, and the first is large. Blocks like that count as one group.
    """
    blocks = file.db.execute(
        f"SELECT block, time, head, sum(samples), sum(length(record)) {_OF_MODEL} "
        f"AND kind IN {WITH_SAMPLES} GROUP BY block ORDER BY block",
        (model,),
    )
    for _, group in groupby(blocks, lambda block: (block[1], block[2])):
        parts = list(group)
        n_bytes = sum(block[4] for block in parts)
        may_be_one = parts[0][3] >= LEAST_PART_SAMPLES or n_bytes > PART_BYTES
        yield from (block for block, *_ in (parts[-1:] if may_be_one else parts))


def cut_challenger(file: SqliteFile, model: int, sequence: int | None, time: int | None) -> bool:
    """Delete from a challenger's own log what came after a sequence or a time.

    Its log has fits, checkpoints and rollbacks; its samples are in the champion's log. Returns
    whether the model still exists, which it does not if it was created after `time`. Raises
    StorageFailed.
    """
    if time is not None and _created(file, model) > time:
        return cut_at_time(file, model, time) is not None
    if time is not None:
        file.run(f"DELETE {_OF_MODEL} AND time > ?", (model, time))
    if sequence is not None:
        file.run(f"DELETE {_OF_MODEL} AND sequence > ?", (model, sequence))
    return True


def _created(file: SqliteFile, model: int) -> int:
    """Return when a model was created, in milliseconds since 1970."""
    created = "SELECT time FROM log WHERE model = ? AND sequence = ?"
    return int(file.db.execute(created, (OF_SERVER, model)).fetchone()[0])


def cut_at_time(file: SqliteFile, model: int, time: int) -> CutPoint | None:
    """Delete what happened to a model after a time; the whole model if it was created later.

    If the clock was ever set back, everything from the first entry with a later time is deleted.

    Args:
        file: the database.
        model: the number of the model.
        time: milliseconds since 1970.

    Returns None if the whole model was deleted. Raises StorageFailed.
    """
    if _created(file, model) > time:
        with file.transaction():
            file.run(f"DELETE {_OF_MODEL}", (model,))
            file.run(f"DELETE {_OF_MODEL} AND sequence = ?", (OF_SERVER, model))
        return None
    later = f"SELECT min(sequence - samples) {_OF_MODEL} AND kind NOT IN ('key', 'answer')"
    (end,) = file.db.execute(f"{later} AND time > ?", (model, time)).fetchone()
    if end is None:
        (end,) = file.db.execute(f"SELECT max(sequence) {_OF_MODEL}", (model,)).fetchone()
    end = int(end or 0)
    with file.transaction():
        file.run(f"DELETE {_OF_MODEL} AND sequence > ?", (model, end))
        events = f"{_OF_MODEL} AND sequence = ? AND place >= ? AND time > ?"
        at_end = (model, end, LATER, time)
        (n_events,) = file.db.execute(f"SELECT count(*) {events}", at_end).fetchone()
        file.run(f"DELETE {events}", at_end)
    dated = f"SELECT count(*) {_OF_MODEL} AND kind IN ('samples', 'labels', 'rollback')"
    (n_dated,) = file.db.execute(dated, (model,)).fetchone()
    return CutPoint(end, n_dated > 0, n_events > 0)


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
    data = data.absolute()  # "." has no name
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
            names = ", ".join(models) or "none"
            raise BackupError(f"the backup has no model {to.model!r}; it has {names}")
        for name, number in models.items():
            cut: CutPoint | None
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


def _delete_later_snapshots(
    data: Path, number: int, cut: CutPoint | None, time: int | None
) -> None:
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

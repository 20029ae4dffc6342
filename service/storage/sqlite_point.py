"""Cuts a journal at a point: deletes what came after it.

Requests that were learned as one block stay together, as do the parts of a large request. A point
inside such a group moves to the group's beginning.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from wolfstream.service.storage.entries import LEAST_PART_SAMPLES, PART_BYTES
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_rows import LATER, OF_SERVER, WITH_SAMPLES

_OF_MODEL = "FROM log WHERE model = ?"


class Cut(NamedTuple):
    """Where a model ends after a cut."""

    end: int  # the model's sequence
    dated: bool  # whether an entry is left that is known to be from before the point
    events: bool  # whether predictions, fits, rollbacks or epochs at the end itself were deleted


def cut_at_sequence(file: SqliteFile, model: int, sequence: int) -> Cut:
    """Delete what a model learned after a sequence. Raises StorageFailed."""
    end = max((end for end in _ends(file, model) if end <= sequence), default=None)
    if end is None:
        first = f"SELECT min(sequence - samples) {_OF_MODEL} AND kind IN {WITH_SAMPLES}"
        (begin,) = file.db.execute(first, (model,)).fetchone()
        end = sequence if begin is None or begin > sequence else begin
    with file.transaction():
        file.run(f"DELETE {_OF_MODEL} AND sequence > ?", (model, end))
    return Cut(int(end), True, False)


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


def cut_at_time(file: SqliteFile, model: int, time: int) -> Cut | None:
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
    return Cut(end, n_dated > 0, n_events > 0)

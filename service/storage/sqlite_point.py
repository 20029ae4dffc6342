"""Cutting a journal off at a point in time: what came after it is forgotten.

Requests that were learned as one block stay together, and so do the parts of a large request: a
point inside of them is the one before them.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from wolfstream.service.storage.entries import LEAST_PART_SAMPLES, PART_BYTES
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_rows import LATER, OF_SERVER, WITH_SAMPLES

_OF_MODEL = "FROM log WHERE model = ?"


class Cut(NamedTuple):
    """Where a model ends now.

    dated: whether an entry that is left is known to be of before the point. events: whether
    predictions, fits, rollbacks or epochs at the end itself were cut off.
    """

    end: int
    dated: bool
    events: bool


def cut_at_sequence(file: SqliteFile, model: int, sequence: int) -> Cut:
    """Forget what a model learned after a sequence. Raises StorageFailed."""
    end = max((end for end in _ends(file, model) if end <= sequence), default=None)
    if end is None:
        first = f"SELECT min(sequence - samples) {_OF_MODEL} AND kind IN {WITH_SAMPLES}"
        (begin,) = file.db.execute(first, (model,)).fetchone()
        end = sequence if begin is None or begin > sequence else begin
    with file.transaction():
        file.run(f"DELETE {_OF_MODEL} AND sequence > ?", (model, end))
    return Cut(int(end), True, False)


def _ends(file: SqliteFile, model: int) -> Iterator[int]:
    """Yield the sequences between what was learned together.

    The journal does not say which blocks are the parts of one request. They are consecutive and
    have the same time and head, and the first one is no small block: such blocks count as one.
    """
    blocks = file.db.execute(
        f"SELECT block, time, head, sum(samples), sum(length(record)) {_OF_MODEL} "
        f"AND kind IN {WITH_SAMPLES} GROUP BY block ORDER BY block",
        (model,),
    )
    for (time, _), group in groupby(blocks, lambda block: (block[1], block[2])):
        together = list(group)
        n_bytes = sum(block[4] for block in together)
        in_parts = time and (together[0][3] >= LEAST_PART_SAMPLES or n_bytes > PART_BYTES)
        yield from (block for block, *_ in (together[-1:] if in_parts else together))


def cut_challenger(file: SqliteFile, model: int, sequence: int | None, time: int | None) -> bool:
    """Forget what is in the own log of a model that follows another one, from after a point.

    Those are fits, checkpoints and rollbacks after a sequence, or after a time. Whether the model
    is there still; it may have been made after that time. Raises StorageFailed.
    """
    if time is not None and _made(file, model) > time:
        return cut_at_time(file, model, time) is not None
    if time is not None:
        file.run(f"DELETE {_OF_MODEL} AND time > ?", (model, time))
    if sequence is not None:
        file.run(f"DELETE {_OF_MODEL} AND sequence > ?", (model, sequence))
    return True


def _made(file: SqliteFile, model: int) -> int:
    """Return when a model was made."""
    made = "SELECT time FROM log WHERE model = ? AND sequence = ?"
    return int(file.db.execute(made, (OF_SERVER, model)).fetchone()[0])


def cut_at_time(file: SqliteFile, model: int, time: int) -> Cut | None:
    """Forget what happened to a model after a time; None if it was made after it, and is gone.

    time: in milliseconds since 1970. Where the clock was set back, the first entry of a later time
    counts. Raises StorageFailed.
    """
    if _made(file, model) > time:
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

"""Cutting a journal off at a point in time: what came after it is forgotten.

Requests that were learned as one block stay together: a point inside a block is the one before it.
"""

from typing import NamedTuple

from service.storage.sqlite_file import SqliteFile
from service.storage.sqlite_rows import LATER, OF_SERVER

_OF_MODEL = "FROM log WHERE model = ?"


class Cut(NamedTuple):
    """Where a model ends now.

    dated: whether an entry that is left is known to be of before the point. events: whether fits,
    rollbacks or epochs at the end itself were cut off.
    """

    end: int
    dated: bool
    events: bool


def cut_at_sequence(file: SqliteFile, model: int, sequence: int) -> Cut:
    """Forget what a model learned after a sequence. Raises StorageFailed."""
    of_samples = f"{_OF_MODEL} AND kind = 'samples'"
    last = f"SELECT max(block) {of_samples} AND block <= ?"
    (end,) = file.db.execute(last, (model, sequence)).fetchone()
    if end is None:
        first = f"SELECT min(sequence - samples) {of_samples}"
        (begin,) = file.db.execute(first, (model,)).fetchone()
        end = sequence if begin is None or begin > sequence else begin
    with file.transaction():
        file.run(f"DELETE {_OF_MODEL} AND sequence > ?", (model, end))
    return Cut(int(end), True, False)


def cut_at_time(file: SqliteFile, model: int, time: int) -> Cut | None:
    """Forget what happened to a model after a time; None if it was made after it, and is gone.

    time: in milliseconds since 1970. Where the clock was set back, the first entry of a later time
    counts. Raises StorageFailed.
    """
    made = "SELECT time FROM log WHERE model = ? AND sequence = ?"
    if file.db.execute(made, (OF_SERVER, model)).fetchone()[0] > time:
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
    dated = f"SELECT count(*) {_OF_MODEL} AND kind IN ('samples', 'rollback')"
    (n_dated,) = file.db.execute(dated, (model,)).fetchone()
    return Cut(end, n_dated > 0, n_events > 0)

"""Migration of journals of earlier versions, which had a table for each kind of row.

They changed rows in place: a fit replaced the one before, a response was written beside its key,
and a rollback's row held the whole state. Their last content becomes rows of the one table, in the
transaction that removes the old tables. The times of these rows are unknown.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from wolfstream.service.storage.entries import Entry, EntryKind, KeyedRequest, Rollback, new_epoch
from wolfstream.service.storage.seals import BrokenSeal, unseal, unseal_if_marked
from wolfstream.service.storage.sqlite_rows import (
    LATER,
    OF_SERVER,
    SAMPLES,
    Row,
    answer_row,
    created_record,
    entry_row,
    event_row,
    key_row,
    rollback_record,
)

_UNKNOWN_TIME = 0
_TABLES = ("keys", "rollbacks", "fits", "entries", "models")
_ROLLBACK_PLACE, _FIT_PLACE = LATER, LATER + 1


def migrate(db: sqlite3.Connection, pin: Callable[[int, bytes], str] | None) -> None:
    """Move the rows of an earlier version's tables into `log`, and remove these tables.

    Args:
        db: the database, within a transaction.
        pin: saves the bytes of a model's state and returns their name.

    Raises BrokenSeal, sqlite3.Error, OSError.
    """
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables == {"log"}:
        return
    if not {"models", "entries"} <= tables:
        raise BrokenSeal
    epochs = dict[int, str]()
    readers = {
        "models": _models(db, epochs),
        "entries": _entries(db, "entries", "samples", SAMPLES),
        "fits": _entries(db, "fits", "fit", _FIT_PLACE),
        "keys": _keys(db),
        "rollbacks": _rollbacks(db, epochs, pin),
    }
    places = ", ".join("?" * len(Row._fields))
    for table, rows in readers.items():
        if table in tables:
            db.executemany(f"INSERT INTO log VALUES ({places})", rows)
    for table in _TABLES:
        db.execute(f"DROP TABLE IF EXISTS {table}")


def _models(db: sqlite3.Connection, epochs: dict[int, str]) -> Iterator[Row]:
    """Yield the creation of each model, and a deletion if a higher number was used."""
    last = 0
    for model, name, sealed in db.execute("SELECT id, name, spec FROM models ORDER BY id"):
        text = sealed.encode() if isinstance(sealed, str) else sealed
        try:
            spec = json.loads(unseal_if_marked(text, model, name))
        except ValueError:
            raise BrokenSeal from None
        epochs[model], last = new_epoch(), model
        record = created_record(name, spec, epochs[model])
        yield event_row(OF_SERVER, model, SAMPLES, "created", _UNKNOWN_TIME, record)
    highest = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'models'").fetchone()
    if highest and highest[0] > last:  # its number must not be used again
        record = json.dumps({"model": highest[0], "name": ""}).encode()
        yield event_row(OF_SERVER, highest[0], SAMPLES, "deleted", _UNKNOWN_TIME, record)


def _entries(db: sqlite3.Connection, table: str, kind: EntryKind, place: int) -> Iterator[Row]:
    for values in db.execute(f"SELECT * FROM {table} ORDER BY model, sequence"):
        *columns, record = values
        record = unseal_if_marked(record, *columns)
        entry = Entry._make([*columns, record, kind])
        yield entry_row(entry, _UNKNOWN_TIME, place)


def _keys(db: sqlite3.Connection) -> Iterator[Row]:
    for model, sequence, key, digest, answer in db.execute("SELECT * FROM keys"):
        digest = unseal(digest, model, sequence, key)
        keyed = KeyedRequest(model, sequence, key, digest, None)
        yield key_row(keyed, _UNKNOWN_TIME)
        if answer is not None:
            answer = unseal(answer, model, sequence)
            yield answer_row(keyed._replace(answer=answer), _UNKNOWN_TIME)


def _rollbacks(
    db: sqlite3.Connection, epochs: dict[int, str], pin: Callable[[int, bytes], str] | None
) -> Iterator[Row]:
    # A rollback comes before the fits at its sequence: earlier ones were deleted with it.
    for model, sequence in db.execute("SELECT DISTINCT model, sequence FROM rollbacks").fetchall():
        parts: list[tuple[Any, ...]] = db.execute(
            "SELECT part, told, record FROM rollbacks WHERE model = ? ORDER BY part", (model,)
        ).fetchall()
        description = json.loads(unseal(parts[0][1], model, parts[0][0], sequence))
        assert pin is not None
        digest = pin(model, b"".join(part[2] for part in parts))
        record = rollback_record(Rollback(description, digest, epochs[model]))
        yield event_row(model, sequence, _ROLLBACK_PLACE, "rollback", _UNKNOWN_TIME, record)

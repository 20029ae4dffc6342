"""The log: every accepted request, in its model's order, on disk before it is learned.

SQLite in write-ahead mode with synchronous=FULL: when `append` returns, the entries have been
fsynced. One entry is one request; entries with the same `block` were absorbed together, and
replay keeps these boundaries and the thread setting, because the rounding of a matrix product
depends on both.

A fit is an entry of another kind: what a refit found, to be served from this place on. It has no
samples and shares its sequence with the sample before it. A fit replaces an earlier one at the
same sequence, and to apply it twice is to apply it once; so replay may begin with the fit at a
snapshot's own sequence, whether it came before the snapshot or after it.
"""

import heapq
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from service.errors import StartupError, StorageFailed
from service.spec import HeadName

# Format 1 had no fits; it is read, and becomes 2 when it is opened.
_FORMAT = 2
_READ = (0, 1, _FORMAT)
# SQLite takes 32,766 values in a statement.
_ENTRIES_A_STATEMENT = 1024
# Compiled statements that are kept, one for each size of group: half a kilobyte for each entry.
# sqlite3's own 128 grew to 25 MB under changing load.
_STATEMENTS = 32
_COLUMNS = """
    model INTEGER NOT NULL REFERENCES models ON DELETE CASCADE,
    sequence INTEGER NOT NULL,  -- of the request's last sample
    samples INTEGER NOT NULL,
    block INTEGER NOT NULL,     -- sequence of the block's last sample
    head TEXT NOT NULL,
    threads INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (model, sequence)
"""
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS models (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    spec TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS entries ({_COLUMNS}) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fits ({_COLUMNS});
"""


class Entry(NamedTuple):
    """One accepted request of one model; or a fit, which has no samples and is its own block."""

    model: int
    sequence: int
    samples: int
    block: int
    head: HeadName
    threads: int
    record: bytes


_PLACES = f"({', '.join('?' * len(Entry._fields))})"


class Log:
    """The embedded log of one data directory. Used by one thread at a time.

    Raises StartupError where it cannot be opened or read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._reading():
            self._db = sqlite3.connect(
                path,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_STATEMENTS,
            )
        try:
            with self._reading():
                self._open()
        except StartupError:
            self._db.close()
            raise

    def _open(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version not in _READ:
            raise StartupError(
                f"{self._path} has log format {version}, this version reads {_FORMAT}; "
                "start the version that wrote it, or choose another --data directory"
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.executescript(_SCHEMA)
        self._db.execute(f"PRAGMA user_version = {_FORMAT}")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """The log is read at start only, so what fails there keeps the server from starting."""
        try:
            yield
        except sqlite3.Error as error:
            raise StartupError(
                f"the log {self._path} cannot be read: {error}; check the directory's "
                "permissions and free space, or restore it from a backup"
            ) from error

    def close(self) -> None:
        """Close the database; the write-ahead file is folded in."""
        self._db.close()

    def models(self) -> list[tuple[int, str, dict[str, Any]]]:
        """(id, name, spec) of all models, oldest first."""
        with self._reading():
            rows = list(self._db.execute("SELECT id, name, spec FROM models ORDER BY id"))
        return [(model, name, json.loads(spec)) for model, name, spec in rows]

    def create(self, name: str, spec: dict[str, Any]) -> int:
        """Add a model; durable on return. Raises StorageFailed."""
        self._run("INSERT INTO models (name, spec) VALUES (?, ?)", (name, json.dumps(spec)))
        row = self._db.execute("SELECT id FROM models WHERE name = ?", (name,)).fetchone()
        return int(row[0])

    @contextmanager
    def creating(self, name: str, spec: dict[str, Any]) -> Iterator[int]:
        """Add a model that exists once the block has ended without an error; durable then."""
        with self._transaction():
            yield self.create(name, spec)

    def delete(self, model: int) -> None:
        """Forget a model and its entries; durable on return. Raises StorageFailed."""
        self._run("DELETE FROM models WHERE id = ?", (model,))

    def append(self, entries: Sequence[Entry]) -> None:
        """Write a group of requests in one commit; fsynced on return, or StorageFailed.

        As few statements as SQLite allows: around each one the interpreter lock is given up
        and has to be won back from the event loop.
        """
        with self._transaction() if len(entries) > _ENTRIES_A_STATEMENT else nullcontext():
            for start in range(0, len(entries), _ENTRIES_A_STATEMENT):
                part = entries[start : start + _ENTRIES_A_STATEMENT]
                rows = ", ".join([_PLACES] * len(part))
                self._run(f"INSERT INTO entries VALUES {rows}", [v for e in part for v in e])

    def append_fit(self, fit: Entry) -> None:
        """Write a fit behind all entries of its model; fsynced on return, or StorageFailed."""
        self._run(f"INSERT OR REPLACE INTO fits VALUES {_PLACES}", fit)

    def blocks(self, model: int, after: int) -> Iterator[list[Entry]]:
        """The entries behind a sequence, grouped as they were absorbed; each fit is a block.

        A fit of the sequence itself is among them: see above.
        """
        with self._reading():
            order = "ORDER BY sequence"
            entries, fits = (
                map(Entry._make, self._db.execute(f"SELECT * FROM {which} {order}", (model, after)))
                for which in (
                    "entries WHERE model = ? AND sequence > ?",
                    "fits WHERE model = ? AND sequence >= ?",
                )
            )
            # Of the same sequence, merge gives the entry first.
            merged = heapq.merge(entries, fits, key=lambda entry: entry.sequence)
            for _, block in groupby(merged, lambda entry: (entry.block, entry.samples == 0)):
                yield list(block)

    def drop(self, model: int, up_to: int) -> None:
        """Forget what a snapshot at a sequence makes superfluous. Raises StorageFailed."""
        with self._transaction():
            self._run("DELETE FROM entries WHERE model = ? AND sequence <= ?", (model, up_to))
            self._run("DELETE FROM fits WHERE model = ? AND sequence < ?", (model, up_to))

    def _run(self, statement: str, values: Sequence[Any]) -> None:
        """One statement; outside a transaction it is durable on return."""
        try:
            self._db.execute(statement, values)
        except sqlite3.Error as error:
            raise StorageFailed(f"the log could not be written: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._run("BEGIN IMMEDIATE", ())
        try:
            yield
            self._run("COMMIT", ())
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

"""The log: every accepted request, in its model's order, on disk before it is learned.

SQLite in write-ahead mode with synchronous=FULL: when `append` returns, the entries have been
fsynced. One entry is one request; entries with the same `block` were absorbed together, and
replay keeps these boundaries and the thread setting, because the rounding of a matrix product
depends on both.

A fit is an entry of another kind: what a refit found, to be served from this place on. It has no
samples and shares its sequence with the sample before it. A fit replaces an earlier one at the
same sequence, and to apply it twice is to apply it once; so replay may begin with the fit at a
snapshot's own sequence, whether it came before the snapshot or after it.

SQLite checks how its pages hang together, not what stands in them: each record and each spec
stands behind a digest of its whole row.
"""

import hashlib
import heapq
import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from service.errors import StartupError, StorageFailed
from service.spec import HeadName
from service.write_ahead import check_write_ahead

logger = logging.getLogger(__name__)

# Format 1 had no fits; it is read, and becomes 2 when it is opened.
_FORMAT = 2
_READ = (0, 1, _FORMAT)
# No record of MessagePack begins so. What has no mark is of a version that wrote no digests.
_MARK = b"\xc1"
_DIGEST_BYTES = 8
# SQLite takes 32,766 values in a statement.
_ENTRIES_A_STATEMENT = 1024
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


def _digest(*parts: object) -> bytes:
    """Of a row's values, the last of which may be bytes."""
    *columns, content = parts
    hashed = hashlib.blake2b(repr(columns).encode(), digest_size=_DIGEST_BYTES)
    hashed.update(content if isinstance(content, bytes) else str(content).encode())
    return hashed.digest()


def _sealed(entry: Entry) -> Entry:
    """The entry as it is stored."""
    return entry._replace(record=_MARK + _digest(*entry) + entry.record)


def _unsealed(row: tuple[Any, ...]) -> Entry:
    """The entry of a row as it was stored. Raises StartupError where it is another."""
    entry = Entry._make(row)
    sealed = entry.record if isinstance(row[-1], bytes) else _MARK
    if not sealed.startswith(_MARK):
        return entry
    opened = entry._replace(record=sealed[1 + _DIGEST_BYTES :])
    if sealed[1 : 1 + _DIGEST_BYTES] != _digest(*opened):
        raise StartupError(
            f"the log is damaged: its entry {entry.sequence} of model {entry.model} does not match "
            "its checksum. Restore the data directory from a backup; starting without the entry "
            "would silently lose acknowledged samples"
        )
    return opened


class Log:
    """The embedded log of one data directory. Used by one thread at a time.

    Raises StartupError where it cannot be opened or read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._doubtful = False
        if check_write_ahead(path.with_name(f"{path.name}-wal")):
            logger.warning(
                "the log ends in a commit that is not whole and is passed over: it was being "
                "written, and nobody was told of it, when the server was stopped"
            )
        with self._reading():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
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
        self._check_pages()

    def _check_pages(self) -> None:
        """Raise StartupError for rows that would be passed over in silence."""
        told = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        stray = self._db.execute("PRAGMA foreign_key_check").fetchone()
        if told != "ok" or stray:
            detail = told if told != "ok" else "it has entries of a model that it does not have"
            raise StartupError(
                f"the log {self._path} is damaged: {detail}. Restore the data directory from a "
                "backup; starting with it would silently lose acknowledged samples"
            )

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
        return [(model, name, self._read_spec(model, name, text)) for model, name, text in rows]

    def _read_spec(self, model: int, name: str, text: str) -> dict[str, Any]:
        """The spec of a row; JSON, and on a second line the row's digest."""
        plain, _, digest = text.partition("\n")
        try:
            if digest and digest != _digest(model, name, plain).hex():
                raise ValueError("its row does not match its checksum")
            spec: dict[str, Any] = json.loads(plain)
        except ValueError as error:
            raise StartupError(
                f"the log {self._path} is damaged: model {model}, {name!r}: {error}. Restore the "
                "data directory from a backup"
            ) from None
        return spec

    def create(self, name: str, spec: dict[str, Any]) -> int:
        """Add a model; durable on return. Raises StorageFailed."""
        with self._transaction():
            return self._insert(name, spec)

    def _insert(self, name: str, spec: dict[str, Any]) -> int:
        text = json.dumps(spec)
        self._run("INSERT INTO models (name, spec) VALUES (?, ?)", (name, text))
        row = self._db.execute("SELECT id FROM models WHERE name = ?", (name,)).fetchone()
        model = int(row[0])
        text += "\n" + _digest(model, name, text).hex()
        self._run("UPDATE models SET spec = ? WHERE id = ?", (text, model))
        return model

    @contextmanager
    def creating(self, name: str, spec: dict[str, Any]) -> Iterator[int]:
        """Add a model that exists once the block has ended without an error; durable then."""
        with self._transaction():
            yield self._insert(name, spec)

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
                self._run(
                    f"INSERT INTO entries VALUES {rows}", [v for e in part for v in _sealed(e)]
                )

    def append_fit(self, fit: Entry) -> None:
        """Write a fit behind all entries of its model; fsynced on return, or StorageFailed."""
        self._run(f"INSERT OR REPLACE INTO fits VALUES {_PLACES}", _sealed(fit))

    def blocks(self, model: int, after: int) -> Iterator[list[Entry]]:
        """The entries behind a sequence, grouped as they were absorbed; each fit is a block.

        A fit of the sequence itself is among them: see above.
        """
        with self._reading():
            order = "ORDER BY sequence"
            entries, fits = (
                (
                    _unsealed(row)
                    for row in self._db.execute(f"SELECT * FROM {which} {order}", (model, after))
                )
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
        if self._doubtful and not self._settled():
            raise StorageFailed("the log cannot be written since an I/O error; nothing was learned")
        try:
            self._db.execute(statement, values)
        except sqlite3.Error as error:
            detail = f"the log could not be written: {error}"
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR:
                self._doubtful = True
                if not self._settled():
                    detail += "; after a restart it may prove to have been written all the same"
            raise StorageFailed(detail) from error

    def _settled(self) -> bool:
        """Make sure that a commit which failed does not come back; whether that succeeded.

        Where its fsync failed it may stand in the write-ahead file as a whole, and the next start
        would find it, unless the file is emptied and another commit proves that it can be written.
        """
        if self._db.in_transaction:
            return True
        try:
            busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._db.execute(f"PRAGMA user_version = {_FORMAT}")
        except sqlite3.Error:
            return False
        self._doubtful = bool(busy)
        return not busy

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

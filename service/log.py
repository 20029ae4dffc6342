"""The log: every accepted request, in its model's order, on disk before it is learned.

SQLite in write-ahead mode with synchronous=FULL: when `append` returns, the entries have been
fsynced. One entry is one request; entries with the same `block` were absorbed together, and
replay keeps these boundaries and the thread setting, because the rounding of a matrix product
depends on both.

A fit is an entry of another kind: what a refit found, to be served from this place on. It has no
samples and shares its sequence with the sample before it. A fit replaces an earlier one at the
same sequence, and to apply it twice is to apply it once; so replay may begin with the fit at a
snapshot's own sequence, whether it came before the snapshot or after it.

A key is what a client calls a request by, so that it can send it again (`service.idempotency`).
It is written in the commit of its entry and outlives it; its answer comes later.

A rollback is an entry of a third kind: the whole state that a model went back to. Nothing before
it matters any longer, so a model has at most one, the last, and recovery begins with it unless
there is a snapshot of a later sequence. It shares its sequence with the sample before it, and
with the fits after it; those before it are forgotten with it. As the state itself is here, a
rollback is one transaction, and needs no other file that could be forgotten or damaged.

Each row is sealed (`service.seals`), and checked when it is read; how the pages hang together is
checked when the log is opened.
"""

import heapq
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any

from service.errors import StorageFailed
from service.log_file import LogFile
from service.log_rows import Entry, Keyed, Rollback
from service.seals import BrokenSeal, seal, unseal, unseal_if_marked

# SQLite takes a billion bytes in a value.
_PART_BYTES = 1 << 28
# SQLite takes 32,766 values in a statement.
_ROWS_A_STATEMENT = 1024


class Log:
    """The embedded log of one data directory. Used by one thread at a time.

    read_only: to look at a log, as it is now, that a server may be writing.
    Raises StartupError where it cannot be opened or read.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self._file = LogFile(path, read_only)
        self._db = self._file.db

    def close(self) -> None:
        """Close the database; the write-ahead file is folded in."""
        self._file.close()

    def damage(self) -> list[str]:
        """What SQLite finds wrong with its file; empty where that is nothing."""
        return self._file.damage()

    def models(self) -> list[tuple[int, str, dict[str, Any]]]:
        """(id, name, spec) of all models, oldest first."""
        with self._file.reading():
            rows = list(self._db.execute("SELECT id, name, spec FROM models ORDER BY id"))
            return [(model, name, _read_spec(model, name, text)) for model, name, text in rows]

    def create(self, name: str, spec: dict[str, Any]) -> int:
        """Add a model; durable on return. Raises StorageFailed."""
        with self._file.transaction():
            return self._insert_model(name, spec)

    def _insert_model(self, name: str, spec: dict[str, Any]) -> int:
        self._file.run("INSERT INTO models (name, spec) VALUES (?, ?)", (name, ""))
        row = self._db.execute("SELECT id FROM models WHERE name = ?", (name,)).fetchone()
        model = int(row[0])
        sealed = seal(json.dumps(spec).encode(), model, name)
        self._file.run("UPDATE models SET spec = ? WHERE id = ?", (sealed, model))
        return model

    @contextmanager
    def creating(self, name: str, spec: dict[str, Any]) -> Iterator[int]:
        """Add a model that exists once the block has ended without an error; durable then."""
        with self._file.transaction():
            yield self._insert_model(name, spec)

    def delete(self, model: int) -> None:
        """Forget a model, its entries and keys; durable on return. Raises StorageFailed."""
        self._file.run("DELETE FROM models WHERE id = ?", (model,))

    def append(self, entries: Sequence[Entry], keys: Sequence[Keyed] = ()) -> None:
        """Write a group of requests in one commit; fsynced on return, or StorageFailed.

        keys: those of the entries, and earlier ones whose answers are known by now.

        As few statements as SQLite allows: around each one the interpreter lock is given up
        and has to be won back from the event loop.
        """
        several = keys or len(entries) > _ROWS_A_STATEMENT
        with self._file.transaction() if several else nullcontext():
            self._insert("INSERT INTO entries", entries)
            # Of a key that is there already, only the answer is written.
            answered = "ON CONFLICT (model, sequence) DO UPDATE SET answer = excluded.answer"
            self._insert("INSERT OR REPLACE INTO keys", keys, answered)

    def append_fit(self, fit: Entry) -> None:
        """Write a fit behind all entries of its model; fsynced on return, or StorageFailed."""
        self._insert("INSERT OR REPLACE INTO fits", [fit])

    def append_rollback(self, model: int, rollback: Rollback, learned: int) -> None:
        """Write a rollback behind all of its model; fsynced on return, or StorageFailed.

        learned: sequence to which the log was learned; what is behind it never will be, and may
        come again under its key.
        """
        at, told = rollback.told["at"], json.dumps(rollback.told).encode()
        content = memoryview(rollback.content)
        with self._file.transaction():
            self._file.run("DELETE FROM fits WHERE model = ? AND sequence >= ?", (model, at))
            self._file.run("DELETE FROM keys WHERE model = ? AND sequence > ?", (model, learned))
            self._file.run("DELETE FROM rollbacks WHERE model = ?", (model,))
            for part, start in enumerate(range(0, len(content), _PART_BYTES)):
                self._file.run(
                    "INSERT INTO rollbacks VALUES (?, ?, ?, ?, ?)",
                    (
                        model,
                        part,
                        at,
                        seal(told, model, part, at),
                        content[start : start + _PART_BYTES],
                    ),
                )

    def rolled_back_at(self, model: int) -> int | None:
        """The sequence of a model's last rollback, unless later snapshots made it superfluous."""
        rollback = self._first_of_rollback(model)
        return rollback and rollback.told["at"]

    def rollback(self, model: int) -> Rollback:
        """A model's last rollback, which there is."""
        first = self._first_of_rollback(model)
        assert first is not None
        with self._file.reading():
            parts = "SELECT record FROM rollbacks WHERE model = ? ORDER BY part"
            records = [record for (record,) in self._db.execute(parts, (model,))]
        return first._replace(content=b"".join(records))

    def _first_of_rollback(self, model: int) -> Rollback | None:
        """A model's last rollback without its state."""
        first = "SELECT part, sequence, told FROM rollbacks WHERE model = ? ORDER BY part LIMIT 1"
        with self._file.reading():
            row = self._db.execute(first, (model,)).fetchone()
            return row and Rollback(json.loads(unseal(row[2], model, *row[:2])), b"")

    def begin(self, model: int) -> int | None:
        """The sequence behind which a model's samples in the log begin; None where are none."""
        with self._file.reading():
            first = "SELECT min(sequence - samples) FROM entries WHERE model = ?"
            begin: int | None = self._db.execute(first, (model,)).fetchone()[0]
        return begin

    def end(self, model: int) -> int:
        """The sequence of a model's last sample in the log; 0 where there is none."""
        with self._file.reading():
            last = "SELECT coalesce(max(sequence), 0) FROM entries WHERE model = ?"
            return int(self._db.execute(last, (model,)).fetchone()[0])

    def blocks(self, model: int, after: int) -> Iterator[list[Entry]]:
        """The entries behind a sequence, grouped as they were absorbed; each fit is a block.

        A fit of the sequence itself is among them: see above.
        """
        with self._file.reading():
            order = "ORDER BY sequence"
            entries, fits = (
                (
                    Entry._make(row).unsealed()
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
        with self._file.transaction():
            self._file.run("DELETE FROM entries WHERE model = ? AND sequence <= ?", (model, up_to))
            for kind in ("fits", "rollbacks"):
                self._file.run(
                    f"DELETE FROM {kind} WHERE model = ? AND sequence < ?", (model, up_to)
                )

    def all_keys(self) -> Iterator[tuple[int, int, bytes]]:
        """(model, sequence, key) of all keys, a model's oldest first."""
        with self._file.reading():
            for model, sequence, key, digest in self._db.execute(
                "SELECT model, sequence, key, digest FROM keys ORDER BY model, sequence"
            ):
                unseal(digest, model, sequence, key)
                yield model, sequence, key

    def unanswered(self, model: int) -> list[Keyed]:
        """The keys of a model whose answers were not written."""
        with self._file.reading():
            rows = self._db.execute(
                "SELECT * FROM keys WHERE model = ? AND answer IS NULL", (model,)
            )
            return [Keyed._make(row).unsealed() for row in rows]

    def keyed(self, model: int, sequence: int) -> Keyed | None:
        """The key of an entry. Raises StorageFailed."""
        try:
            row = self._db.execute(
                "SELECT * FROM keys WHERE model = ? AND sequence = ?", (model, sequence)
            ).fetchone()
            return row and Keyed._make(row).unsealed()
        except (sqlite3.Error, BrokenSeal) as error:
            raise StorageFailed(f"the log could not be read: {error}") from error

    def drop_keys(self, model: int, up_to: int) -> None:
        """Forget the keys of a model's entries up to a sequence. Raises StorageFailed."""
        self._file.run("DELETE FROM keys WHERE model = ? AND sequence <= ?", (model, up_to))

    def _insert(
        self, into: str, rows: Sequence[Entry] | Sequence[Keyed], otherwise: str = ""
    ) -> None:
        for start in range(0, len(rows), _ROWS_A_STATEMENT):
            part = rows[start : start + _ROWS_A_STATEMENT]
            places = ", ".join([f"({', '.join('?' * len(part[0]))})"] * len(part))
            values = [value for row in part for value in row.sealed()]
            self._file.run(f"{into} VALUES {places} {otherwise}", values)


def _read_spec(model: int, name: str, sealed: Any) -> dict[str, Any]:
    """The spec in a row. Raises BrokenSeal."""
    text = sealed.encode() if isinstance(sealed, str) else sealed  # text in older versions
    try:
        spec: dict[str, Any] = json.loads(unseal_if_marked(text, model, name))
    except ValueError:
        raise BrokenSeal from None
    return spec

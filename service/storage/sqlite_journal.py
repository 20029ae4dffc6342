"""The journal in SQLite: durable, in one file, with one commit for all models.

Each row is sealed (`storage.seals`) and checked when it is read; the structure of the pages is
checked when the file is opened. As a rollback's row holds the state itself, a rollback is one
transaction and needs no other file, which could be lost or damaged.
"""

import heapq
import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import groupby

from service.errors import StorageFailed
from service.storage.entries import Entry, KeyedRequest, Rollback
from service.storage.high_water import HighWater
from service.storage.replay_marks import ReplayMarks
from service.storage.seals import seal, unseal
from service.storage.sqlite_answers import insert_keys
from service.storage.sqlite_file import ROWS_PER_STATEMENT, SqliteFile
from service.storage.sqlite_rows import seal_entry, unseal_entry

# SQLite takes a billion bytes in a value.
_PART_BYTES = 1 << 28


class SqliteJournal:
    """`storage.interfaces.Journal` in a database. Used by one thread at a time.

    A commit is written for all of its models or for none.
    """

    def __init__(
        self, file: SqliteFile, high_water: HighWater, replays: ReplayMarks | None = None
    ) -> None:
        self._file, self._high_water, self._replays = file, high_water, replays
        self.name = str(file.path)

    def close(self) -> None:
        """Close the database and the marks."""
        self._file.close()
        self._high_water.close()
        if self._replays is not None:
            self._replays.close()
            self._replays = None

    def damage(self) -> list[str]:
        """What SQLite finds wrong with its file."""
        return self._file.damage()

    def append(
        self, entries: Sequence[Entry], keys: Sequence[KeyedRequest] = ()
    ) -> dict[int, StorageFailed]:
        """Write one commit, with one fsync; the models of which nothing was written.

        It takes as few statements as SQLite allows: around each one the interpreter lock is given
        up and has to be won back from the event loop.
        """
        try:
            self._append(entries, keys)
        except StorageFailed as error:
            return dict.fromkeys(
                [row.model for row in entries] + [row.model for row in keys], error
            )
        # Of a model's entries the last one counts, which comes last.
        for model, sequence in {entry.model: entry.sequence for entry in entries}.items():
            self._high_water.note(model, sequence)
        return {}

    def acknowledged(self, model: int) -> int:
        """The sequence up to which a model was durable, as far as the mark knows."""
        return self._high_water.of(model)

    def begin_replay(self, model: int, after: int) -> int:
        """How many processes have ended in a replay that begins now."""
        return 0 if self._replays is None else self._replays.begin(model, after)

    def end_replay(self, model: int) -> None:
        """Note that a model was replayed to its end."""
        if self._replays is not None:
            self._replays.end(model)

    def begin_at(self, model: int, sequence: int) -> None:
        """Note that a new model begins with a snapshot of this sequence."""
        self._high_water.note(model, sequence)
        self._high_water.sync()

    def _append(self, entries: Sequence[Entry], keys: Sequence[KeyedRequest]) -> None:
        samples = [entry for entry in entries if entry.samples]
        fits = [entry for entry in entries if not entry.samples]
        several = keys or (samples and fits) or len(entries) > ROWS_PER_STATEMENT
        with self._file.transaction() if several else nullcontext():
            self._file.insert("INSERT INTO entries", [seal_entry(row) for row in samples])
            self._file.insert("INSERT OR REPLACE INTO fits", [seal_entry(row) for row in fits])
            insert_keys(self._file, keys)

    def settle(self, _model: int, /) -> None:
        """Make sure that the last commit, if it failed, does not come back."""
        self._file.settle()

    def append_rollback(self, model: int, rollback: Rollback, learned: int) -> None:
        """Write a rollback; see `Journal.append_rollback`."""
        at, description = rollback.description["at"], json.dumps(rollback.description).encode()
        content = memoryview(rollback.content)
        with self._file.transaction():
            self._file.run("DELETE FROM fits WHERE model = ? AND sequence >= ?", (model, at))
            self._file.run("DELETE FROM keys WHERE model = ? AND sequence > ?", (model, learned))
            self._file.run("DELETE FROM rollbacks WHERE model = ?", (model,))
            for part, start in enumerate(range(0, len(content), _PART_BYTES)):
                sealed = seal(description, model, part, at)
                self._file.run(
                    "INSERT INTO rollbacks VALUES (?, ?, ?, ?, ?)",
                    (model, part, at, sealed, content[start : start + _PART_BYTES]),
                )
        self._high_water.note(model, at)

    def rolled_back_at(self, model: int) -> int | None:
        """The sequence of a model's last rollback; None if later snapshots replaced it."""
        rollback = self._rollback_without_content(model)
        return rollback and rollback.description["at"]

    def rollback(self, model: int) -> Rollback:
        """A model's last rollback, which must exist."""
        first = self._rollback_without_content(model)
        assert first is not None
        with self._file.reading():
            parts = "SELECT record FROM rollbacks WHERE model = ? ORDER BY part"
            records = [record for (record,) in self._file.db.execute(parts, (model,))]
        return first._replace(content=b"".join(records))

    def _rollback_without_content(self, model: int) -> Rollback | None:
        first = "SELECT part, sequence, told FROM rollbacks WHERE model = ? ORDER BY part LIMIT 1"
        with self._file.reading():
            row = self._file.db.execute(first, (model,)).fetchone()
            return row and Rollback(json.loads(unseal(row[2], model, *row[:2])), b"")

    def begin(self, model: int) -> int | None:
        """The sequence after which a model's entries begin; None if it has none."""
        with self._file.reading():
            first = "SELECT min(sequence - samples) FROM entries WHERE model = ?"
            begin: int | None = self._file.db.execute(first, (model,)).fetchone()[0]
        return begin

    def end(self, model: int) -> int:
        """The sequence of a model's last sample in the journal; 0 if it has none."""
        with self._file.reading():
            last = "SELECT coalesce(max(sequence), 0) FROM entries WHERE model = ?"
            return int(self._file.db.execute(last, (model,)).fetchone()[0])

    def blocks(self, model: int, after: int) -> Iterator[list[Entry]]:
        """A model's entries after a sequence, block by block; each fit is a block."""
        with self._file.reading():
            entries, fits = (
                map(
                    unseal_entry,
                    self._file.db.execute(
                        f"SELECT * FROM {rows} ORDER BY sequence", (model, after)
                    ),
                )
                for rows in (
                    "entries WHERE model = ? AND sequence > ?",
                    "fits WHERE model = ? AND sequence >= ?",
                )
            )
            # Of the same sequence, merge yields the entry first.
            merged = heapq.merge(entries, fits, key=lambda entry: entry.sequence)
            for _, block in groupby(merged, lambda entry: (entry.block, entry.samples == 0)):
                yield list(block)

    def drop(self, model: int, up_to: int) -> None:
        """Forget what a snapshot at a sequence makes superfluous."""
        with self._file.transaction():
            self._file.run("DELETE FROM entries WHERE model = ? AND sequence <= ?", (model, up_to))
            for table in ("fits", "rollbacks"):
                self._file.run(
                    f"DELETE FROM {table} WHERE model = ? AND sequence < ?", (model, up_to)
                )
        self._high_water.sync()

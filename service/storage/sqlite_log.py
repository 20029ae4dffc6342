"""One model's log in SQLite, and the term in which this process writes it.

The rows of all models are in one table (`sqlite_rows`). A reader keeps nothing in memory: each call
looks at the table. The lock on the data directory makes the process the only one that writes, so a
term ends only with the process or the model. A commit whose fsync failed is undone before anything
else is written (`SqliteFile.settle`): it is never found again, so no doubt needs a replay.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from wolfstream.service.errors import InDoubt, StorageFailed
from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.seals import BrokenSeal
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_rows import (
    ANSWER,
    KEY,
    LATER,
    WITH_SAMPLES,
    WITHOUT_SAMPLES,
    Row,
    answer_row,
    entry_row,
    event_row,
    key_row,
    read_entry,
    read_key,
    read_rollback,
    rollback_record,
    unsealed,
)
from wolfstream.service.storage.term import Part, Term, TermState

_NO_ENTRIES = Part()


class SqliteLog:
    """`storage.log.LogReader` in a database. Used by one thread at a time.

    Attributes:
        model: the number of the model.
        name: what messages call the log.
        faults: nothing, because the table cannot have two rows in one place.
        deleted: False, because a deleted model has no rows.
    """

    deleted = False

    def __init__(self, file: SqliteFile, high_water: HighWater, model: int) -> None:
        """Read a model's rows in a database.

        Args:
            file: the database.
            high_water: the marks of what was durable.
            model: the number of the model.
        """
        self._file, self._high_water, self.model = file, high_water, model
        self.name = f"journal {file.path}"
        self.faults: list[str] = []
        self.n_rollbacks = 0  # nobody learns it beside its term
        # The sequence of the last row that came after its samples, and its place.
        self._last_place: tuple[int | None, int] = (None, 0)

    def read_on(self) -> None:
        """Do nothing: each call reads what is there."""

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Tell damage, which stays, from a read that failed, which may be tried again.

        SQLite calls its file malformed also where one read failed (SQLITE_IOERR_CORRUPTFS). The
        structure was checked when the file was opened; what is in a row is checked here.
        """
        try:
            yield
        except (BrokenSeal, UnicodeDecodeError) as error:
            raise self._file.damaged(str(error)) from None
        except (sqlite3.Error, OSError) as error:
            if not hasattr(error, "sqlite_errorcode") and not isinstance(error, OSError):
                raise self._file.damaged(str(error)) from None  # a text is not one
            raise StorageFailed(
                f"the journal {self._file.path} cannot be read now: {error}; if it stays so, "
                "restore the data directory from a backup (`wolfstream restore`)"
            ) from error

    def begin(self) -> int | None:
        """Return the sequence after which the entries begin; None if there are none."""
        with self._reading():
            row = self._file.db.execute(
                f"SELECT sequence - samples FROM log WHERE model = ? AND kind IN {WITH_SAMPLES} "
                "ORDER BY sequence LIMIT 1",
                (self.model,),
            ).fetchone()
            return row and int(row[0])

    def end(self) -> int:
        """Return the sequence of the last sample; 0 if there is none."""
        return self._last(f"kind IN {WITH_SAMPLES}")

    def last_event(self) -> int:
        """Return the sequence of the last record that has no samples; 0 if there is none."""
        return self._last("kind IN ('fit', 'checkpoint', 'rollback', 'epoch')")

    def _last(self, where: str) -> int:
        with self._reading():
            row = self._file.db.execute(
                f"SELECT sequence FROM log WHERE model = ? AND {where} "
                "ORDER BY sequence DESC LIMIT 1",
                (self.model,),
            ).fetchone()
            return int(row[0]) if row else 0

    def blocks(self, after: int) -> Iterator[list[Entry]]:
        """Yield the entries after a sequence, block by block."""
        with self._reading():
            back = "SELECT coalesce(max(place), 0) FROM log WHERE model = ? AND sequence = ?"
            (place,) = self._file.db.execute(
                f"{back} AND kind = 'rollback'", (self.model, after)
            ).fetchone()
            rows = self._file.db.execute(
                "SELECT * FROM log WHERE model = ? "
                "AND kind IN ('samples', 'labels', 'prediction', 'fit', 'checkpoint') "
                f"AND (sequence > ? OR sequence = ? AND kind IN {WITHOUT_SAMPLES} AND place > ?) "
                "AND sequence >= ? ORDER BY sequence, place",
                (self.model, after, after, place, after),
            )
            for (_, _, several), group in groupby(map(read_entry, rows), _block_of):
                block = list(group)
                yield from [block] if several else [[entry] for entry in block]

    def epoch_since(self, sequence: int) -> str | None:
        """Return the last epoch that began at a sequence or after it."""
        return self._last_epoch("sequence >= ?", sequence)

    def epoch_before(self, sequence: int) -> str | None:
        """Return the last epoch that began before a sequence."""
        return self._last_epoch("sequence < ?", sequence)

    def _last_epoch(self, where: str, sequence: int) -> str | None:
        with self._reading():
            row = self._file.db.execute(
                f"SELECT * FROM log WHERE model = ? AND {where} "
                "AND kind IN ('rollback', 'epoch') ORDER BY sequence DESC, place DESC LIMIT 1",
                (self.model, sequence),
            ).fetchone()
            return None if row is None else str(json.loads(unsealed(row).record)["epoch"])

    def rolled_back_at(self) -> int | None:
        """Return the sequence of the last rollback; None if later snapshots replaced it."""
        rollbacks = self.rollbacks()
        return rollbacks[0].description["at"] if rollbacks else None

    def rollbacks(self) -> list[Rollback]:
        """Return the rollbacks that later snapshots have not replaced, the last one first."""
        with self._reading():
            rows = self._file.db.execute(
                "SELECT * FROM log WHERE model = ? AND kind = 'rollback' "
                "ORDER BY sequence DESC, place DESC",
                (self.model,),
            )
            return [read_rollback(row) for row in rows]

    def keys(self) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence, key) of the idempotency keys, oldest first."""
        with self._reading():
            for row in self._file.db.execute(
                "SELECT * FROM log WHERE model = ? AND kind = 'key' ORDER BY sequence, place",
                (self.model,),
            ):
                _, sequence, key, *_ = read_key(row, None)
                yield sequence, key

    def sizes(self, above: int) -> Iterator[tuple[int, int]]:
        """Yield (sequence, bytes) of the answers of more bytes than a number, oldest first."""
        with self._reading():
            yield from self._file.db.execute(
                "SELECT sequence, length(record) FROM log WHERE model = ? "
                "AND kind = 'answer' AND length(record) > ? ORDER BY sequence, place",
                (self.model, above),
            )

    def find(self, sequence: int) -> KeyedRequest | None:
        """Return the key of the entry at a sequence, with its answer."""
        try:
            return self._find(sequence)
        except (sqlite3.Error, BrokenSeal) as error:
            raise StorageFailed(f"the journal could not be read: {error}") from error

    def _find(self, sequence: int) -> KeyedRequest | None:
        at = "SELECT * FROM log WHERE model = ? AND sequence = ? AND place = ?"
        key, answer = (
            self._file.db.execute(at, (self.model, sequence, place)).fetchone()
            for place in (KEY, ANSWER)
        )
        return None if key is None else read_key(key, answer)

    def unanswered(self, after: int) -> list[KeyedRequest]:
        """Return the keys after a sequence whose answers were not written."""
        with self._reading():
            rows = self._file.db.execute(
                "SELECT * FROM log AS keyed WHERE model = ? AND sequence > ? AND kind = 'key' "
                "AND NOT EXISTS (SELECT 1 FROM log WHERE model = keyed.model AND "
                "sequence = keyed.sequence AND place = ?)",
                (self.model, after, ANSWER),
            )
            return [read_key(row, None) for row in rows]

    def begin_term(self, sequence: int, epoch: str | None = None) -> "SqliteTerm":
        """Become the writer of the log, with another epoch if one is given."""
        term = SqliteTerm(self._file, self._high_water, self)
        if epoch is not None:
            term.write_event(sequence, "epoch", json.dumps({"epoch": epoch}).encode())
        return term

    def next_place(self, sequence: int) -> int:
        """Return the place of the next row at a sequence, after samples, key and answer.

        The last one is remembered: asking SQLite takes as long as writing a prediction. Where a
        commit fails, a place stays empty. Raises StorageFailed.
        """
        known, place = self._last_place
        if known != sequence:
            last = "SELECT coalesce(max(place), 0) FROM log WHERE model = ? AND sequence = ?"
            try:
                ((place,),) = self._file.db.execute(last, (self.model, sequence)).fetchall()
            except sqlite3.Error as error:
                raise StorageFailed(f"the journal could not be read: {error}") from error
        place = max(1 + int(place), LATER)
        self._last_place = sequence, place
        return place


class SqliteTerm(Term):
    """`storage.term.Term` in a database. Used by one thread at a time."""

    log: SqliteLog

    def __init__(self, file: SqliteFile, high_water: HighWater, log: SqliteLog) -> None:
        """Begin where the log ends.

        Args:
            file: the database.
            high_water: the marks of what was durable.
            log: the log to write.
        """
        super().__init__(log, 0)
        self._file, self._high_water = file, high_water

    def rows_of(self, part: Part, time: int) -> list[Row]:
        """Return the rows of entries. Raises StorageFailed."""
        return [
            entry_row(entry, time)
            if entry.samples
            else entry_row(entry, time, self.log.next_place(entry.sequence))
            for entry in part.entries
        ]

    @contextmanager
    def writing(self, part: Part = _NO_ENTRIES) -> Iterator[None]:
        """Have a commit under way: the file's transaction decides what becomes of it.

        Args:
            part: what is in doubt if that is not known.
        """
        self.begin()
        try:
            yield
        except InDoubt:
            self.doubt(part)
            raise
        except BaseException:
            self.finish()
            raise
        self.finish()

    def write_event(self, sequence: int, kind: str, record: bytes) -> None:
        """Write a row without samples. Raises StorageFailed, InDoubt."""
        with self.writing(), self._file.transaction():
            self._insert_event(sequence, kind, record)

    def _insert_event(self, sequence: int, kind: str, record: bytes) -> None:
        place = self.log.next_place(sequence)
        self._file.insert(
            "INSERT INTO log", [event_row(self.model, sequence, place, kind, now(), record)]
        )

    def insert_rollback(self, rollback: Rollback) -> None:
        """Insert a rollback, within a transaction."""
        self._insert_event(rollback.description["at"], "rollback", rollback_record(rollback))

    def _resolve(self, _part: Part) -> bool:
        """Make sure that the commit, which failed, does not come back."""
        self._file.settle()
        return False

    def acknowledged(self) -> int:
        """Return the sequence up to which the model was durable, as far as the mark knows."""
        return self._high_water.of(self.model)

    def note_durable(self, sequence: int) -> None:
        """Note, outside the log, that the model is durable up to a sequence."""
        self._high_water.note(self.model, sequence)

    def confirm(self) -> None:
        """Raise NotLeader if the term is over: no other process can have begun one."""
        if self.state is TermState.OVER:
            raise self.not_leader()

    def roll_back(
        self, rollback: Rollback, learned: int, pinned: Collection[str], kept: int
    ) -> list[str]:
        """Write a rollback; see `Term.roll_back`."""
        with self.writing(), self._file.transaction():
            self.insert_rollback(rollback)
            self._file.run(
                "DELETE FROM log WHERE model = ? AND sequence > ? AND kind IN ('key', 'answer')",
                (self.model, learned),
            )
        self.note_durable(rollback.description["at"])
        needed = {one.digest for one in self.log.rollbacks()[:kept]}
        return sorted(set(pinned) - needed)

    def write_answers(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the answers of keys that are there; the first answer of each counts."""
        with self.writing(), self._file.transaction():
            insert_keys(self._file, answered)

    def shorten_answers(self, shorter: Sequence[KeyedRequest]) -> None:
        """Write shorter answers, and forget the first ones."""
        with self.writing(), self._file.transaction():
            for row in shorter:
                self._file.run(
                    "DELETE FROM log WHERE model = ? AND sequence = ? AND place = ?",
                    (row.model, row.sequence, ANSWER),
                )
            insert_keys(self._file, shorter)

    def forget_keys(self, up_to: int) -> None:
        """Forget the keys of entries up to a sequence."""
        kinds = "kind IN ('key', 'answer')"
        self._delete(f"sequence <= ? AND {kinds}", up_to)

    def drop(self, up_to: int) -> None:
        """Forget what a snapshot at a sequence makes superfluous."""
        others = "kind IN ('prediction', 'fit', 'checkpoint', 'rollback', 'epoch')"
        samples = f"sequence <= ? AND kind IN {WITH_SAMPLES}"
        self._delete(f"({samples} OR sequence < ? AND {others})", up_to, up_to)
        self._high_water.sync()

    def drop_predictions(self, up_to: int) -> None:
        """Forget predictions whose rows have all left; see `Term.drop_predictions`."""
        self._delete("kind = 'prediction' AND block <= ?", up_to)

    def _delete(self, where: str, *values: int) -> None:
        with self.writing(), self._file.transaction():
            self._file.run(f"DELETE FROM log WHERE model = ? AND {where}", (self.model, *values))


def insert_keys(file: SqliteFile, keys: Sequence[KeyedRequest]) -> None:
    """Insert keys that have no answer yet, and the answers to those that are there.

    A key or an answer that is there already stays as it is. Raises StorageFailed.
    """
    time = now()
    rows = [answer_row(row, time) if row.answer is not None else key_row(row, time) for row in keys]
    file.insert("INSERT OR IGNORE INTO log", rows)


def _block_of(entry: Entry) -> tuple[int, str, bool]:
    """Return what the entries of a block have in common, and whether it may have several."""
    return entry.block, entry.kind, bool(entry.samples)

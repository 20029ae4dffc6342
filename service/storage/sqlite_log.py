"""One model's log in SQLite, and the term in which this process writes it.

The rows of all models are in one table (`sqlite_rows`), and each call of a reader queries it: a
reader holds nothing in memory. The lock on the data directory makes this process the only writer,
so a term ends only with the process or the model.

A commit whose fsync failed is undone before anything else is written (`SqliteFile.resolve`). It
never turns out to be in the log, so doubts never need a replay.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from wolfstream.service.errors import InDoubt, StorageFailed
from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.log import LoggedKey
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_rows import (
    ANSWER,
    KEY,
    LATER,
    WITH_SAMPLES,
    WITHOUT_SAMPLES,
    BrokenSeal,
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
from wolfstream.service.storage.term import Part, Term, TermState, UnownedLog

_NO_ENTRIES = Part()


class SqliteLog(UnownedLog):
    """`storage.log.LogReader` in a database. Used by one thread at a time.

    It has no faults, because the primary key allows one row per place; what is missing is noticed
    where the rest is learned; and a deleted model has no rows.
    """

    def __init__(self, file: SqliteFile, high_water: HighWater, model: int) -> None:
        """Read a model's rows in a database.

        Args:
            file: the database.
            high_water: the high-water marks.
            model: the number of the model.
        """
        self._file, self._high_water, self.model = file, high_water, model
        self.name = f"journal {file.path}"
        # (sequence, place) that `next_place` returned last.
        self._last_place: tuple[int | None, int] = (None, 0)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise StartupError for damage, which stays, and StorageFailed for a failed read.

        SQLite also reports a malformed file after a failed read (SQLITE_IOERR_CORRUPTFS), so its
        errors do not count as damage. The structure was checked when the file was opened, and
        seals check the content of rows.
        """
        try:
            yield
        except (BrokenSeal, UnicodeDecodeError) as error:
            raise self._file.damaged(str(error)) from None
        except (sqlite3.Error, OSError) as error:
            if not hasattr(error, "sqlite_errorcode") and not isinstance(error, OSError):
                # The sqlite3 module's own error for a text that is not UTF-8.
                raise self._file.damaged(str(error)) from None
            raise StorageFailed(
                f"the journal {self._file.path} cannot be read now: {error}; if it stays so, "
                "restore the data directory from a backup (`wolfstream restore`)"
            ) from error

    def begin(self) -> int | None:
        """Return the sequence after which the entries begin; None if there are none."""
        with self._reading():
            row = self._file.select_one(
                f"SELECT sequence - samples FROM log WHERE model = ? AND kind IN {WITH_SAMPLES} "
                "ORDER BY sequence LIMIT 1",
                (self.model,),
            )
            return None if row is None else int(row[0])

    def end(self) -> int:
        """Return the sequence of the last sample; 0 if there is none."""
        return self._last(f"kind IN {WITH_SAMPLES}")

    def last_event(self) -> int:
        """Return the sequence of the last record without samples; 0 if there is none."""
        return self._last("kind IN ('fit', 'checkpoint', 'rollback', 'epoch')")

    def _last(self, where: str) -> int:
        with self._reading():
            row = self._file.select_one(
                f"SELECT sequence FROM log WHERE model = ? AND {where} "
                "ORDER BY sequence DESC LIMIT 1",
                (self.model,),
            )
            return int(row[0]) if row else 0

    def blocks(self, after: int) -> Iterator[list[Entry]]:
        """Yield the entries after a sequence, a list per block; see `LogReader.blocks`."""
        with self._reading():
            # Entries at `after` itself that came before a rollback there are void.
            ((place,),) = self._file.select(
                "SELECT coalesce(max(place), 0) FROM log "
                "WHERE model = ? AND sequence = ? AND kind = 'rollback'",
                (self.model, after),
            )
            rows = self._file.select(
                "SELECT * FROM log WHERE model = ? "
                "AND kind IN ('samples', 'labels', 'prediction', 'fit', 'checkpoint') "
                f"AND (sequence > ? OR sequence = ? AND kind IN {WITHOUT_SAMPLES} AND place > ?) "
                "AND sequence >= ? ORDER BY sequence, place",
                (self.model, after, after, place, after),
            )
            for (_, _, is_shared), group in groupby(map(read_entry, rows), _block_key):
                block = list(group)
                yield from [block] if is_shared else [[entry] for entry in block]

    def epochs(self) -> list[tuple[int, str]]:
        """Return (sequence, epoch) of each epoch that began in the log; see `LogReader.epochs`."""
        with self._reading():
            rows = self._file.select(
                "SELECT * FROM log WHERE model = ? AND kind IN ('rollback', 'epoch') "
                "ORDER BY sequence, place",
                (self.model,),
            )
            return [(row.sequence, json.loads(row.record)["epoch"]) for row in map(unsealed, rows)]

    def rollbacks(self) -> list[Rollback]:
        """Return the rollbacks that later snapshots have not replaced, newest first."""
        with self._reading():
            rows = self._file.select(
                "SELECT * FROM log WHERE model = ? AND kind = 'rollback' "
                "ORDER BY sequence DESC, place DESC",
                (self.model,),
            )
            return [read_rollback(row) for row in rows]

    def keys(self, after: int = -1) -> Iterator[LoggedKey]:
        """Yield the idempotency keys after a sequence, oldest first."""
        with self._reading():
            for *row, n_bytes in self._file.select(
                "SELECT keyed.*, length(response.record) FROM log AS keyed "
                "LEFT JOIN log AS response ON response.model = keyed.model "
                "AND response.sequence = keyed.sequence AND response.place = ? "
                "WHERE keyed.model = ? AND keyed.sequence > ? AND keyed.kind = 'key' "
                "ORDER BY keyed.sequence, keyed.place",
                (ANSWER, self.model, after),
            ):
                request = read_key(tuple(row), None)
                yield LoggedKey(request.sequence, request.key, n_bytes)

    def find(self, sequence: int) -> KeyedRequest | None:
        """Return the keyed request that ends at a sequence, with its response."""
        try:
            return self._find(sequence)
        except (sqlite3.Error, BrokenSeal) as error:
            raise StorageFailed(f"the journal could not be read: {error}") from error

    def _find(self, sequence: int) -> KeyedRequest | None:
        at = "SELECT * FROM log WHERE model = ? AND sequence = ? AND place = ?"
        key, answer = (
            self._file.select_one(at, (self.model, sequence, place)) for place in (KEY, ANSWER)
        )
        return None if key is None else read_key(key, answer)

    def begin_term(self, sequence: int, epoch: str | None = None) -> "SqliteTerm":
        """Become the writer of the log; see `UnownedLog.begin_term`."""
        term = SqliteTerm(self._file, self._high_water, self)
        if epoch is not None:
            term.write_event(sequence, "epoch", json.dumps({"epoch": epoch}).encode())
        return term

    def next_place(self, sequence: int) -> int:
        """Return the place of the next row at a sequence, after samples, key and response.

        The last place is remembered, because a query takes as long as writing a prediction. A
        failed commit leaves a gap. Raises StorageFailed.
        """
        last_sequence, place = self._last_place
        if last_sequence != sequence:
            try:
                ((place,),) = self._file.select(
                    "SELECT coalesce(max(place), 0) FROM log WHERE model = ? AND sequence = ?",
                    (self.model, sequence),
                )
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
            high_water: the high-water marks.
            log: the log to write.
        """
        super().__init__(log, 0, high_water)
        self._file = file

    def entry_rows(self, part: Part, time: int) -> list[Row]:
        """Return the rows of a part's entries. Raises StorageFailed."""
        return [
            entry_row(entry, time)
            if entry.samples
            else entry_row(entry, time, self.log.next_place(entry.sequence))
            for entry in part.entries
        ]

    @contextmanager
    def writing(self, part: Part = _NO_ENTRIES) -> Iterator[None]:
        """Update the term's state while the block writes a commit.

        Args:
            part: what the block writes; it is in doubt if the block raises InDoubt.
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
        """Write a row without samples; durable on return. Raises StorageFailed, InDoubt."""
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

    def _is_stored(self, _part: Part) -> bool:
        """Undo the failed commit for good; return that it was not stored."""
        self._file.resolve()
        return False

    def confirm(self) -> None:
        """Raise NotLeader if the term is over; no other process can have begun one."""
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
        self.mark_durable(rollback.description["at"])
        needed = {last.digest for last in self.log.rollbacks()[:kept]}
        return sorted(set(pinned) - needed)

    def write_answers(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the responses of known keys; the first response of each key counts."""
        with self.writing(), self._file.transaction():
            insert_keys(self._file, answered)

    def shorten_answers(self, shorter: Sequence[KeyedRequest]) -> None:
        """Replace stored responses by shorter ones."""
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
        """Forget what a snapshot at a sequence replaces; see `Term.drop`."""
        others = "kind IN ('prediction', 'fit', 'checkpoint', 'rollback', 'epoch')"
        samples = f"sequence <= ? AND kind IN {WITH_SAMPLES}"
        self._delete(f"({samples} OR sequence < ? AND {others})", up_to, up_to)
        self._high_water.sync()

    def drop_predictions(self, up_to: int) -> None:
        """Forget predictions whose rows no longer wait; see `Term.drop_predictions`."""
        self._delete("kind = 'prediction' AND block <= ?", up_to)

    def _delete(self, where: str, *values: int) -> None:
        with self.writing(), self._file.transaction():
            self._file.run(f"DELETE FROM log WHERE model = ? AND {where}", (self.model, *values))


def insert_keys(file: SqliteFile, keys: Sequence[KeyedRequest]) -> None:
    """Insert the key of each request without a response, and the response of each other request.

    Existing keys and responses stay as they are. Raises StorageFailed, InDoubt.
    """
    time = now()
    rows = [answer_row(row, time) if row.answer is not None else key_row(row, time) for row in keys]
    file.insert("INSERT OR IGNORE INTO log", rows)


def _block_key(entry: Entry) -> tuple[int, str, bool]:
    """Return what the entries of a block have in common, and whether several may share one."""
    return entry.block, entry.kind, bool(entry.samples)

"""The journal in SQLite: durable, in one file, with one commit for all models.

Each row is sealed (`storage.seals`) and checked when it is read; the structure of the pages is
checked when the file is opened. Rows are added, and none is changed.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import groupby

from service.errors import StorageFailed
from service.storage.entries import Entry, KeyedRequest, Rollback, now
from service.storage.high_water import HighWater
from service.storage.replay_marks import ReplayMarks
from service.storage.sqlite_answers import insert_keys
from service.storage.sqlite_file import ROWS_PER_STATEMENT, SqliteFile
from service.storage.sqlite_rows import (
    LATER,
    WITH_SAMPLES,
    WITHOUT_SAMPLES,
    Row,
    entry_row,
    event_row,
    read_entry,
    read_rollback,
    rollback_record,
    unsealed,
)


class SqliteJournal:
    """`storage.journal.Journal` in a database. Used by one thread at a time.

    A commit is written for all of its models or for none.
    """

    def __init__(self, file: SqliteFile, high_water: HighWater, replays: ReplayMarks) -> None:
        self._file, self._high_water, self.replays = file, high_water, replays
        self.name = str(file.path)
        # For each model, the sequence of the last row that came after its samples, and its place.
        self._places: dict[int, tuple[int, int]] = {}

    def close(self) -> None:
        """Close the database and the marks."""
        self._file.close()
        self._high_water.close()
        self.replays.close()

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong with its file."""
        return self._file.damage()

    def append(
        self,
        entries: Sequence[Entry],
        keys: Sequence[KeyedRequest] = (),
        _patience: float | None = None,
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
        # The last of a model's entries counts, which the dictionary keeps.
        for model, sequence in {entry.model: entry.sequence for entry in entries}.items():
            self._high_water.note(model, sequence)
        return {}

    def finished(self, _seconds: float) -> dict[int, StorageFailed | None]:
        """Nothing: each commit has been waited for."""
        return {}

    def acknowledged(self, model: int) -> int:
        """Return the sequence up to which a model was durable, as far as the mark knows."""
        return self._high_water.of(model)

    def begin_at(self, model: int, sequence: int) -> None:
        """Note that a new model begins with a snapshot of this sequence."""
        self._high_water.note(model, sequence)
        self._high_water.sync()

    def _append(self, entries: Sequence[Entry], keys: Sequence[KeyedRequest]) -> None:
        time = now()
        several = keys or len(entries) > ROWS_PER_STATEMENT
        with self._file.transaction() if several else nullcontext():
            self._file.insert("INSERT INTO log", [self._row(entry, time) for entry in entries])
            insert_keys(self._file, keys)

    def _row(self, entry: Entry, time: int) -> Row:
        if entry.samples:
            return entry_row(entry, time)
        return entry_row(entry, time, self._next_place(entry.model, entry.sequence))

    def _next_place(self, model: int, sequence: int) -> int:
        """Return the place of the next row at a sequence, after samples, key and answer.

        The last one is remembered: asking SQLite takes as long as writing a prediction. Where that
        fails, a place stays empty.
        """
        known, place = self._places.get(model, (None, 0))
        if known != sequence:
            last = "SELECT coalesce(max(place), 0) FROM log WHERE model = ? AND sequence = ?"
            try:
                ((place,),) = self._file.db.execute(last, (model, sequence)).fetchall()
            except sqlite3.Error as error:
                raise StorageFailed(f"the journal could not be read: {error}") from error
        place = max(1 + int(place), LATER)
        self._places[model] = sequence, place
        return place

    def _append_event(self, model: int, sequence: int, kind: str, record: bytes) -> None:
        place = self._next_place(model, sequence)
        row = event_row(model, sequence, place, kind, now(), record)
        self._file.insert("INSERT INTO log", [row])

    def reread(self, _model: int, /) -> None:
        """Do nothing: no other process writes the file, and each call reads it."""

    def settle(self, _model: int, /) -> None:
        """Make sure that the last commit, if it failed, does not come back."""
        self._file.settle()

    def append_rollback(self, model: int, rollback: Rollback, learned: int) -> None:
        """Write a rollback; see `Journal.append_rollback`."""
        at = rollback.description["at"]
        with self._file.transaction():
            self._append_event(model, at, "rollback", rollback_record(rollback))
            self._file.run(
                "DELETE FROM log WHERE model = ? AND sequence > ? AND kind IN ('key', 'answer')",
                (model, learned),
            )
        self._high_water.note(model, at)

    def append_exchange(self, rollbacks: Mapping[int, Rollback]) -> None:
        """Write rollbacks of several models in one commit; see `Journal.append_exchange`."""
        ends = {model: int(rollback.description["at"]) for model, rollback in rollbacks.items()}
        with self._file.transaction():
            for model, rollback in rollbacks.items():
                record = rollback_record(rollback)
                self._append_event(model, ends[model], "rollback", record)
        for model, at in ends.items():
            self._high_water.note(model, at)

    def rolled_back_at(self, model: int) -> int | None:
        """Return the sequence of a model's last rollback; None if later snapshots replaced it."""
        rollbacks = self.rollbacks(model)
        return rollbacks[0].description["at"] if rollbacks else None

    def rollbacks(self, model: int) -> list[Rollback]:
        """Return a model's rollbacks that later snapshots have not replaced, the last one first."""
        with self._file.reading():
            rows = self._file.db.execute(
                "SELECT * FROM log WHERE model = ? AND kind = 'rollback' "
                "ORDER BY sequence DESC, place DESC",
                (model,),
            )
            return [read_rollback(row) for row in rows]

    def append_epoch(self, model: int, sequence: int, epoch: str) -> None:
        """Write that a new epoch begins at a sequence."""
        with self._file.transaction():
            self._append_event(model, sequence, "epoch", json.dumps({"epoch": epoch}).encode())

    def epoch_since(self, model: int, sequence: int) -> str | None:
        """Return the last epoch that began at a sequence or after it."""
        return self._last_epoch(model, "sequence >= ?", sequence)

    def epoch_before(self, model: int, sequence: int) -> str | None:
        """Return the last epoch that began before a sequence."""
        return self._last_epoch(model, "sequence < ?", sequence)

    def _last_epoch(self, model: int, where: str, sequence: int) -> str | None:
        with self._file.reading():
            row = self._file.db.execute(
                f"SELECT * FROM log WHERE model = ? AND {where} "
                "AND kind IN ('rollback', 'epoch') ORDER BY sequence DESC, place DESC LIMIT 1",
                (model, sequence),
            ).fetchone()
            return None if row is None else str(json.loads(unsealed(row).record)["epoch"])

    def begin(self, model: int) -> int | None:
        """Return the sequence after which a model's entries begin; None if it has none."""
        with self._file.reading():
            row = self._file.db.execute(
                f"SELECT sequence - samples FROM log WHERE model = ? AND kind IN {WITH_SAMPLES} "
                "ORDER BY sequence LIMIT 1",
                (model,),
            ).fetchone()
            return row and int(row[0])

    def end(self, model: int) -> int:
        """Return the sequence of a model's last sample in the journal; 0 if it has none."""
        with self._file.reading():
            row = self._file.db.execute(
                f"SELECT sequence FROM log WHERE model = ? AND kind IN {WITH_SAMPLES} "
                "ORDER BY sequence DESC LIMIT 1",
                (model,),
            ).fetchone()
            return int(row[0]) if row else 0

    def blocks(self, model: int, after: int) -> Iterator[list[Entry]]:
        """Yield a model's entries after a sequence, block by block; see `Journal.blocks`."""
        with self._file.reading():
            back = "SELECT coalesce(max(place), 0) FROM log WHERE model = ? AND sequence = ?"
            (place,) = self._file.db.execute(
                f"{back} AND kind = 'rollback'", (model, after)
            ).fetchone()
            rows = self._file.db.execute(
                "SELECT * FROM log WHERE model = ? "
                "AND kind IN ('samples', 'labels', 'prediction', 'fit', 'checkpoint') "
                f"AND (sequence > ? OR sequence = ? AND kind IN {WITHOUT_SAMPLES} AND place > ?) "
                "AND sequence >= ? ORDER BY sequence, place",
                (model, after, after, place, after),
            )
            for (_, _, several), group in groupby(map(read_entry, rows), _block_of):
                block = list(group)
                yield from [block] if several else [[entry] for entry in block]

    def drop(self, model: int, up_to: int) -> None:
        """Forget what a snapshot at a sequence makes superfluous."""
        of_model = "DELETE FROM log WHERE model = ? AND sequence"
        others = "kind IN ('prediction', 'fit', 'checkpoint', 'rollback', 'epoch')"
        with self._file.transaction():
            self._file.run(f"{of_model} <= ? AND kind IN {WITH_SAMPLES}", (model, up_to))
            self._file.run(f"{of_model} < ? AND {others}", (model, up_to))
        self._high_water.sync()

    def drop_predictions(self, model: int, up_to: int) -> None:
        """Forget predictions whose rows have all left; see `Journal.drop_predictions`."""
        self._file.run(
            "DELETE FROM log WHERE model = ? AND kind = 'prediction' AND block <= ?",
            (model, up_to),
        )


def _block_of(entry: Entry) -> tuple[int, str, bool]:
    """Return what the entries of a block have in common, and whether it may have several."""
    return entry.block, entry.kind, bool(entry.samples)

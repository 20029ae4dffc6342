"""Idempotency keys and the answers to their requests, in SQLite."""

import sqlite3
from collections.abc import Iterator, Sequence

from service.errors import StorageFailed
from service.storage.entries import KeyedRequest, now
from service.storage.seals import BrokenSeal
from service.storage.sqlite_file import SqliteFile
from service.storage.sqlite_rows import ANSWER, KEY, answer_row, key_row, read_key


class SqliteAnswers:
    """`storage.answers.Answers` in a database. Used by one thread at a time."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def keys(self, model: int) -> Iterator[tuple[int, bytes]]:
        """(sequence, key) of a model's keys, oldest first."""
        with self._file.reading():
            for row in self._file.db.execute(
                "SELECT * FROM log WHERE model = ? AND kind = 'key' ORDER BY sequence, place",
                (model,),
            ):
                _, sequence, key, *_ = read_key(row, None)
                yield sequence, key

    def sizes(self, model: int, above: int) -> Iterator[tuple[int, int]]:
        """(sequence, bytes) of a model's answers of more bytes than a number, oldest first."""
        with self._file.reading():
            yield from self._file.db.execute(
                "SELECT sequence, length(record) FROM log WHERE model = ? "
                "AND kind = 'answer' AND length(record) > ? ORDER BY sequence, place",
                (model, above),
            )

    def find(self, model: int, sequence: int) -> KeyedRequest | None:
        """Return the key of the entry at a sequence."""
        try:
            return self._find(model, sequence)
        except (sqlite3.Error, BrokenSeal) as error:
            raise StorageFailed(f"the journal could not be read: {error}") from error

    def _find(self, model: int, sequence: int) -> KeyedRequest | None:
        at = "SELECT * FROM log WHERE model = ? AND sequence = ? AND place = ?"
        key, answer = (
            self._file.db.execute(at, (model, sequence, place)).fetchone()
            for place in (KEY, ANSWER)
        )
        return None if key is None else read_key(key, answer)

    def unanswered(self, model: int, after: int) -> list[KeyedRequest]:
        """Return a model's keys after a sequence whose answers were not written."""
        with self._file.reading():
            rows = self._file.db.execute(
                "SELECT * FROM log AS keyed WHERE model = ? AND sequence > ? AND kind = 'key' "
                "AND NOT EXISTS (SELECT 1 FROM log WHERE model = keyed.model AND "
                "sequence = keyed.sequence AND place = ?)",
                (model, after, ANSWER),
            )
            return [read_key(row, None) for row in rows]

    def write(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the answers of keys that are there; the first answer of each counts."""
        with self._file.transaction():
            insert_keys(self._file, answered)

    def replace(self, shorter: Sequence[KeyedRequest]) -> None:
        """Write shorter answers, and forget the first ones."""
        with self._file.transaction():
            for row in shorter:
                self._file.run(
                    "DELETE FROM log WHERE model = ? AND sequence = ? AND place = ?",
                    (row.model, row.sequence, ANSWER),
                )
            insert_keys(self._file, shorter)

    def drop(self, model: int, up_to: int) -> None:
        """Forget the keys of a model's entries up to a sequence."""
        kinds = "kind IN ('key', 'answer')"
        self._file.run(
            f"DELETE FROM log WHERE model = ? AND sequence <= ? AND {kinds}", (model, up_to)
        )


def insert_keys(file: SqliteFile, keys: Sequence[KeyedRequest]) -> None:
    """Insert keys that have no answer yet, and the answers to those that are there.

    A key or an answer that is there already stays as it is. Raises StorageFailed.
    """
    time = now()
    rows = [answer_row(row, time) if row.answer is not None else key_row(row, time) for row in keys]
    file.insert("INSERT OR IGNORE INTO log", rows)

"""Idempotency keys and the answers to their requests, in SQLite."""

import sqlite3
from collections.abc import Iterator, Sequence

from service.errors import StorageFailed
from service.storage.entries import KeyedRequest
from service.storage.seals import BrokenSeal, unseal
from service.storage.sqlite_file import SqliteFile
from service.storage.sqlite_rows import seal_key, unseal_key


class SqliteAnswers:
    """`storage.interfaces.Answers` in a database. Used by one thread at a time."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def all_keys(self) -> Iterator[tuple[int, int, bytes]]:
        """(model, sequence, key) of all keys, each model's oldest first."""
        with self._file.reading():
            for model, sequence, key, digest in self._file.db.execute(
                "SELECT model, sequence, key, digest FROM keys ORDER BY model, sequence"
            ):
                unseal(digest, model, sequence, key)
                yield model, sequence, key

    def sizes(self, above: int) -> Iterator[tuple[int, int, int]]:
        """(model, sequence, bytes) of all answers of more bytes than a number, oldest first."""
        with self._file.reading():
            yield from self._file.db.execute(
                "SELECT model, sequence, length(answer) FROM keys WHERE length(answer) > ? "
                "ORDER BY model, sequence",
                (above,),
            )

    def find(self, model: int, sequence: int) -> KeyedRequest | None:
        """The key of the entry at a sequence."""
        try:
            row = self._file.db.execute(
                "SELECT * FROM keys WHERE model = ? AND sequence = ?", (model, sequence)
            ).fetchone()
            return row and unseal_key(row)
        except (sqlite3.Error, BrokenSeal) as error:
            raise StorageFailed(f"the journal could not be read: {error}") from error

    def unanswered(self, model: int) -> list[KeyedRequest]:
        """A model's keys whose answers were not written."""
        with self._file.reading():
            rows = self._file.db.execute(
                "SELECT * FROM keys WHERE model = ? AND answer IS NULL", (model,)
            )
            return [unseal_key(row) for row in rows]

    def write(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the answers of keys that are there."""
        with self._file.transaction():
            insert_keys(self._file, answered)

    def drop(self, model: int, up_to: int) -> None:
        """Forget the keys of a model's entries up to a sequence."""
        self._file.run("DELETE FROM keys WHERE model = ? AND sequence <= ?", (model, up_to))


def insert_keys(file: SqliteFile, keys: Sequence[KeyedRequest]) -> None:
    """Insert keys; of one that is there already, only the answer is written.

    Raises StorageFailed.
    """
    known = "ON CONFLICT (model, sequence) DO UPDATE SET answer = excluded.answer"
    file.insert("INSERT OR REPLACE INTO keys", [seal_key(row) for row in keys], known)

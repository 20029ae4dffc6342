"""The journal in SQLite: one file, and one commit for all models.

Rows are added and deleted, never changed. Each is sealed (`storage.sqlite_rows`) and checked when
it is read; the structure of the pages is checked when the file is opened.
"""

from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from typing import cast

from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.entries import Rollback, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.sqlite_file import ROWS_PER_STATEMENT, SqliteFile
from wolfstream.service.storage.sqlite_log import SqliteLog, SqliteTerm, insert_keys
from wolfstream.service.storage.term import Part, Term


class SqliteJournal:
    """`storage.interfaces.Journal` in a database. Used by one thread at a time.

    A commit is written for all of its terms or for none, and each call waits for the result, so a
    part is never Unfinished.

    Attributes:
        name: the path of the file.
        replays: marks of running replays.
    """

    def __init__(self, file: SqliteFile, high_water: HighWater, replays: ReplayMarks) -> None:
        """Use a database.

        Args:
            file: the database. `close` closes it and the marks.
            high_water: the high-water marks.
            replays: marks of running replays.
        """
        self._file, self._high_water, self.replays = file, high_water, replays
        self.name = str(file.path)

    def close(self) -> None:
        """Close the database and the marks."""
        self._file.close()
        self._high_water.close()
        self.replays.close()

    def damage(self) -> list[str]:
        """Return the faults that SQLite finds in its file."""
        return self._file.damage()

    def obstacle(self) -> str:
        """Return why it would refuse a commit now; "" if nothing shows."""
        return self._file.obstacle()

    def reader(self, model: int) -> SqliteLog:
        """Return a new reader of a model's log."""
        return SqliteLog(self._file, self._high_water, model)

    def append(
        self, parts: Mapping[Term, Part], _timeout: float | None = None
    ) -> dict[Term, StorageFailed]:
        """Write one commit with one fsync; return the terms whose parts were not written.

        It runs as few statements as SQLite allows: each one releases the interpreter lock, and
        then competes with the event loop to get it back.
        """
        writable, failures = dict[SqliteTerm, Part](), dict[Term, StorageFailed]()
        for term, part in cast(Mapping[SqliteTerm, Part], parts).items():
            try:
                term.check()
            except StorageFailed as error:  # concerns this term only
                failures[term] = error
            else:
                if part.entries or part.keys:
                    writable[term] = part
        try:
            self._append(writable)
        except StorageFailed as error:
            return failures | dict.fromkeys(writable, error)
        for term, part in writable.items():
            if part.entries:
                term.mark_durable(part.entries[-1].sequence)
        return failures

    def _append(self, parts: Mapping[SqliteTerm, Part]) -> None:
        time = now()
        keys = [key for part in parts.values() for key in part.keys]
        n_entries = sum(len(part.entries) for part in parts.values())
        # A single statement is a transaction of its own, which saves BEGIN and COMMIT.
        needs_transaction = keys or n_entries > ROWS_PER_STATEMENT
        with ExitStack() as stack:
            for term, part in parts.items():
                stack.enter_context(term.writing(part))
            rows = [row for term, part in parts.items() for row in term.entry_rows(part, time)]
            stack.enter_context(self._file.transaction() if needs_transaction else nullcontext())
            self._file.insert("INSERT INTO log", rows)
            insert_keys(self._file, keys)

    def finished(self, _timeout: float) -> dict[Term, StorageFailed | None]:
        """Return nothing: `append` waits for each commit."""
        return {}

    def exchange(self, rollbacks: Mapping[Term, Rollback]) -> None:
        """Write rollbacks of two models in one commit; see `Journal.exchange`."""
        by_term = cast(Mapping[SqliteTerm, Rollback], rollbacks)
        with ExitStack() as stack:
            for term in by_term:
                stack.enter_context(term.writing())
            stack.enter_context(self._file.transaction())
            for term, rollback in by_term.items():
                term.insert_rollback(rollback)
        for term, rollback in by_term.items():
            term.mark_durable(rollback.description["at"])

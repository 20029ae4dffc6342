"""The journal in SQLite: durable, in one file, with one commit for all models.

Each row is sealed (`storage.seals`) and checked when it is read; the structure of the pages is
checked when the file is opened. Rows are added, and none is changed.
"""

from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from typing import cast

from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.entries import Rollback, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.replay_marks import ReplayMarks
from wolfstream.service.storage.sqlite_file import ROWS_PER_STATEMENT, SqliteFile
from wolfstream.service.storage.sqlite_log import SqliteLog, SqliteTerm, insert_keys
from wolfstream.service.storage.term import Part, Term


class SqliteJournal:
    """`storage.journal.Journal` in a database. Used by one thread at a time.

    A commit is written for all of its terms or for none.

    Attributes:
        name: the path of the file.
        replays: the marks of replays.
    """

    def __init__(self, file: SqliteFile, high_water: HighWater, replays: ReplayMarks) -> None:
        """Use a database.

        Args:
            file: the database, which `close` closes.
            high_water: the marks of what was durable.
            replays: the marks of replays.
        """
        self._file, self._high_water, self.replays = file, high_water, replays
        self.name = str(file.path)

    def close(self) -> None:
        """Close the database and the marks."""
        self._file.close()
        self._high_water.close()
        self.replays.close()

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong with its file."""
        return self._file.damage()

    def reader(self, model: int) -> SqliteLog:
        """Return a new reader of a model's log."""
        return SqliteLog(self._file, self._high_water, model)

    def append(
        self, parts: Mapping[Term, Part], _patience: float | None = None
    ) -> dict[Term, StorageFailed]:
        """Write one commit, with one fsync; return the terms of which nothing was written.

        It takes as few statements as SQLite allows: around each one the interpreter lock is given
        up and has to be won back from the event loop.
        """
        of_terms, failures = dict[SqliteTerm, Part](), dict[Term, StorageFailed]()
        for term, part in cast(Mapping[SqliteTerm, Part], parts).items():
            try:
                term.check()
            except StorageFailed as error:  # of this term alone
                failures[term] = error
            else:
                if part.entries or part.keys:
                    of_terms[term] = part
        try:
            self._append(of_terms)
        except StorageFailed as error:
            return failures | dict.fromkeys(of_terms, error)
        for term, part in of_terms.items():
            if part.entries:
                term.note_durable(part.entries[-1].sequence)
        return failures

    def _append(self, parts: Mapping[SqliteTerm, Part]) -> None:
        time = now()
        keys = [key for part in parts.values() for key in part.keys]
        several = keys or sum(len(part.entries) for part in parts.values()) > ROWS_PER_STATEMENT
        with ExitStack() as stack:
            for term, part in parts.items():
                stack.enter_context(term.writing(part))
            rows = [row for term, part in parts.items() for row in term.rows_of(part, time)]
            stack.enter_context(self._file.transaction() if several else nullcontext())
            self._file.insert("INSERT INTO log", rows)
            insert_keys(self._file, keys)

    def finished(self, _seconds: float) -> dict[Term, StorageFailed | None]:
        """Return nothing: each commit has been waited for."""
        return {}

    def exchange(self, rollbacks: Mapping[Term, Rollback]) -> None:
        """Write rollbacks of two models in one commit; see `Journal.exchange`."""
        of_terms = cast(Mapping[SqliteTerm, Rollback], rollbacks)
        with ExitStack() as stack:
            for term in of_terms:
                stack.enter_context(term.writing())
            stack.enter_context(self._file.transaction())
            for term, rollback in of_terms.items():
                term.insert_rollback(rollback)
        for term, rollback in of_terms.items():
            term.note_durable(rollback.description["at"])

"""The SQLite database of a data directory: opened, checked, and written in durable transactions.

SQLite runs in write-ahead mode with synchronous=FULL, so what it has committed is fsynced.
"""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from wolfstream.service.errors import InDoubt, StartupError, StorageFailed
from wolfstream.service.storage.directories import make_private, sync_directory
from wolfstream.service.storage.sqlite_rows import (
    FORMAT,
    KINDS,
    LATER,
    OF_SERVER,
    SCHEMA,
    BrokenSeal,
    Row,
)
from wolfstream.service.storage.wal_check import check_write_ahead, write_ahead_path

logger = logging.getLogger(__name__)

# SQLite shrinks the write-ahead file to this size after a checkpoint.
_WAL_BYTES = 1 << 26
# The number of compiled statements cached. There is one for each number of rows, of half a kilobyte
# for each row: sqlite3's default of 128 grew to 25 MB under changing load.
_STATEMENTS = 32
_UNWRITABLE = "the journal cannot be written since an I/O error; nothing was learned"
# SQLite takes 32,766 values in a statement, and a row has 10.
ROWS_PER_STATEMENT = 1024


@lru_cache(maxsize=64)
def _insertion(into: str, columns: int, rows: int) -> str:
    """Return the statement that inserts rows; equal texts are parsed by SQLite once."""
    placeholders = f"({', '.join('?' * columns)})"
    return f"{into} VALUES {', '.join([placeholders] * rows)}"


class SqliteFile:
    """The database of the journal, the catalogue and the responses.

    It is written by one thread at a time. Many threads may read it at once by `select`, as during
    the recovery of a server's models.

    Attributes:
        path: the path of the file.
        db: the connection, for reading by one thread.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        """Open and check a database.

        Args:
            path: the path of the file.
            read_only: read the file as it is now, even while a server writes it.

        Raises StartupError if the file cannot be read, is damaged or has another format.
        """
        self.path = path
        self._read_only = read_only
        # Whether a commit failed in such a way that it may still be in the file.
        self._in_doubt = False
        # What `_check_place` looks at before each commit.
        self._files = path, write_ahead_path(path)
        # Each of its files -> the device and inode that were opened.
        self._opened = dict[Path, tuple[int, int]]()
        self._turn = Lock()  # held while the connection runs a statement or fetches a row
        if not read_only and check_write_ahead(write_ahead_path(path)):
            logger.warning(
                "the journal ends in an incomplete commit, which is ignored: it was being written "
                "when the server stopped, and was never acknowledged"
            )
        with self.reading():
            if not read_only:
                # SQLite creates its other files with the mode of this one.
                make_private(path)
            where = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            self.db = sqlite3.connect(
                where,
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_STATEMENTS,
            )
        try:
            with self.reading():
                self._prepare()
            if not read_only:
                self._check_place()
        except (StartupError, StorageFailed):
            self.db.close()
            raise

    def _prepare(self) -> None:
        """Check the file's format and content; set what a connection needs to write."""
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        is_new = not version and _has_no_table(self.db)
        if version != FORMAT and not is_new:
            raise StartupError(
                f"{self.path} has journal format {version}, this version reads {FORMAT}; "
                "start the version that wrote it, or choose another --data directory"
            )
        if self._read_only:
            if is_new:
                raise StartupError(
                    f"{self.path} is empty; start `wolfstream serve` on the directory once"
                )
            self.db.execute("BEGIN")
            self.db.execute(
                "SELECT count(*) FROM sqlite_master"
            ).fetchone()  # the read transaction starts here
            return
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        # Not in a file of this format: if damage had changed the table's name, an empty one would
        # silently replace it.
        if is_new:
            self._make_table()
        self._check_structure()
        self._check_rows()

    def _make_table(self) -> None:
        """Create the table of a new journal."""
        with self._transaction_at_start():
            self.db.execute(SCHEMA)
            self.db.execute(f"PRAGMA user_version = {FORMAT}")
        sync_directory(self.path.parent)

    @contextmanager
    def _transaction_at_start(self) -> Iterator[None]:
        """Run a transaction that raises sqlite3's own errors, unlike `transaction`."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def _check_structure(self) -> None:
        """Raise StartupError for damage that would hide rows silently."""
        result = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if result != "ok":
            raise self.damaged(result)

    def _check_rows(self) -> None:
        """Raise StartupError for rows that no query of this version would find."""
        columns = tuple(name for _, name, *_ in self.db.execute("PRAGMA table_info(log)"))
        if columns != Row._fields:
            raise self.damaged("its table does not have the columns that it was created with")
        combinations = self.db.execute(
            "SELECT DISTINCT model, kind, min(place, ?) FROM log", (LATER,)
        ).fetchall()
        unknown = sorted({kind for _, kind, _ in combinations} - KINDS.keys())
        if unknown:
            raise StartupError(
                f"{self.path} has entries of the kind {unknown[0]!r}, which this version does not "
                "know; start the version that wrote them, or restore the data directory from a "
                "backup (`wolfstream restore`)"
            )
        if any(KINDS[kind] != place for _, kind, place in combinations):
            raise self.damaged("entries are out of order")
        models = {model for model, *_ in combinations} - {OF_SERVER}
        created = self.db.execute(
            "SELECT sequence FROM log WHERE model = ? AND kind = 'created'", (OF_SERVER,)
        )
        if not models <= {number for (number,) in created}:
            raise self.damaged("it has entries of a model that it does not have")

    def damaged(self, detail: str) -> StartupError:
        """Return the error for a journal that differs from what was written."""
        return StartupError(
            f"the journal {self.path} is damaged: {detail}. Restore the data directory from a "
            "backup (`wolfstream restore`); starting with it would silently lose acknowledged "
            "samples"
        )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn errors of reading at start into StartupError."""
        try:
            yield
        except (BrokenSeal, UnicodeDecodeError) as error:  # in texts, including the schema
            raise self.damaged(str(error)) from None
        except (sqlite3.Error, OSError) as error:
            raise StartupError(
                f"the journal {self.path} cannot be read: {error}; check the directory's "
                "permissions and free space, or restore it from a backup (`wolfstream restore`)"
            ) from error

    def close(self) -> None:
        """Close the database; the write-ahead file is merged into it."""
        self.db.close()

    def select(self, statement: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query.

        Threads take turns for each row. Otherwise two threads that start the same query at once
        would get one compiled statement from sqlite3's cache, and each other's rows: before a
        statement's first row, Python 3.13 does not notice that it is in use.
        """
        with self._turn:
            cursor = self.db.execute(statement, values)
            row = cursor.fetchone()
        while row is not None:
            yield row
            with self._turn:
                row = cursor.fetchone()

    def select_one(self, statement: str, values: Sequence[Any]) -> tuple[Any, ...] | None:
        """Return the first row of a query; None if there is none."""
        return next(self.select(statement, values), None)

    def run(self, statement: str, values: Sequence[Any]) -> None:
        """Run one statement; outside a transaction it is durable on return.

        Raises StorageFailed if nothing was written, and InDoubt if that is unknown.
        """
        self.resolve()
        self._check_place()
        try:
            with self._turn:
                self.db.execute(statement, values)
        except (sqlite3.Error, MemoryError) as error:
            detail = f"the journal could not be written: {error or 'no memory is left'}"
            default = sqlite3.SQLITE_NOMEM if isinstance(error, MemoryError) else 0
            code = getattr(error, "sqlite_errorcode", default) & 0xFF
            # Only these may have failed after the commit was written.
            if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM):
                self._in_doubt = True
                if not self._undo_failed_commit():
                    raise InDoubt(
                        f"{detail}; after a restart it may turn out to have been written"
                    ) from error
            raise StorageFailed(detail) from error

    def _check_place(self) -> None:
        """Raise StorageFailed if a file was deleted, moved or replaced since it was opened.

        SQLite would go on writing what no start finds again.
        """
        for path in self._files:
            try:
                status = path.stat()
            except FileNotFoundError:
                if path not in self._opened:  # SQLite makes it for the first commit
                    continue
                raise StorageFailed(_gone(path)) from None
            except OSError as error:
                raise StorageFailed(f"the journal could not be written: {error}") from None
            identity = status.st_dev, status.st_ino
            if self._opened.setdefault(path, identity) != identity:
                raise StorageFailed(_gone(path))

    def obstacle(self) -> str:
        """Return why a commit would be refused now; see `Journal.obstacle`."""
        try:
            self._check_place()
        except StorageFailed:
            return "the files of the journal were deleted, moved or replaced, or cannot be reached"
        return _UNWRITABLE if self._in_doubt else ""

    def insert(self, into: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert any number of rows, with as few statements as SQLite allows.

        Args:
            into: the statement up to `VALUES`.
            rows: the rows, all of the same length.

        Raises StorageFailed, InDoubt.
        """
        for start in range(0, len(rows), ROWS_PER_STATEMENT):
            statement_rows = rows[start : start + ROWS_PER_STATEMENT]
            values = list(chain.from_iterable(statement_rows))
            self.run(_insertion(into, len(statement_rows[0]), len(statement_rows)), values)

    def resolve(self) -> None:
        """Make sure that a failed commit never comes back. Raises StorageFailed."""
        if self._in_doubt and not self._undo_failed_commit():
            raise StorageFailed(_UNWRITABLE)

    def _undo_failed_commit(self) -> bool:
        """Return whether the failed commit is gone for good.

        If its fsync failed, the write-ahead file may hold all of it, and the next start would read
        it. So the file is emptied, and another commit proves that it can be written again.
        """
        if self.db.in_transaction:  # COMMIT was not reached: ROLLBACK follows
            return True
        try:
            busy, *_ = self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self.db.execute(f"PRAGMA user_version = {FORMAT}")
        except sqlite3.Error:
            return False
        self._in_doubt = bool(busy)
        return not busy

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block writes, all or nothing; durable when the block ends.

        Raises StorageFailed if nothing was committed, and InDoubt if all of it may have been.
        """
        self.run("BEGIN IMMEDIATE", ())
        try:
            yield
            self.run("COMMIT", ())
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def damage(self) -> list[str]:
        """Return the faults that SQLite finds in its file; empty for a sound one."""
        try:
            rows = [str(row[0]) for row in self.db.execute("PRAGMA integrity_check(20)")]
        except sqlite3.Error as error:
            return [str(error)]
        return [] if rows == ["ok"] else rows


def _gone(path: Path) -> str:
    return (
        f"{path} was deleted, moved or replaced while the server was running; nothing was written. "
        "Put the file back, or stop the server and restore its data directory from a backup"
    )


def is_blank(path: Path) -> bool:
    """Return whether a journal's file has no table, because its first commit is missing."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return _has_no_table(database)
    except sqlite3.Error:
        return False  # opening the file will report this


def _has_no_table(database: sqlite3.Connection) -> bool:
    return not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

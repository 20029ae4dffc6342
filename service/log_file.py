"""The file of the log: opened, looked over, written in transactions that are on disk.

SQLite in write-ahead mode with synchronous=FULL: what has been committed has been fsynced.
"""

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.errors import StartupError, StorageFailed
from service.log_rows import COLUMNS, FORMAT, READ, SCHEMA
from service.seals import BrokenSeal
from service.write_ahead import check_write_ahead, write_ahead_path

logger = logging.getLogger(__name__)

# After a rollback the write-ahead file gives its room back.
_WAL_BYTES = 1 << 26
# Compiled statements that are kept, one for each size of group: half a kilobyte for each entry.
# sqlite3's own 128 grew to 25 MB under changing load.
_STATEMENTS = 32


class LogFile:
    """A log's database. Used by one thread at a time.

    db: the connection, for reading. read_only: to look at a log, as it is now, that a server may
    be writing. Raises StartupError where it cannot be opened or read.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._doubtful = False
        if not read_only and check_write_ahead(write_ahead_path(path)):
            logger.warning(
                "the log ends in a commit that is not whole and is passed over: it was being "
                "written, and nobody was told of it, when the server was stopped"
            )
        with self.reading():
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
                self._open()
        except StartupError:
            self.db.close()
            raise

    def _open(self) -> None:
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version not in READ:
            raise StartupError(
                f"{self._path} has log format {version}, this version reads {FORMAT}; "
                "start the version that wrote it, or choose another --data directory"
            )
        if self._read_only:
            if version != FORMAT:
                raise StartupError(
                    f"{self._path} has log format {version} of an older version; start "
                    "`wolfstream serve` on the directory once"
                )
            self.db.execute("BEGIN")
            return
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute("PRAGMA foreign_keys = ON")
        self.db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        if version != FORMAT:  # else a table whose name is damaged would be made anew, empty
            self.db.executescript(SCHEMA)
            self.db.execute(f"PRAGMA user_version = {FORMAT}")
        self._check_pages()

    def _check_pages(self) -> None:
        """Raise StartupError for rows that would be passed over in silence."""
        told = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
        stray = self.db.execute("PRAGMA foreign_key_check").fetchone()
        if told != "ok":
            raise self._damaged(told)
        for table, columns in COLUMNS.items():
            rows = self.db.execute(f"PRAGMA table_info({table})")
            if tuple(name for _, name, *_ in rows) != columns:
                raise self._damaged(f"its table {table} has other columns than it was made with")
        if stray:
            raise self._damaged("it has entries of a model that it does not have")

    def _damaged(self, detail: str) -> StartupError:
        return StartupError(
            f"the log {self._path} is damaged: {detail}. Restore the data directory from a backup; "
            "starting with it would silently lose acknowledged samples"
        )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """For reading at start: what fails keeps the server from it. Raises StartupError."""
        try:
            yield
        except (BrokenSeal, UnicodeDecodeError) as error:  # of the schema's own text too
            raise self._damaged(str(error)) from None
        except sqlite3.Error as error:
            raise StartupError(
                f"the log {self._path} cannot be read: {error}; check the directory's "
                "permissions and free space, or restore it from a backup"
            ) from error

    def close(self) -> None:
        """Close the database; the write-ahead file is folded in."""
        self.db.close()

    def run(self, statement: str, values: Sequence[Any]) -> None:
        """One statement; outside a transaction it is durable on return. Raises StorageFailed."""
        if self._doubtful and not self._settled():
            raise StorageFailed("the log cannot be written since an I/O error; nothing was learned")
        try:
            self.db.execute(statement, values)
        except sqlite3.Error as error:
            detail = f"the log could not be written: {error}"
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR:
                self._doubtful = True
                if not self._settled():
                    detail += "; after a restart it may prove to have been written all the same"
            raise StorageFailed(detail) from error

    def _settled(self) -> bool:
        """Make sure that a commit which failed does not come back; whether that succeeded.

        Where its fsync failed it may stand in the write-ahead file as a whole, and the next start
        would find it, unless the file is emptied and another commit proves that it can be written.
        """
        if self.db.in_transaction:
            return True
        try:
            busy, *_ = self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self.db.execute(f"PRAGMA user_version = {FORMAT}")
        except sqlite3.Error:
            return False
        self._doubtful = bool(busy)
        return not busy

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One commit of all that is run within, or nothing of it. Raises StorageFailed."""
        self.run("BEGIN IMMEDIATE", ())
        try:
            yield
            self.run("COMMIT", ())
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def damage(self) -> list[str]:
        """What SQLite finds wrong with its file; empty where that is nothing."""
        try:
            rows = [str(row[0]) for row in self.db.execute("PRAGMA integrity_check(20)")]
        except sqlite3.Error as error:
            return [str(error)]
        return [] if rows == ["ok"] else rows

"""A database for data that may be lost, apart from the journal: past numbers, and alerts."""

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from wolfstream.service.storage.directories import aside_path, make_private

logger = logging.getLogger(__name__)

T = TypeVar("T")


class SideFile:
    """One such file. Any thread may use it, and none waits long.

    Nothing that was acknowledged is in it: commits do not wait for the disk, a file that cannot be
    read is set aside, and a server that cannot write it goes on without it.

    schema: statements that create the tables which do not exist.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._path, self._schema = path, schema
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        try:
            self._db = self._opened()
        except (OSError, sqlite3.Error) as error:
            self._db = self._begin_anew(error)

    def use(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Return what `work` returns, done in one transaction; `otherwise` where the file fails."""
        with self._lock:
            if self._db is None:
                return otherwise
            try:
                with self._db:
                    return work(self._db)
            except sqlite3.Error as error:
                logger.error("%s: %s; the console and alerts lack what is in it", self._path, error)
                return otherwise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _opened(self) -> sqlite3.Connection:
        make_private(self._path)
        db = sqlite3.connect(self._path, check_same_thread=False, timeout=1.0)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            # Commits are not fsynced: that is for the journal's.
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(self._schema)
            if db.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("the file is damaged")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _begin_anew(self, error: Exception) -> sqlite3.Connection | None:
        aside = aside_path(self._path)
        logger.error("%s: %s; it is set aside as %s", self._path, error, aside.name)
        try:
            self._path.rename(aside)
            for suffix in ("-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            return self._opened()
        except (OSError, sqlite3.Error) as another:
            logger.error("%s: %s; no numbers are kept", self._path, another)
            return None

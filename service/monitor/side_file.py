"""A database beside the journal for data that may be lost: the console's history, and alerts."""

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

    Nothing that was acknowledged is in it. So commits do not wait for the disk, a file that cannot
    be read is set aside, and a server that cannot write it goes on without it.
    """

    def __init__(self, path: Path, schema: str) -> None:
        """Open the file, or begin a new one; failures are logged.

        Args:
            path: of the file.
            schema: statements that create the missing tables.
        """
        self._path, self._schema = path, schema
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None  # None if the file cannot be used
        try:
            self._db = self._open()
        except (OSError, sqlite3.Error) as error:
            self._db = self._replace(error)

    def use(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Run `work` in one transaction and return its result; `otherwise` if the file fails."""
        with self._lock:
            if self._db is None:
                return otherwise
            try:
                with self._db:
                    return work(self._db)
            except sqlite3.Error as error:
                logger.error(
                    "side file failed, console history and alerts incomplete: path=%s error=%s",
                    *(self._path, error),
                )
                return otherwise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _open(self) -> sqlite3.Connection:
        make_private(self._path)
        db = sqlite3.connect(self._path, check_same_thread=False, timeout=1.0)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            # No fsync of commits: nothing here is worth the wait.
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(self._schema)
            if db.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("the file is damaged")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _replace(self, error: Exception) -> sqlite3.Connection | None:
        """Set the file aside and open a new one; return None if that fails, too."""
        aside = aside_path(self._path)
        logger.error(
            "side file not readable, set aside: path=%s error=%s aside=%s",
            *(self._path, error, aside.name),
        )
        try:
            self._path.rename(aside)
            for suffix in ("-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            return self._open()
        except (OSError, sqlite3.Error) as another:
            logger.error(
                "side file not usable, console history and alerts off: path=%s error=%s",
                *(self._path, another),
            )
            return None

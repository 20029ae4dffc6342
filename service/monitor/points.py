"""The numbers of the last hours, in a file of the data directory beside the journal.

They are no part of what was acknowledged: the file is written without waiting for the disk, one
that cannot be read is set aside, and a server that cannot write it goes on without.
"""

import json
import logging
import sqlite3
import threading
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from service.storage.directories import make_private

logger = logging.getLogger(__name__)

# Of a model: six hours of points, if each ten seconds brought one. Of all models: about 30 MB.
MOST_OF_MODEL = 2_160
_MOST = 100_000
# Between two looks at how many there are in all.
_WRITES = 60
_SCHEMA = """
CREATE TABLE IF NOT EXISTS points (
    model INTEGER NOT NULL, time_ms INTEGER NOT NULL, numbers TEXT NOT NULL,
    PRIMARY KEY (model, time_ms)
) WITHOUT ROWID
"""

Numbers: TypeAlias = Mapping[str, float | None]


class Point(NamedTuple):
    """Some numbers of a model, by its id, at a time in milliseconds since 1970."""

    model: int
    time_ms: int
    numbers: Numbers


class PointFile:
    """The points of all models. Any thread may use it; none waits long."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._writes = 0
        self._db: sqlite3.Connection | None = None
        try:
            self._db = self._opened()
        except sqlite3.Error as error:
            self._db = self._begin_anew(error)

    def write(self, points: Sequence[Point], live: Collection[int]) -> None:
        """Add points, and forget the oldest of their models and all of models that are gone.

        live: the ids of the models that exist.
        """
        with self._lock:
            if self._db is None:
                return
            try:
                with self._db:
                    self._write(self._db, points, live)
            except sqlite3.Error as error:
                logger.error("%s: %s; the numbers of these seconds are lost", self._path, error)

    def read(self, model: int) -> dict[str, list[Any]]:
        """The points of a model, the oldest first: `time` (seconds since 1970) and each number."""
        with self._lock:
            if self._db is None:
                return {"time": []}
            query = "SELECT time_ms, numbers FROM points WHERE model = ? ORDER BY time_ms"
            try:
                rows = self._db.execute(query, (model,)).fetchall()
            except sqlite3.Error as error:
                logger.error("%s: %s; the numbers of before are not shown", self._path, error)
                return {"time": []}
        points = [json.loads(numbers) for _, numbers in rows]
        names = dict.fromkeys(name for point in points for name in point)
        columns = {name: [point.get(name) for point in points] for name in names}
        return {"time": [time_ms / 1000 for time_ms, _ in rows], **columns}

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _write(
        self, db: sqlite3.Connection, points: Sequence[Point], live: Collection[int]
    ) -> None:
        db.executemany(
            "INSERT OR REPLACE INTO points VALUES (?, ?, ?)",
            [(p.model, p.time_ms, json.dumps(p.numbers, separators=(",", ":"))) for p in points],
        )
        db.executemany(
            "DELETE FROM points WHERE model = ?1 AND time_ms <= (SELECT time_ms FROM points "
            "WHERE model = ?1 ORDER BY time_ms DESC LIMIT 1 OFFSET ?2)",
            [(point.model, MOST_OF_MODEL) for point in points],
        )
        if self._writes % _WRITES == 0:
            known = {model for (model,) in db.execute("SELECT DISTINCT model FROM points")}
            gone = known - set(live)
            db.executemany("DELETE FROM points WHERE model = ?", [(model,) for model in gone])
            (n,) = db.execute("SELECT count(*) FROM points").fetchone()
            if n > _MOST:
                db.execute(
                    "DELETE FROM points WHERE time_ms <= "
                    "(SELECT time_ms FROM points ORDER BY time_ms LIMIT 1 OFFSET ?)",
                    (n - _MOST,),
                )
        self._writes += 1

    def _opened(self) -> sqlite3.Connection:
        make_private(self._path)
        db = sqlite3.connect(self._path, check_same_thread=False, timeout=1.0)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            # The journal's fsync comes first: these numbers may be lost with the power.
            db.execute("PRAGMA synchronous = OFF")
            db.execute(_SCHEMA)
            if db.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("the file is damaged")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _begin_anew(self, error: sqlite3.Error) -> sqlite3.Connection | None:
        aside = self._path.with_name(f"{self._path.name}.{datetime.now(UTC):aside-%Y%m%dT%H%M%S}")
        logger.error("%s: %s; it is set aside as %s", self._path, error, aside.name)
        try:
            self._path.rename(aside)
            for suffix in ("-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            return self._opened()
        except (OSError, sqlite3.Error) as another:
            logger.error("%s: %s; no numbers are kept", self._path, another)
            return None

"""The numbers of the last hours, so that a plot can show what came before it was opened."""

import json
import math
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from wolfstream.service.monitor.side_file import SideFile

# Points of a model: six hours, one every ten seconds. Points of all models: about 30 MB.
MAX_PER_MODEL = 2_160
_MAX_POINTS = 100_000
# How many writes there are between two counts of all points.
_WRITES = 60
SCHEMA = """
CREATE TABLE IF NOT EXISTS points (
    model INTEGER NOT NULL, time_ms INTEGER NOT NULL, numbers TEXT NOT NULL,
    PRIMARY KEY (model, time_ms)
) WITHOUT ROWID;
"""

Numbers: TypeAlias = Mapping[str, float | None]


class Point(NamedTuple):
    """Some numbers of a model at a time."""

    model: int  # its number
    time_ms: int  # milliseconds since 1970
    numbers: Numbers


class Points:
    """The points of all models, in a file."""

    def __init__(self, file: SideFile) -> None:
        """Use a file."""
        self._file = file
        self._writes = 0  # so far

    def write(self, points: Sequence[Point], live: Collection[int]) -> None:
        """Add points; delete the oldest if there are too many, and those of deleted models.

        Args:
            points: at most one of each model.
            live: numbers of the models that exist.
        """
        self._file.use(lambda db: self._write(db, points, live), None)

    def read(self, model: int) -> dict[str, list[Any]]:
        """Return a model's points as columns, oldest first: `time` in s since 1970, each number."""
        query = "SELECT time_ms, numbers FROM points WHERE model = ? ORDER BY time_ms"
        rows: list[tuple[int, str]] = []
        rows = self._file.use(lambda db: db.execute(query, (model,)).fetchall(), rows)
        points = [json.loads(numbers) for _, numbers in rows]
        names = dict.fromkeys(name for point in points for name in point)
        columns = {name: [point.get(name) for point in points] for name in names}
        return {"time": [time_ms / 1000 for time_ms, _ in rows], **columns}

    def _write(
        self, db: sqlite3.Connection, points: Sequence[Point], live: Collection[int]
    ) -> None:
        db.executemany(
            "INSERT OR REPLACE INTO points VALUES (?, ?, ?)",
            [(point.model, point.time_ms, _to_json(point.numbers)) for point in points],
        )
        # Later ones were written before the clock was put back.
        db.executemany(
            "DELETE FROM points WHERE model = ? AND time_ms > ?",
            [(point.model, point.time_ms) for point in points],
        )
        db.executemany(
            "DELETE FROM points WHERE model = ?1 AND time_ms <= (SELECT time_ms FROM points "
            "WHERE model = ?1 ORDER BY time_ms DESC LIMIT 1 OFFSET ?2)",
            [(point.model, MAX_PER_MODEL) for point in points],
        )
        if self._writes % _WRITES == 0:
            _forget(db, live)
        self._writes += 1


def _forget(db: sqlite3.Connection, live: Collection[int]) -> None:
    """Delete the points of models that no longer exist, and the oldest if there are too many."""
    stored = {model for (model,) in db.execute("SELECT DISTINCT model FROM points")}
    deleted = [(model,) for model in stored - set(live)]
    db.executemany("DELETE FROM points WHERE model = ?", deleted)
    (n,) = db.execute("SELECT count(*) FROM points").fetchone()
    if n > _MAX_POINTS:
        db.execute(
            "DELETE FROM points WHERE time_ms <= "
            "(SELECT time_ms FROM points ORDER BY time_ms LIMIT 1 OFFSET ?)",
            (n - _MAX_POINTS,),
        )


def _to_json(numbers: Mapping[str, Any]) -> str:
    """Return a point's numbers as JSON, without infinities and NaN, which JSON lacks."""
    finite = {
        name: value
        for name, value in numbers.items()
        if not isinstance(value, float) or math.isfinite(value)
    }
    return json.dumps(finite, allow_nan=False, separators=(",", ":"))

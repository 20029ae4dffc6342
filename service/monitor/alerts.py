"""Alerts: each change of a head's loss is reported once, and stored until it has been posted.

A head's changes are part of its state and survive a crash. The alerts here only record which of
them were reported. So none is missed, even if the server is killed in between.
"""

import json
import sqlite3
import time
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from wolfstream.service.model.live import Model
from wolfstream.service.monitor.console_state import now_as_text
from wolfstream.service.monitor.side_file import SideFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS alerts (
    model INTEGER NOT NULL, head TEXT NOT NULL, sequence INTEGER NOT NULL, content TEXT NOT NULL,
    waiting INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (model, head, sequence)
) WITHOUT ROWID;
"""
# Alerts stored for each head; at least as many as its state has changes, so that none of these is
# reported twice.
_MAX_PER_HEAD = 50
# Alerts of all models that wait to be posted; beyond that the oldest are dropped.
_MAX_WAITING = 1_000


class Alert(NamedTuple):
    """A change of a head's loss."""

    model_id: int
    head: str
    sequence: int
    content: dict[str, Any]  # what is posted
    tries: int = 0  # failed attempts to post it


def model_alerts(model: Model) -> list[Alert]:
    """Return the changes in the states of a model's heads, as alerts.

    Those from before the snapshot that the model was rolled back to are left out: they were
    reported when they came, perhaps so long ago that their alerts are no longer stored.
    """
    epoch, time_text = model.published.epoch, now_as_text()
    reported = 0 if model.rolled_back is None else model.rolled_back["to"]
    return [
        Alert(
            model.id,
            head,
            change.sequence,
            {
                "model": model.name,
                "epoch": epoch,
                "head": head,
                **change._asdict(),
                "time": time_text,
            },
        )
        for head, view in model.published.heads.items()
        for change in view.changes
        if change.sequence > reported
    ]


# The longest time for which an alert is postponed, in seconds.
LONGEST_PAUSE = 600.0


class Alerts:
    """The alerts of all models, in a file."""

    def __init__(self, file: SideFile, posted: bool) -> None:
        """Use a file.

        Args:
            file: for the alerts.
            posted: whether new alerts wait to be posted; otherwise they are only recorded.
        """
        self._file, self._posted = file, posted

    def record(self, alerts: Iterable[Alert]) -> list[Alert]:
        """Record alerts and return the new ones; if the file fails, each model's last ones."""
        candidates = list(alerts)
        last: dict[int, int] = {}  # model -> its last sequence
        for alert in candidates:
            last[alert.model_id] = max(alert.sequence, last.get(alert.model_id, 0))
        newest = [alert for alert in candidates if alert.sequence == last[alert.model_id]]
        return self._file.use(lambda db: self._record(db, candidates), newest)

    def due(self) -> Alert | None:
        """Return the alert that has been due longest; None if none is due."""
        query = (
            "SELECT model, head, sequence, content, tries FROM alerts "
            "WHERE waiting AND NOT (due > ? AND due <= ?) ORDER BY due LIMIT 1"
        )
        # One that is due later than any pause lasts was postponed before the clock was put back.
        now = time.time()
        pauses = now, now + LONGEST_PAUSE
        row = self._file.use(lambda db: db.execute(query, pauses).fetchone(), None)
        if row is None:
            return None
        model, head, sequence, content, tries = row
        return Alert(model, head, sequence, json.loads(content), tries)

    def finish(self, alert: Alert) -> None:
        """Mark an alert as done: it will not be posted (again)."""
        self._update(alert, "waiting = 0")

    def postpone(self, alert: Alert, seconds: float) -> None:
        """Have an alert posted again after some seconds, at most LONGEST_PAUSE."""
        self._update(alert, "tries = tries + 1, due = ?", time.time() + seconds)

    def forget(self, live: Collection[int]) -> None:
        """Delete the alerts of models that no longer exist, except those that wait.

        Args:
            live: ids of the models that exist.
        """

        def forget(db: sqlite3.Connection) -> None:
            stored = {model for (model,) in db.execute("SELECT DISTINCT model FROM alerts")}
            deleted = [(model,) for model in stored - set(live)]
            db.executemany("DELETE FROM alerts WHERE model = ? AND NOT waiting", deleted)

        self._file.use(forget, None)

    def _record(self, db: sqlite3.Connection, alerts: list[Alert]) -> list[Alert]:
        """Insert alerts, and delete what is beyond the bounds; return the new ones."""
        new = []
        for alert in alerts:
            key = alert.model_id, alert.head, alert.sequence
            values = *key, json.dumps(alert.content, allow_nan=False), self._posted, time.time()
            insert = (
                "INSERT OR IGNORE INTO alerts (model, head, sequence, content, waiting, due) "
                "VALUES (?, ?, ?, ?, ?, ?)"
            )
            if db.execute(insert, values).rowcount:
                new.append(alert)
        db.executemany(
            # A rollback does not lower the sequence: the lowest ones are the oldest.
            "DELETE FROM alerts WHERE NOT waiting AND model = ?1 AND head = ?2 AND sequence <= "
            "(SELECT sequence FROM alerts WHERE model = ?1 AND head = ?2 "
            "ORDER BY sequence DESC LIMIT 1 OFFSET ?3)",
            [(alert.model_id, alert.head, _MAX_PER_HEAD) for alert in new],
        )
        if new and self._posted:
            db.execute(
                "UPDATE alerts SET waiting = 0 WHERE waiting AND due <= "
                "(SELECT due FROM alerts WHERE waiting ORDER BY due DESC LIMIT 1 OFFSET ?)",
                (_MAX_WAITING,),
            )
        return new

    def _update(self, alert: Alert, change: str, *values: float) -> None:
        """Change the row of an alert.

        Args:
            alert: it.
            change: assignments of SQL.
            values: those of its placeholders.
        """
        query = f"UPDATE alerts SET {change} WHERE model = ? AND head = ? AND sequence = ?"
        key = alert.model_id, alert.head, alert.sequence
        self._file.use(lambda db: db.execute(query, (*values, *key)), None)

"""Alerts: each change of a head is noted once, and kept until it has been posted.

A head's changes are part of its state and survive a crash; what is noted here only records which of
them have been reported. So none is missed, even if the server is killed in between.
"""

import json
import sqlite3
import time
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from wolfstream.service.model.live import Model
from wolfstream.service.monitor.picture import now_as_text
from wolfstream.service.monitor.side_file import SideFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS alerts (
    model INTEGER NOT NULL, head TEXT NOT NULL, sequence INTEGER NOT NULL, content TEXT NOT NULL,
    waiting INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (model, head, sequence)
) WITHOUT ROWID;
"""
# The alerts kept for each head, at least as many as its state holds.
_KEPT = 50
# Alerts of all models that wait to be posted; beyond that the oldest are dropped.
_MOST_WAITING = 1_000


class Alert(NamedTuple):
    """A change that was noted. tries: how many attempts to post it have failed."""

    model_id: int
    head: str
    sequence: int
    content: dict[str, Any]
    tries: int = 0


def alerts_of(model: Model) -> list[Alert]:
    """Return the changes of a model that its heads still know, as alerts."""
    epoch, seen = model.published.epoch, now_as_text()
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
                "time": seen,
            },
        )
        for head, view in model.published.heads.items()
        for change in view.changes
    ]


class Alerts:
    """The alerts of all models, in a file. posted: whether new ones will be posted."""

    def __init__(self, file: SideFile, posted: bool) -> None:
        self._file, self._posted = file, posted

    def note(self, alerts: Iterable[Alert]) -> list[Alert]:
        """Note alerts, and return those that are new; the newest where the file cannot be used."""
        given = list(alerts)
        last = max((alert.sequence for alert in given), default=0)
        newest = [alert for alert in given if alert.sequence == last]
        return self._file.use(lambda db: self._note(db, given), newest)

    def due(self) -> Alert | None:
        """Return the alert that has been due longest; None if none is due."""
        query = (
            "SELECT model, head, sequence, content, tries FROM alerts WHERE waiting AND due <= ? "
            "ORDER BY due LIMIT 1"
        )
        row = self._file.use(lambda db: db.execute(query, (time.time(),)).fetchone(), None)
        if row is None:
            return None
        model, head, sequence, content, tries = row
        return Alert(model, head, sequence, json.loads(content), tries)

    def settle(self, alert: Alert) -> None:
        """Mark an alert as done: it will not be posted again."""
        self._update(alert, "waiting = 0")

    def put_off(self, alert: Alert, seconds: float) -> None:
        """Let an alert be posted again after some seconds."""
        self._update(alert, "tries = tries + 1, due = ?", time.time() + seconds)

    def forget(self, live: Collection[int]) -> None:
        """Delete the alerts of models that no longer exist. live: the ids of those that do."""

        def forget(db: sqlite3.Connection) -> None:
            known = {model for (model,) in db.execute("SELECT DISTINCT model FROM alerts")}
            gone = [(model,) for model in known - set(live)]
            db.executemany("DELETE FROM alerts WHERE model = ? AND NOT waiting", gone)

        self._file.use(forget, None)

    def _note(self, db: sqlite3.Connection, alerts: list[Alert]) -> list[Alert]:
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
            "DELETE FROM alerts WHERE NOT waiting AND model = ?1 AND head = ?2 AND sequence <= "
            "(SELECT sequence FROM alerts WHERE model = ?1 AND head = ?2 "
            "ORDER BY sequence DESC LIMIT 1 OFFSET ?3)",
            [(alert.model_id, alert.head, _KEPT) for alert in new],
        )
        if new and self._posted:
            db.execute(
                "UPDATE alerts SET waiting = 0 WHERE waiting AND due <= "
                "(SELECT due FROM alerts WHERE waiting ORDER BY due DESC LIMIT 1 OFFSET ?)",
                (_MOST_WAITING,),
            )
        return new

    def _update(self, alert: Alert, change: str, *values: float) -> None:
        query = f"UPDATE alerts SET {change} WHERE model = ? AND head = ? AND sequence = ?"
        key = alert.model_id, alert.head, alert.sequence
        self._file.use(lambda db: db.execute(query, (*values, *key)), None)

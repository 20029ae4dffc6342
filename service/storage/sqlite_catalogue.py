"""The catalogue of models in SQLite: what the journal records of their creation and deletion."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.storage.catalogue import NameTaken
from wolfstream.service.storage.entries import CatalogueEntry, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.sqlite_file import SqliteFile
from wolfstream.service.storage.sqlite_log import SqliteLog, SqliteTerm
from wolfstream.service.storage.sqlite_rows import (
    OF_SERVER,
    SAMPLES,
    created_record,
    event_row,
    read_created,
)
from wolfstream.service.storage.term import Term

# Deletions are remembered, of this many events of the catalogue.
_EVENTS_KEPT = 10_000


def models_in(file: SqliteFile) -> list[CatalogueEntry]:
    """Return all models in a database, oldest first. Raises StartupError."""
    with file.reading():
        rows = file.db.execute(
            "SELECT * FROM log WHERE model = ? AND kind = 'created' ORDER BY sequence",
            (OF_SERVER,),
        )
        return [read_created(row) for row in rows]


class SqliteCatalogue:
    """`storage.catalogue.Catalogue` in a database. Used by one thread at a time."""

    def __init__(self, file: SqliteFile, high_water: HighWater) -> None:
        """Use a database, and the marks of what was durable."""
        self._file, self._high_water = file, high_water
        self._names: dict[str, int] | None = None

    def models(self) -> list[CatalogueEntry]:
        """Return all models, oldest first."""
        return models_in(self._file)

    def find(self, name: str) -> CatalogueEntry | None:
        """Return the model of a name; None if there is none."""
        try:
            return next((found for found in self.models() if found.name == name), None)
        except StartupError as error:
            raise StorageFailed(str(error)) from None

    def is_followed(self, model: int) -> bool:
        """Return whether another model follows this one."""
        return any(found.follows == model for found in self.models())

    @contextmanager
    def creating(
        self,
        name: str,
        spec: dict[str, Any],
        epoch: str,
        follows: int | None = None,
        sequence: int = 0,
        made: int | None = None,
    ) -> Iterator[Term]:
        """Add a model that exists once the block has ended without an error.

        Its number is durable before the block begins, so what is written under it there never
        belongs to another model.

        made: when it was, in milliseconds since 1970, if that was elsewhere and before.
        """
        if name in self._known():
            raise NameTaken(f"the journal has a model {name!r}")
        model = self._give_number()
        term = SqliteLog(self._file, self._high_water, model).begin_term(sequence)
        yield term
        with self._file.transaction():
            self._file.run("DELETE FROM log WHERE model = ? AND sequence = ?", (OF_SERVER, model))
            self._insert("created", model, created_record(name, spec, epoch, follows), made)
        self._known()[name] = model
        if sequence:
            term.note_durable(sequence)
            self._high_water.sync()

    def _give_number(self) -> int:
        """Return a number that no model had or will have.

        Until its model exists, the number is that of a model that was deleted and had no name.
        """
        with self._file.transaction():
            model = self._next_event()
            record = json.dumps({"model": model, "name": ""}).encode()
            self._insert("deleted", model, record)
        return model

    def delete(self, term: Term) -> None:
        """Remove a model: its deletion is written, and all else that the journal has of it goes."""
        assert isinstance(term, SqliteTerm)
        with term.writing():
            self._delete(term.model)
        term.end()

    def finish_deletion(self, entry: CatalogueEntry) -> None:
        """Do nothing: a deletion is one transaction."""

    def _delete(self, model: int) -> None:
        names = [name for name, number in self._known().items() if number == model]
        with self._file.transaction():
            event = self._next_event()
            for name in names:
                record = json.dumps({"model": model, "name": name}).encode()
                self._insert("deleted", event, record)
            self._file.run("DELETE FROM log WHERE model = ?", (model,))
            gone = "DELETE FROM log WHERE model = ? AND (sequence = ? OR kind = 'deleted' AND "
            self._file.run(f"{gone} sequence < ?)", (OF_SERVER, model, event - _EVENTS_KEPT))
        for name in names:
            del self._known()[name]

    def _known(self) -> dict[str, int]:
        if self._names is None:
            self._names = {found.name: found.number for found in self.models()}
        return self._names

    def last_event(self) -> int:
        """The sequence of the last event, no less than the number of any model; 0 before the first.

        Raises StartupError.
        """
        with self._file.reading():
            last = "SELECT coalesce(max(sequence), 0) FROM log WHERE model = ?"
            return int(self._file.db.execute(last, (OF_SERVER,)).fetchone()[0])

    def _next_event(self) -> int:
        """Return the sequence of the next event, which was never given before."""
        return 1 + self.last_event()

    def _insert(self, kind: str, event: int, record: bytes, time: int | None = None) -> None:
        time = now() if time is None else time
        row = event_row(OF_SERVER, event, SAMPLES, kind, time, record)
        self._file.insert("INSERT INTO log", [row])

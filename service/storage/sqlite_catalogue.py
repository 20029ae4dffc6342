"""The catalogue in SQLite: rows of the journal that record creations and deletions of models."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wolfstream.service.errors import StartupError, StorageFailed
from wolfstream.service.storage.entries import CatalogueEntry, now
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.interfaces import NameTaken
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

# Deletions are kept as rows for this many further events of the catalogue.
_EVENTS_KEPT = 10_000


def models_in(file: SqliteFile) -> list[CatalogueEntry]:
    """Return all models in a database, oldest first. Raises StartupError."""
    with file.reading():
        rows = file.select(
            "SELECT * FROM log WHERE model = ? AND kind = 'created' ORDER BY sequence",
            (OF_SERVER,),
        )
        return [read_created(row) for row in rows]


class SqliteCatalogue:
    """`storage.interfaces.Catalogue` in a database. Used by one thread at a time."""

    def __init__(self, file: SqliteFile, high_water: HighWater) -> None:
        """Use a database and its high-water marks."""
        self._file, self._high_water = file, high_water
        # name -> number of the models that exist; None until first needed.
        self._numbers_by_name: dict[str, int] | None = None

    def models(self) -> list[CatalogueEntry]:
        """Return all models, oldest first."""
        return models_in(self._file)

    def find(self, name: str) -> CatalogueEntry | None:
        """Return the model of a name; None if there is none."""
        try:
            return next((model for model in self.models() if model.name == name), None)
        except StartupError as error:
            raise StorageFailed(str(error)) from None

    def is_followed(self, model: int) -> bool:
        """Return whether a challenger follows this model."""
        return any(other.follows == model for other in self.models())

    @contextmanager
    def creating(
        self,
        name: str,
        spec: dict[str, Any],
        epoch: str,
        follows: int | None = None,
        sequence: int = 0,
        created: int | None = None,
    ) -> Iterator[Term]:
        """Create a model that exists once the block ends; see `Catalogue.creating`.

        Args:
            name: the model's name.
            spec: the model's spec, as plain data.
            epoch: the model's first epoch.
            follows: the number of its champion.
            sequence: the sequence to start from.
            created: the time of its creation elsewhere, in milliseconds since 1970; None for now.
        """
        if name in self._numbers():
            raise NameTaken(f"the journal has a model {name!r}")
        model = self._reserve_number()
        term = SqliteLog(self._file, self._high_water, model).begin_term(sequence)
        yield term
        with self._file.transaction():
            self._file.run("DELETE FROM log WHERE model = ? AND sequence = ?", (OF_SERVER, model))
            self._insert("created", model, created_record(name, spec, epoch, follows), created)
        self._numbers()[name] = model
        if sequence:
            term.mark_durable(sequence)
            self._high_water.sync()

    def _reserve_number(self) -> int:
        """Return a number that no model had or will have; durable on return.

        Until its model exists, a row marks the number as that of a deleted model without a name.
        """
        with self._file.transaction():
            model = self._next_event()
            record = json.dumps({"model": model, "name": ""}).encode()
            self._insert("deleted", model, record)
        return model

    def delete(self, term: Term) -> None:
        """Delete all rows of a model, and insert the row of its deletion."""
        assert isinstance(term, SqliteTerm)
        with term.writing():
            self._delete(term.model)
        term.end()

    def finish_deletion(self, entry: CatalogueEntry) -> None:
        """Do nothing: a deletion is one transaction."""

    def _delete(self, model: int) -> None:
        names = [name for name, number in self._numbers().items() if number == model]
        with self._file.transaction():
            event = self._next_event()
            for name in names:
                record = json.dumps({"model": model, "name": name}).encode()
                self._insert("deleted", event, record)
            self._file.run("DELETE FROM log WHERE model = ?", (model,))
            self._file.run(  # its creation, and old deletions
                "DELETE FROM log WHERE model = ? "
                "AND (sequence = ? OR kind = 'deleted' AND sequence < ?)",
                (OF_SERVER, model, event - _EVENTS_KEPT),
            )
        for name in names:
            del self._numbers()[name]

    def _numbers(self) -> dict[str, int]:
        if self._numbers_by_name is None:
            self._numbers_by_name = {model.name: model.number for model in self.models()}
        return self._numbers_by_name

    def last_event(self) -> int:
        """Return the sequence of the last event, or 0; no model has a higher number.

        Raises StartupError.
        """
        with self._file.reading():
            last = "SELECT coalesce(max(sequence), 0) FROM log WHERE model = ?"
            ((sequence,),) = self._file.select(last, (OF_SERVER,))
            return int(sequence)

    def _next_event(self) -> int:
        """Return the sequence of the next event, which is never reused."""
        return 1 + self.last_event()

    def _insert(self, kind: str, event: int, record: bytes, time: int | None = None) -> None:
        time = now() if time is None else time
        row = event_row(OF_SERVER, event, SAMPLES, kind, time, record)
        self._file.insert("INSERT INTO log", [row])

"""The catalogue of models in SQLite."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from service.storage.seals import BrokenSeal, seal, unseal_if_marked
from service.storage.sqlite_file import SqliteFile


class SqliteCatalogue:
    """`storage.interfaces.Catalogue` in a database. Used by one thread at a time."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def models(self) -> list[tuple[int, str, dict[str, Any]]]:
        """(number, name, spec) of all models, oldest first."""
        with self._file.reading():
            rows = list(self._file.db.execute("SELECT id, name, spec FROM models ORDER BY id"))
            return [(model, name, _read_spec(model, name, sealed)) for model, name, sealed in rows]

    @contextmanager
    def creating(self, name: str, spec: dict[str, Any]) -> Iterator[int]:
        """Add a model that exists once the block has ended without an error."""
        with self._file.transaction():
            self._file.run("INSERT INTO models (name, spec) VALUES (?, ?)", (name, ""))
            of_name = "SELECT id FROM models WHERE name = ?"
            model = int(self._file.db.execute(of_name, (name,)).fetchone()[0])
            sealed = seal(json.dumps(spec).encode(), model, name)
            self._file.run("UPDATE models SET spec = ? WHERE id = ?", (sealed, model))
            yield model

    def delete(self, model: int) -> None:
        """Remove a model with its entries and keys."""
        self._file.run("DELETE FROM models WHERE id = ?", (model,))


def _read_spec(model: int, name: str, sealed: Any) -> dict[str, Any]:
    """The spec in a row. Raises BrokenSeal."""
    text = sealed.encode() if isinstance(sealed, str) else sealed  # text in older versions
    try:
        spec: dict[str, Any] = json.loads(unseal_if_marked(text, model, name))
    except ValueError:
        raise BrokenSeal from None
    return spec

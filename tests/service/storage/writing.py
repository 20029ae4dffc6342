"""Short ways to write to a data directory's storage."""

from collections.abc import Sequence
from typing import Any

from service.storage.entries import Entry, KeyedRequest
from service.storage.interfaces import Storage


def create(storage: Storage, name: str, spec: dict[str, Any]) -> int:
    """A new model."""
    with storage.catalogue.creating(name, spec, f"epoch of {name}") as model:
        return model


def append(storage: Storage, entries: Sequence[Entry], keys: Sequence[KeyedRequest] = ()) -> None:
    """One commit, written for all of its models or for none. Raises StorageFailed."""
    failures = storage.journal.append(entries, keys)
    if failures:
        assert failures.keys() == {row.model for row in (*entries, *keys)}
        raise next(iter(failures.values()))

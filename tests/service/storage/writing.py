"""Short ways to write to a storage, with one term for each of its models."""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from wolfstream.service.storage.entries import Entry, KeyedRequest, new_epoch
from wolfstream.service.storage.interfaces import Journal, Storage
from wolfstream.service.storage.log import LogReader
from wolfstream.service.storage.sqlite_journal import SqliteJournal
from wolfstream.service.storage.term import Part, Term, UnownedLog

# By journal and number of a model.
_terms: WeakKeyDictionary[Journal, dict[int, Term]] = WeakKeyDictionary()


def create(storage: Storage, name: str, spec: dict[str, Any]) -> int:
    """A new model."""
    with storage.catalogue.creating(name, spec, f"epoch of {name}") as term:
        _of(storage)[term.model] = term
    return term.model


def term_of(storage: Storage, model: int) -> Term:
    """The term in which a model is written here; the last one that began."""
    return held(storage, model) or new_term(storage, model)


def held(storage: Storage, model: int) -> Term | None:
    """The term that has begun here, if one has."""
    return _of(storage).get(model)


def new_term(storage: Storage, model: int, epoch: str | None = None) -> Term:
    """A new term behind everything that a model's log has; in another epoch if one is given.

    Where other processes may write the log, there always is another epoch.
    """
    log = log_of(storage, model)
    if epoch is None and not isinstance(storage.journal, SqliteJournal):
        epoch = new_epoch()
    term = log.begin_term(max(log.end(), log.last_event()), epoch)
    _of(storage)[model] = term
    return term


def _of(storage: Storage) -> dict[int, Term]:
    return _terms.setdefault(storage.journal, {})


def log_of(storage: Storage, model: int) -> UnownedLog:
    """What a model's log has by now."""
    return storage.journal.reader(model)


def keys_of(log: LogReader) -> list[tuple[int, bytes]]:
    """(sequence, key) of each idempotency key in a log."""
    return [key[:2] for key in log.keys()]  # noqa: SIM118


def answered_in(log: LogReader) -> list[int]:
    """The sequences of the requests whose responses are in a log."""
    return [key.sequence for key in log.keys() if key.n_bytes is not None]  # noqa: SIM118


def append(storage: Storage, entries: Sequence[Entry], keys: Sequence[KeyedRequest] = ()) -> None:
    """One commit, written for all of its models or for none. Raises StorageFailed."""
    models = {entry.model: None for entry in entries} | {key.model: None for key in keys}
    parts = {
        term_of(storage, model): Part(
            [entry for entry in entries if entry.model == model],
            [key for key in keys if key.model == model],
        )
        for model in models
    }
    failures = storage.journal.append(parts)
    if failures:
        assert failures.keys() == parts.keys()
        raise next(iter(failures.values()))


def delete(storage: Storage, model: int) -> None:
    """Delete a model."""
    storage.catalogue.delete(term_of(storage, model))
    del _of(storage)[model]

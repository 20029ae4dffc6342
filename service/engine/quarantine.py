"""Models of a data directory that no server uses: listed, left out of the next start, or deleted.

A model that is left out is not replayed when a server starts. It predicts with its last snapshot
and learns nothing until `wolfstream serve --recover` tries again. Its log is kept.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.engine.recovery import restore_newest
from wolfstream.service.errors import WolfstreamError
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.data_directory import (
    DirectoryInUse,
    journal_path,
    open_storage,
    owned,
)
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.interfaces import Storage


class QuarantineError(WolfstreamError):
    """The directory is in use, or has no such model; the message says what to do."""


class ModelStatus(NamedTuple):
    """A model as its files describe it.

    Attributes:
        name: of the model.
        sequence: of its last sample.
        snapshots: sequences of the snapshots that are kept, newest first.
        left_out: whether the next start of a server will not replay it.
    """

    name: str
    sequence: int
    snapshots: list[int]
    left_out: bool


def model_statuses(data: Path) -> list[ModelStatus]:
    """Return the standing of each model, oldest first; a server may be using the directory.

    Raises QuarantineError, StartupError.
    """
    _check_is_there(data)
    with closing(open_storage(data, read_only=True)) as storage:
        return [_standing(model, storage) for model in storage.catalogue.models()]


def leave_out(data: Path, name: str) -> int:
    """Leave a model out of the next start; return the sequence of the state that it will serve.

    Raises QuarantineError, StartupError.
    """
    with _stopped(data) as storage:
        entry = _find(storage, name)
        learner = Learner(Model(entry.number, name, read_stored_spec(entry.spec)), entry.epoch)
        restore_newest(learner, storage.journal.reader(entry.number), storage.snapshots)
        replays = storage.journal.replays
        replays.leave_out(entry.number, learner.sequence, replays.max_crashes)
        return learner.sequence


def delete(data: Path, name: str) -> None:
    """Delete a model with its log and snapshots.

    Raises QuarantineError, StartupError, StorageFailed.
    """
    with _stopped(data) as storage:
        entry = _find(storage, name)
        for other in storage.catalogue.models():
            if other.follows == entry.number:  # what it learned since its snapshot would be lost
                raise QuarantineError(
                    f"model {other.name!r} learns from the log of {name!r}: delete it first, or "
                    f"start a server and DELETE {name!r} there, which keeps what both have learned"
                )
        storage.catalogue.delete(storage.journal.reader(entry.number).begin_term(0))
        storage.snapshots.delete(entry.number)


def _standing(entry: CatalogueEntry, storage: Storage) -> ModelStatus:
    log, replays = storage.journal.reader(entry.number), storage.journal.replays
    snapshots = storage.snapshots.sequences(entry.number)
    end = max(log.end(), log.rolled_back_at() or 0, *snapshots[:1])
    left_out = replays.crashes(entry.number) >= replays.max_crashes
    return ModelStatus(entry.name, end, snapshots, left_out)


@contextmanager
def _stopped(data: Path) -> Iterator[Storage]:
    """Open the storage of a directory that no server uses."""
    _check_is_there(data)
    try:
        with owned(data), closing(open_storage(data)) as storage:
            yield storage
    except DirectoryInUse:
        raise QuarantineError(f"a server holds {data}; stop it first, or ask it to") from None


def _check_is_there(data: Path) -> None:
    if not journal_path(data).exists():
        raise QuarantineError(f"{data} is no data directory: it has no {journal_path(data).name}")


def _find(storage: Storage, name: str) -> CatalogueEntry:
    entries = storage.catalogue.models()
    for entry in entries:
        if entry.name == name:
            return entry
    names = ", ".join(entry.name for entry in entries) or "none"
    raise QuarantineError(f"there is no model {name!r}; there is {names}")

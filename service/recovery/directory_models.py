"""Models of a data directory, without a server: listed, exported, imported, left out or deleted.

A model that is left out is not replayed when a server starts. It predicts with its last snapshot
and learns nothing until `wolfstream serve --recover` tries again. Its log is kept.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.errors import WolfstreamError
from wolfstream.service.model.live import Model
from wolfstream.service.process_settings import Threads
from wolfstream.service.recovery.model_files import LoadedModel, add_model
from wolfstream.service.recovery.model_recovery import check_reached, new_learner, restore_newest
from wolfstream.service.recovery.replay import replay
from wolfstream.service.storage.data_directory import (
    DirectoryInUse,
    check_exists,
    check_journal_end,
    open_storage,
    owned,
)
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.interfaces import Snapshots, Storage
from wolfstream.service.storage.log import rolled_back_at
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State


class DirectoryModelError(WolfstreamError):
    """What was asked for is impossible with this directory; the message says what to do."""


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


class ExportedState(NamedTuple):
    """An exported state.

    Attributes:
        state: of the model.
        journal_end: the sequence at which the log ends.
        while_serving: whether a server was running, which may have learned more since.
    """

    state: State
    journal_end: int
    while_serving: bool


def model_statuses(data: Path) -> list[ModelStatus]:
    """Return the status of each model, oldest first; a server may be using the directory.

    Raises StartupError.
    """
    check_exists(data)
    with closing(open_storage(data, read_only=True)) as storage:
        return [_status(entry, storage) for entry in storage.catalogue.models()]


def _status(entry: CatalogueEntry, storage: Storage) -> ModelStatus:
    log, replays = storage.journal.reader(entry.number), storage.journal.replays
    snapshots = storage.snapshots.sequences(entry.number)
    end = max(log.end(), rolled_back_at(log) or 0, *snapshots[:1])
    left_out = replays.crashes(entry.number) >= replays.max_crashes
    return ModelStatus(entry.name, end, snapshots, left_out)


def leave_out(data: Path, name: str) -> int:
    """Leave a model out of the next start; return the sequence of the state that it will serve.

    Raises DirectoryModelError, StartupError.
    """
    with _stopped(data) as storage:
        entry = _entry(data, storage, name)
        learner = new_learner(entry)
        restore_newest(learner, storage.journal.reader(entry.number), storage.snapshots)
        replays = storage.journal.replays
        replays.leave_out(entry.number, learner.sequence, replays.max_crashes)
        return learner.sequence


def delete(data: Path, name: str) -> None:
    """Delete a model with its log and snapshots.

    Raises DirectoryModelError, StartupError, StorageFailed.
    """
    with _stopped(data) as storage:
        entry = _entry(data, storage, name)
        for other in storage.catalogue.models():
            if other.follows == entry.number:  # what it learned since its snapshot would be lost
                raise DirectoryModelError(
                    f"model {other.name!r} learns from the log of {name!r}: delete it first, or "
                    f"start a server and DELETE {name!r} there, which keeps what both have learned"
                )
        storage.catalogue.delete(storage.journal.reader(entry.number).begin_term(0))
        storage.snapshots.delete(entry.number)


def export_model(
    data: Path, name: str, sequence: int | None, watch: Callable[[int, int], None]
) -> ExportedState:
    """Return a model as it was acknowledged; while a server runs, its newest complete snapshot.

    The latter holds for challengers as well, because they learn from their champions' logs. Nothing
    in the directory is changed.

    Args:
        data: the data directory.
        name: of the model.
        sequence: of a kept snapshot to export instead; None for the newest state.
        watch: called with the sequence that the replay has reached, and the one at which it ends.

    Raises DirectoryModelError, StartupError.
    """
    check_exists(data)
    with ExitStack() as stack:
        while_serving = False
        try:
            stack.enter_context(owned(data))
        except DirectoryInUse:
            while_serving = True
        else:
            check_journal_end(data)
        storage = stack.enter_context(closing(open_storage(data, read_only=True)))
        entry = _entry(data, storage, name)
        learner = new_learner(entry)
        model = learner.model
        ids = {other.number for other in storage.catalogue.models()}
        champion = entry.follows if entry.follows in ids else None
        log, snapshots = storage.journal.reader(model.id), storage.snapshots
        end = log.end() if champion is None else storage.journal.reader(champion).end()
        if sequence is not None:
            return ExportedState(_kept_state(model, snapshots, sequence), end, while_serving)
        skipped = restore_newest(learner, log, snapshots)
        if not while_serving and champion is None:
            for _ in replay(learner, log, Threads().using):
                watch(learner.sequence, end)
            if not model.broken:
                check_reached(learner, log, skipped)
        elif not learner.sequence:
            raise DirectoryModelError(
                f"the server has not saved a snapshot of {name!r} yet: POST "
                f"/v1/models/{name}/snapshot makes one"
            )
        if model.broken:
            raise DirectoryModelError(
                f"model {name!r}: {model.broken}; export a snapshot with --sequence, there are "
                f"{snapshots.sequences(model.id)}"
            )
        return ExportedState(State(*learner.state()), max(end, learner.sequence), while_serving)


def _kept_state(model: Model, snapshots: Snapshots, sequence: int) -> State:
    sequences = snapshots.sequences(model.id)
    if sequence not in sequences:
        listed = ", ".join(map(str, sequences)) or "none"
        raise DirectoryModelError(
            f"model {model.name!r} has no snapshot of sequence {sequence}; it has {listed}"
        )
    try:
        return snapshots.load(model.id, sequence)
    except DamagedSnapshot as error:
        raise DirectoryModelError(f"{error}; choose another --sequence") from None


def import_model(data: Path, path: Path, name: str) -> LoadedModel:
    """Import the model in a file into a data directory that no server uses.

    Raises DirectoryModelError, ModelFileError, StartupError, StorageFailed, OSError.
    """
    try:
        with owned(data), closing(open_storage(data)) as storage:
            if name in (entry.name for entry in storage.catalogue.models()):
                raise DirectoryModelError(
                    f"{data} has a model {name!r}; choose another --name, or DELETE that one"
                )
            return add_model(name, path, storage)[0]
    except DirectoryInUse:
        raise DirectoryModelError(
            f"a server holds {data}; stop it first, or let it take the file as it starts: "
            f"`wolfstream serve --load {name}={path}`"
        ) from None


@contextmanager
def _stopped(data: Path) -> Iterator[Storage]:
    """Open the storage of a directory that no server uses."""
    check_exists(data)
    with owned(data), closing(open_storage(data)) as storage:
        yield storage


def _entry(data: Path, storage: Storage, name: str) -> CatalogueEntry:
    """Return the catalogue's entry of a model. Raises DirectoryModelError."""
    entry = storage.catalogue.find(name)
    if entry is not None:
        return entry
    names = ", ".join(entry.name for entry in storage.catalogue.models()) or "none"
    raise DirectoryModelError(f"{data} has no model {name!r}; it has {names}")

"""Export of models from a data directory to files, and import from files."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.engine.model_files import LoadedModel, add_model
from wolfstream.service.engine.recovery import check_reached, restore_newest
from wolfstream.service.engine.replay import replay
from wolfstream.service.errors import WolfstreamError
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.native.threads import Threads
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.service.storage.catalogue import Catalogue
from wolfstream.service.storage.data_directory import (
    DirectoryInUse,
    check_journal_end,
    journal_path,
    open_storage,
    owned,
)
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State
from wolfstream.service.storage.snapshots import Snapshots


class TransferError(WolfstreamError):
    """A model or snapshot does not exist, or exists already; the message says which."""


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

    Raises TransferError, StartupError.
    """
    if not journal_path(data).exists():
        raise TransferError(f"{data} is no data directory: it has no {journal_path(data).name}")
    with ExitStack() as stack:
        while_serving = False
        try:
            stack.enter_context(owned(data))
        except DirectoryInUse:
            while_serving = True
        else:
            check_journal_end(data)
        storage = stack.enter_context(closing(open_storage(data, read_only=True)))
        learner, champion = _empty_learner(data, storage.catalogue, name)
        model = learner.model
        log, snapshots = storage.journal.reader(model.id), storage.snapshots
        end = log.end() if champion is None else storage.journal.reader(champion).end()
        if sequence is not None:
            return ExportedState(_kept(model, snapshots, sequence), end, while_serving)
        skipped = restore_newest(learner, log, snapshots)
        if not while_serving and champion is None:
            for _ in replay(learner, log, Threads().using):
                watch(learner.sequence, end)
            if not model.broken:
                check_reached(learner, log, skipped)
        elif not learner.sequence:
            raise TransferError(
                f"the server has not saved a snapshot of {name!r} yet: POST "
                f"/v1/models/{name}/snapshot makes one"
            )
        if model.broken:
            raise TransferError(
                f"model {name!r}: {model.broken}; export a snapshot with --sequence, there are "
                f"{snapshots.sequences(model.id)}"
            )
        return ExportedState(State(*learner.state()), max(end, learner.sequence), while_serving)


def import_model(data: Path, path: Path, name: str) -> LoadedModel:
    """Import the model in a file into a data directory that no server uses.

    Raises TransferError, ModelFileError, StartupError, StorageFailed, OSError.
    """
    try:
        with owned(data), closing(open_storage(data)) as storage:
            if name in (entry.name for entry in storage.catalogue.models()):
                raise TransferError(
                    f"{data} has a model {name!r}; choose another --name, or DELETE that one"
                )
            return add_model(name, path, storage)[0]
    except DirectoryInUse:
        raise TransferError(
            f"a server holds {data}; stop it first, or let it take the file as it starts: "
            f"`wolfstream serve --load {name}={path}`"
        ) from None


def _empty_learner(data: Path, catalogue: Catalogue, name: str) -> tuple[Learner, int | None]:
    """Return a learner of a model's spec, and the id of its champion, if that exists."""
    entries = catalogue.models()
    ids = {entry.number for entry in entries}
    for entry in entries:
        if entry.name == name:
            model = Model(entry.number, name, read_stored_spec(entry.spec))
            champion = entry.follows if entry.follows in ids else None
            return Learner(model, entry.epoch), champion
    names = ", ".join(entry.name for entry in entries) or "none"
    raise TransferError(f"{data} has no model {name!r}; it has {names}")


def _kept(model: Model, snapshots: Snapshots, sequence: int) -> State:
    sequences = snapshots.sequences(model.id)
    if sequence not in sequences:
        listed = ", ".join(map(str, sequences)) or "none"
        raise TransferError(
            f"model {model.name!r} has no snapshot of sequence {sequence}; it has {listed}"
        )
    try:
        return snapshots.load(model.id, sequence)
    except DamagedSnapshot as error:
        raise TransferError(f"{error}; choose another --sequence") from None

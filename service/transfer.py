"""Models between a data directory and model files, with no server or beside one."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

from service.data_directory import DirectoryInUse, log_path, owned, snapshots_path
from service.errors import WolfstreamError
from service.loading import LoadedModel, add_model
from service.log import Log
from service.model import Model
from service.recovery import replay, restore_newest
from service.snapshots import DamagedSnapshot, Snapshots, State
from service.spec import ModelSpec
from service.threads import Threads


class TransferError(WolfstreamError):
    """There is no such model or snapshot, or there is one already; the message says which."""


class Exported(NamedTuple):
    """A model's state. logged: the sequence to which the log goes.

    beside: whether a server was running, which may have gone on since.
    """

    state: State
    logged: int
    beside: bool


def export_model(
    data: Path, name: str, sequence: int | None, watch: Callable[[int, int], None]
) -> Exported:
    """A model as it was acknowledged; beside a running server, its newest whole snapshot.

    sequence: of the kept snapshot to take instead. watch: told the sequence that the replay of
    the log has reached, and where it ends. Nothing in the directory is changed.
    Raises TransferError, StartupError.
    """
    if not log_path(data).exists():
        raise TransferError(f"{data} is no data directory: it has no {log_path(data).name}")
    snapshots = Snapshots(snapshots_path(data))
    with ExitStack() as stack:
        beside = False
        try:
            stack.enter_context(owned(data))
        except DirectoryInUse:
            beside = True
        log = stack.enter_context(closing(Log(log_path(data), read_only=True)))
        model = _model(data, log, name)
        logged = log.end(model.id)
        if sequence is not None:
            return Exported(_kept(model, snapshots, sequence), logged, beside)
        restore_newest(model, log, snapshots)
        if not beside:
            for _ in replay(model, log, Threads().use):
                watch(model.sequence, logged)
        elif not model.sequence:
            raise TransferError(
                f"the server has not saved a snapshot of {name!r} yet: POST "
                f"/v1/models/{name}/snapshot makes one"
            )
        if model.broken:
            raise TransferError(
                f"model {name!r}: {model.broken}; export a snapshot with --sequence, there are "
                f"{snapshots.sequences(model.id)}"
            )
        return Exported(State(*model.state()), max(logged, model.sequence), beside)


def import_model(data: Path, path: Path, name: str) -> LoadedModel:
    """Make the model in a file one of a data directory's, which no server may hold.

    Raises TransferError, ModelFileError, StartupError, StorageFailed, OSError.
    """
    try:
        with owned(data), closing(Log(log_path(data))) as log:
            if name in (other for _, other, _ in log.models()):
                raise TransferError(
                    f"{data} has a model {name!r}; choose another --name, or DELETE that one"
                )
            return add_model(name, path, log, Snapshots(snapshots_path(data)))
    except DirectoryInUse:
        raise TransferError(
            f"a server holds {data}; stop it first, or let it take the file as it starts: "
            f"`wolfstream serve --load {name}={path}`"
        ) from None


def _model(data: Path, log: Log, name: str) -> Model:
    models = log.models()
    for model_id, other, spec in models:
        if other == name:
            return Model(model_id, name, ModelSpec(**spec))
    names = ", ".join(other for _, other, _ in models) or "none"
    raise TransferError(f"{data} has no model {name!r}; it has {names}")


def _kept(model: Model, snapshots: Snapshots, sequence: int) -> State:
    kept = snapshots.sequences(model.id)
    if sequence not in kept:
        there = ", ".join(map(str, kept)) or "none"
        raise TransferError(
            f"model {model.name!r} has no snapshot of sequence {sequence}; it has {there}"
        )
    try:
        return snapshots.load(model.id, sequence)
    except DamagedSnapshot as error:
        raise TransferError(f"{error}; choose another --sequence") from None

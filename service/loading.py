"""Model files: what `wolfstream train` writes, and every snapshot of the server."""

from pathlib import Path
from typing import Any, NamedTuple

from service.errors import WolfstreamError
from service.log import Log
from service.model import Model
from service.snapshots import DamagedSnapshot, Snapshots, State, read_state
from service.spec import ModelSpec, read_spec


class ModelFileError(WolfstreamError):
    """A file is no whole model of this version; the message names the file and says why."""


class LoadedModel(NamedTuple):
    """A model as it was saved. trained: the record of `wolfstream train`, {} of a snapshot.

    sparse: whether its rows are sparse. numbered: whether its features are, as in files; of
    sparse rows a server may have learned any names. first_index: of svmlight files, if known.
    """

    model: Model
    state: State
    trained: dict[str, Any]
    sparse: bool
    numbered: bool
    first_index: int | None


def load_model(path: Path, name: str = "", model_id: int = 0) -> LoadedModel:
    """Read a model file and publish its model. Raises ModelFileError."""
    state, spec = read_model_file(path)
    return revive(path, state, Model(model_id, name, spec))


def add_model(name: str, path: Path, log: Log, snapshots: Snapshots) -> LoadedModel:
    """Make the model in a file one of a data directory's, of a new name.

    Its row in the log is committed after its snapshot is on disk, so at no moment does an empty
    model of this name exist. Raises ModelFileError, StorageFailed, OSError.
    """
    state, spec = read_model_file(path)
    with log.creating(name, spec.plain()) as model_id:
        loaded = revive(path, state, Model(model_id, name, spec))
        snapshots.save(model_id, state)
    return loaded


def read_model_file(path: Path) -> tuple[State, ModelSpec]:
    """The state in a file and the spec in it. Raises ModelFileError."""
    if path.is_dir():
        raise ModelFileError(f"{path} is a directory, not a model file")
    try:
        state = read_state(path)
    except DamagedSnapshot as error:
        cause = error.__cause__
        reason = (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(error)
        reason = reason.removeprefix(f"{path.name} ").replace("a snapshot", "a model file")
        text = f"{path} cannot be read: {reason}" if isinstance(cause, OSError) else None
        raise ModelFileError(text or f"{path} {reason}") from None
    try:
        return state, read_spec(state.plain["spec"])
    except (KeyError, TypeError, WolfstreamError):
        raise ModelFileError(f"{path} holds no model that this version knows") from None


def revive(path: Path, state: State, model: Model) -> LoadedModel:
    """Fill a fresh model with a file's state. Raises ModelFileError."""
    try:
        model.restore(state.plain, state.arrays)
        model.publish()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        raise ModelFileError(f"{path} cannot be restored: {error!r}") from None
    trained, names = state.plain.get("trained", {}), state.plain.get("names", [])
    sparse = "names" in state.plain
    first = trained.get("first_index")
    if names and not trained and names[0].isdecimal():
        first = int(names[0])
    numbered = bool(trained) or names == [str((first or 0) + i) for i in range(len(names))]
    return LoadedModel(model, state, trained, sparse, numbered, first)


def describe(loaded: LoadedModel) -> str:
    """How the model came to be, in one line."""
    sequence, head = loaded.model.sequence, loaded.model.published.heads[loaded.model.spec.serve]
    what = "regression" if head.classes is None else f"{len(head.classes)} classes"
    text = f"{what}, {loaded.model.dimension} features"
    trained = loaded.trained
    if not trained:
        return f"a snapshot of a server at sequence {sequence:,}: {text}"
    how = f"trained by {trained['algorithm']} on {trained['samples']:,} samples"
    ended = "" if trained["complete"] else ", stopped early"
    text = f"{how}{ended} (wolfstream {trained['version']}): {text}, "
    if "steps" in trained:
        return f"{text}{trained['steps']:,} steps"
    if "kkt_violation" in trained:
        vectors = trained["support_vectors"]
        return f"{text}{vectors:,} support vectors, KKT violation {trained['kkt_violation']:.3g}"
    return (
        f"{text}{trained['support_vectors']:,} support vectors, gap {trained['gap']:.3g} "
        f"over {trained['gap_over']}"
    )

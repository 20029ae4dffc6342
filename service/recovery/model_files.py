"""Model files, as `wolfstream train` writes them; each snapshot of a server is one, too."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.errors import InDoubt, WolfstreamError
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.heads.saved_arrays import WrongArrays
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.saved_state import check_state
from wolfstream.service.spec.heads import ALGORITHMS
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.stored import read_stored_spec, to_stored_spec
from wolfstream.service.storage.entries import new_epoch
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_format import (
    DamagedSnapshot,
    State,
    decode_state,
    read_state,
)
from wolfstream.service.storage.term import Term
from wolfstream.solver.prepare.named_rows import table_of
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import Matrix, SparseRows


class ModelFileError(WolfstreamError):
    """A file holds no complete model of this version; the message names the file and the reason."""


class LoadedModel(NamedTuple):
    """A model as it was saved.

    Attributes:
        learner: filled from the state; its view is published.
        state: what the file holds.
        trained: the record of `wolfstream train`; {} for a snapshot of a server.
        sparse: whether its rows are sparse.
        numbered: whether its features are numbers, as in svmlight files. A server may have learned
            sparse rows of any names.
        first_index: the number of its first feature in svmlight files, if known.
    """

    learner: Learner
    state: State
    trained: dict[str, Any]
    sparse: bool
    numbered: bool
    first_index: int | None

    @property
    def model(self) -> Model:
        """The model of the learner."""
        return self.learner.model

    def head_rows(self, X: Matrix | list[list[Any]], names: Sequence[str] | None) -> HeadRows:
        """Return rows of a file as the model's heads take them. Raises InvalidSamples.

        names: of the columns, if the file has them.
        """
        if isinstance(X, SparseRows):
            return HeadRows(X)
        plain = names is None and not isinstance(X, list)
        return self.model.published.head_rows(np.asarray(X) if plain else table_of(names, X))


def load_model(path: Path, name: str = "", model_id: int = 0) -> LoadedModel:
    """Read a model file and publish its model. Raises ModelFileError."""
    state, spec = _read_model_file(path)
    return fill_model(Model(model_id, name, spec), state, str(path))


def load_content(content: bytes, source: str) -> LoadedModel:
    """Fill a model from a file's bytes, which messages call `source`. Raises ModelFileError."""
    try:
        state = decode_state(content, source)
    except DamagedSnapshot as error:
        raise _unusable(source, error) from None
    return fill_model(Model(0, "", spec_in(state, source)), state, source)


def add_model(name: str, path: Path, storage: Storage) -> tuple[LoadedModel, Term]:
    """Add the model in a file to the catalogue under a new name; return it and its log's term.

    The catalogue gets it only once its snapshot is durable, so no empty model of this name ever
    exists. Raises ModelFileError, StorageFailed, OSError.
    """
    return add_state(name, _read_model_file(path)[0], str(path), storage)


def add_state(name: str, state: State, source: str, storage: Storage) -> tuple[LoadedModel, Term]:
    """Add a model of this state, which messages call `source`; see `add_model`.

    Raises ModelFileError, StorageFailed, OSError.
    """
    loaded = fill_model(Model(0, name, spec_in(state, source)), state, source)
    return loaded, add_loaded(name, loaded, storage)


def add_loaded(
    name: str, loaded: LoadedModel, storage: Storage, follows: int | None = None
) -> Term:
    """Add a model that is not served yet to the catalogue; see `add_model`.

    follows: the id of the champion whose log it learns from, if any.

    Raises StorageFailed, OSError.
    """
    model, learner, snapshots = loaded.model, loaded.learner, storage.snapshots
    model_id, epoch = None, new_epoch()
    plain = {**loaded.state.plain, "model": name, "epoch": epoch, "creation": epoch}
    try:
        with storage.catalogue.creating(
            name, to_stored_spec(model.spec), epoch, follows, learner.sequence
        ) as term:
            model_id = term.model
            snapshots.save(model_id, loaded.state._replace(plain=plain))
    except InDoubt:
        raise  # the model may exist, and then needs its snapshot
    except BaseException:
        if model_id is not None:
            snapshots.delete(model_id)
        raise
    model.id, model.name = model_id, name
    learner.epoch = learner.creation = epoch
    learner.publish()
    model.note_snapshot(learner.sequence, snapshots.written(model_id, learner.sequence))
    return term


def fill_model(model: Model, state: State, source: str) -> LoadedModel:
    """Fill a new model from a state, which messages call `source`. Raises ModelFileError."""
    learner = Learner(model)
    try:
        check_state(learner, state.plain, state.arrays)
        learner.restore(state.plain, state.arrays)
        learner.publish()
    except WrongArrays as error:
        raise ModelFileError(f"{source} cannot be used: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        raise ModelFileError(f"{source} cannot be restored: {error!r}") from None
    trained, names = state.plain.get("trained", {}), state.plain.get("names", [])
    first_index = trained.get("first_index")
    if names and not trained and names[0].isdecimal():
        first_index = int(names[0])
    numbers = [str((first_index or 0) + i) for i in range(len(names))]
    return LoadedModel(
        learner=learner,
        state=state,
        trained=trained,
        sparse="names" in state.plain,
        numbered=bool(trained) or names == numbers,
        first_index=first_index,
    )


def spec_in(state: State, source: str) -> ModelSpec:
    """Return the spec in a state, which messages call `source`. Raises ModelFileError."""
    try:
        return read_stored_spec(state.plain["spec"])
    except (KeyError, TypeError, WolfstreamError):
        raise ModelFileError(f"{source} holds no model that this version knows") from None


def _read_model_file(path: Path) -> tuple[State, ModelSpec]:
    if path.is_dir():
        raise ModelFileError(f"{path} is a directory, not a model file")
    try:
        state = read_state(path)
    except DamagedSnapshot as error:
        raise _unusable(str(path), error) from None
    return state, spec_in(state, str(path))


def _unusable(source: str, error: DamagedSnapshot) -> ModelFileError:
    return ModelFileError(f"{source} {error.reason.replace('a snapshot', 'a model file')}")


def describe(loaded: LoadedModel) -> str:
    """Return where a model comes from and what it is, in one line."""
    published = loaded.model.published
    sequence, head = published.sequence, published.heads[loaded.model.spec.serve]
    what = "regression" if head.classes is None else f"{len(head.classes)} classes"
    text = f"{what}, {published.rows.dimension} features"
    trained = loaded.trained
    if not trained:
        return f"a snapshot of a server at sequence {sequence:,}: {text}"
    how = f"trained by {trained['algorithm']} on {trained['samples']:,} samples"
    ended = "" if trained["complete"] else ", stopped early"
    text = f"{how}{ended} (wolfstream {trained['version']}): {text}, "
    kind = KINDS[ALGORITHMS[trained["algorithm"]].head]
    return text + kind.outcome(trained)

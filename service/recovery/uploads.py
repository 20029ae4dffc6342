"""States that clients upload: everything in one is checked before it becomes a model.

The checksum proves that a file is whole, not who made it. Beyond the checks of
`model.saved_state`, an upload is bounded in what it may bring, and a copy of it is used once as a
model's users would.
"""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from wolfstream.service.errors import InvalidSamples, UnusableState
from wolfstream.service.heads.saved_arrays import WrongArrays
from wolfstream.service.heads.saved_scores import check_scores
from wolfstream.service.model.draft import Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.memory import learning_bytes
from wolfstream.service.model.saved_rows import preparing
from wolfstream.service.model.saved_state import check_numbers
from wolfstream.service.recovery.first_use import use_once
from wolfstream.service.recovery.model_files import LoadedModel, ModelFileError, fill_model, spec_in
from wolfstream.service.samples.labels import read as read_labels
from wolfstream.service.samples.record import check_whole
from wolfstream.service.samples.values import LONGEST_NAME
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.snapshot_format import DamagedSnapshot, State, decode_state
from wolfstream.solver.labels import key_of
from wolfstream.solver.prepare.named_rows import n_rows
from wolfstream.solver.prepare.row_form import RowForm

# How messages name what was uploaded.
_STATE = "the state"
# Sequences are below this, so that a request can name them (`If-Match`, `min_sequence`).
_SEQUENCES_END = 10**18
# The spec field, and the array of a state, of the rows that wait for labels.
WAITING_ROWS = "pending"
# Fields and arrays of a state that belong to its history, not to what was learned.
_HISTORY = {"rolled_back", "epoch", "creation", "model", "made", "trained", "following", "losses"}


def without_history(
    plain: dict[str, Any], arrays: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields and arrays of a state that another model may take over."""
    return (
        {name: value for name, value in plain.items() if name not in _HISTORY},
        {name: array for name, array in arrays.items() if name not in _HISTORY},
    )


def read_uploaded(content: bytes, limits: Limits, max_plain_bytes: int) -> tuple[State, ModelSpec]:
    """Decode a model file; return its state and spec. Raises UnusableState.

    Args:
        content: the bytes of the file.
        limits: on what a model of this server may hold.
        max_plain_bytes: see `decode_state`.
    """
    try:
        state = decode_state(content, _STATE, max_plain_bytes)
        spec = spec_in(state, _STATE)
        plain, arrays = without_history(*state)
        _check_texts(plain)
        _check_bounds(plain, spec, limits)
    except DamagedSnapshot as error:
        reason = error.reason.replace("a snapshot", "a model file")
        raise UnusableState(f"{_STATE} {reason}") from None
    except ModelFileError as error:
        raise UnusableState(str(error)) from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise UnusableState(f"{_STATE} cannot be restored: {error!r}") from None
    return State(plain, arrays), spec


def usable(name: str, state: State, spec: ModelSpec, limits: Limits) -> LoadedModel:
    """Return a model of an uploaded state, after a copy of it was used. Raises UnusableState.

    Args:
        name: of the model.
        state: as `read_uploaded` returned it.
        spec: of the state.
        limits: on what a model of this server may hold.
    """
    try:
        check_scores(state.plain["heads"], state.plain["sequence"])
        check_numbers(spec.heads, state.arrays)
        use_once(filled(name, _copied(state), spec).learner, limits)
    except UnusableState:
        raise
    except WrongArrays as error:
        raise UnusableState(f"{_STATE} cannot be used: {error}") from None
    except Exception as error:  # whatever a learner raises at values that it never saves
        raise UnusableState(f"{_STATE} cannot be used: {error!r}") from None
    return filled(name, state, spec)


def filled(name: str, state: State, spec: ModelSpec) -> LoadedModel:
    """Return a model of an uploaded state, not served yet. Raises UnusableState."""
    try:
        loaded = fill_model(Model(0, name, spec), state, _STATE)
        _check_first(loaded.learner)
        plain, arrays = loaded.learner.state()
    except UnusableState:
        raise
    except ModelFileError as error:
        raise UnusableState(str(error)) from None
    except Exception as error:  # whatever a value of the wrong type makes the scores raise
        raise UnusableState(f"{_STATE} cannot be restored: {error!r}") from None
    # The state as the model saves it: anything else in the file is dropped.
    return loaded._replace(state=State(plain, arrays))


def _copied(state: State) -> State:
    """Return a copy that shares nothing with the state."""
    return State(deepcopy(state.plain), {name: a.copy() for name, a in state.arrays.items()})


def in_same_state(learner: Learner, other: Learner) -> bool:
    """Return whether two models have learned the same, to the bit; their epochs may differ."""
    if learner.sequence != other.sequence or learner.model.spec != other.model.spec:
        return False
    plain, arrays = without_history(*learner.state())
    other_plain, other_arrays = without_history(*other.state())
    if _as_text(plain) != _as_text(other_plain) or arrays.keys() != other_arrays.keys():
        return False
    pairs = ((array, other_arrays[name]) for name, array in arrays.items())
    return all(
        (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes() for a, b in pairs
    )


def _as_text(plain: dict[str, Any]) -> str:
    """Return a state's plain data as text that can be compared."""
    # The memory that is set aside differs between processes.
    return json.dumps({**plain, "memory_bytes": None}, sort_keys=True)


def _check_texts(plain: dict[str, Any]) -> None:
    """Raise UnusableState for lone surrogates: a description with one could not be sent."""
    try:
        json.dumps(plain, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UnusableState(f"{_STATE} has text that is not valid Unicode") from None


def _check_bounds(plain: dict[str, Any], spec: ModelSpec, limits: Limits) -> None:
    """Raise UnusableState for more than requests could have brought a model of this server."""
    sequence, names, dimension = plain["sequence"], plain.get("names"), plain["dimension"]
    if type(sequence) is not int or not 0 <= sequence < _SEQUENCES_END:
        raise UnusableState(f"the sequence of {_STATE} is impossible: {str(sequence)[:40]}")
    if dimension is None and sequence:
        raise UnusableState(f"{_STATE} has learned samples, but has no features")
    for head in spec.heads:
        _check_labels(plain["heads"][head].get("classes"), limits.classes)
    _check_names(names or (), plain.get("schema", {}))
    if names is not None and len(names) > limits.features:
        raise UnusableState(
            f"{_STATE} has {len(names)} names of features, this server's models may meet "
            f"{limits.features} (WOLFSTREAM_FEATURES)"
        )
    needed = learning_bytes(spec, int(dimension or 0), names is not None)
    if needed > limits.n_bytes:
        raise UnusableState(
            f"{_STATE} would take {needed >> 20} MB to go on learning, at most "
            f"{limits.n_bytes >> 20} MB may (WOLFSTREAM_MODEL_BYTES)"
        )


def _check_names(names: Sequence[Any], schema: Mapping[str, Any]) -> None:
    """Raise UnusableState for a name or a text that no request could have brought.

    Args:
        names: of features.
        schema: `Schema.plain` of a table: its columns (name, number, texts, ...) and late names.
    """
    columns = schema.get("columns", ())
    texts = [text for column in columns for text in column[2]]
    for text in (*names, *(column[0] for column in columns), *schema.get("late", ()), *texts):
        if not isinstance(text, str) or len(text) > LONGEST_NAME:
            raise UnusableState(f"{_STATE} has a name or a text that no request could have brought")


def _check_first(learner: Learner) -> None:
    """Raise UnusableState unless the first samples in the state yield the form of its rows."""
    spec, rows = learner.model.spec, learner.rows
    form = RowForm(preparing(spec.prepare))
    for head, X, y, _ in rows.first:
        check_whole(X, missing=True)
        form = form.after(X)
        keys = set(map(key_of, learner.heads[head].classes or ()))  # type: ignore[index]
        if len(y) != n_rows(X) or (keys and not keys.issuperset(map(key_of, y))):
            raise UnusableState(f"the first samples of {_STATE} are not those that it learned")
    if rows.first and form != rows.form:
        raise UnusableState(f"the first samples of {_STATE} do not make its rows")


def _check_labels(labels: Any, max_classes: int) -> None:
    """Raise UnusableState for labels that no request could have brought, or too many of them."""
    if labels is None:
        return
    if not isinstance(labels, list) or len(labels) > max_classes:
        raise UnusableState(
            f"{_STATE} has more labels than this server's models may meet, {max_classes}"
        )
    try:
        read_labels(labels, single=False)
    except InvalidSamples as error:
        raise UnusableState(f"a label of {_STATE} {error.errors[0]['detail']}") from None

"""Checks of a model's saved state, before a learner restores it and compiled code reads it."""

from collections.abc import Iterable, Mapping
from typing import Any

from wolfstream.service.heads.kernel import stored_norm_limit
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.heads.saved_arrays import (
    IN_ROWS,
    Arrays,
    SavedHead,
    WrongArrays,
    check_numbers_in,
    check_shape,
    require,
)
from wolfstream.service.heads.saved_calibration import (
    CALIBRATION_NUMBERS,
    check_calibration,
    without_calibration,
)
from wolfstream.service.heads.saved_rows import check_norms_of_rows
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.saved_rows import preparing, with_saved_codes
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.prepare import PrepareSpec
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.schema import schema_from_plain


def check_state(learner: Learner, plain: Mapping[str, Any], arrays: Arrays) -> None:
    """Raise WrongArrays unless the parts of a model's state fit together.

    Args:
        learner: of a new model of the state's spec, which has learned nothing.
        plain: of the state. Its `dimension`, `sequence` and `names` are checked as well.
        arrays: of the state.

    Raises KeyError, TypeError or ValueError for plain data that no model saves.
    """
    spec, empty = learner.model.spec, learner.state()[1]
    _check_plain(plain)
    if "prepare_mean" in arrays:
        check_shape("prepare_mean", arrays, (None,))
    for name, head in learner.heads.items():
        own, blank = arrays_of(name, arrays), arrays_of(name, empty)
        saved = _saved_head(plain["heads"][name], own, blank, plain, arrays, spec.prepare)
        for key, array in saved.arrays.items():
            require(array.dtype.kind in "biuf" and array.dtype.isnative, key, "is not of numbers")
        KINDS[name].check_saved(head, saved)
        check_calibration(own, blank, saved.n_classes)
        check_norms_of_rows(own, stored_norm_limit(spec))


def check_numbers(heads: Iterable[HeadName], arrays: Arrays) -> None:
    """Raise WrongArrays for an array of a state with numbers that no learner saves.

    heads: the names of the state's heads.
    """
    head_arrays = {name: arrays_of(name, arrays) for name in heads}
    for name, own in head_arrays.items():
        bounds, without = KINDS[name].numbers, without_calibration(own)
        if bounds is not None:
            check_numbers_in(without, bounds)
        calibration = {key: array for key, array in own.items() if key not in without}
        check_numbers_in(calibration, CALIBRATION_NUMBERS)
    names = {f"{name}.{key}" for name, own in head_arrays.items() for key in own}
    check_numbers_in({key: a for key, a in arrays.items() if key not in names}, IN_ROWS)


def arrays_of(head: str, arrays: Arrays) -> Arrays:
    """Return the arrays of one head, by the head's names for them."""
    prefix = f"{head}."
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _saved_head(
    head: Mapping[str, Any],
    own: Arrays,
    blank: Arrays,
    plain: Mapping[str, Any],
    arrays: Arrays,
    prepare: PrepareSpec | None,
) -> SavedHead:
    """Return a head of a state, given its own plain data and arrays, and those of the state."""
    classes, mean = head.get("classes"), arrays.get("prepare_mean")
    width = None if mean is None else len(mean)
    return SavedHead(
        plain=head,
        arrays=without_calibration(own),
        blank=blank,
        n_classes=None if classes is None else len(classes),
        dimension=plain["dimension"] if width is None else width,
        width=width,
        texts=_crossed_texts(plain, prepare),
        sparse=plain.get("names") is not None,
        sequence=plain["sequence"],
    )


def _check_plain(plain: Mapping[str, Any]) -> None:
    dimension, names = plain["dimension"], plain.get("names")
    if type(plain["sequence"]) is not int or plain["sequence"] < 0:
        raise WrongArrays("its sequence is no whole number")
    if dimension is not None and (type(dimension) is not int or dimension < 0):
        raise WrongArrays("its dimension is no whole number")
    if names is not None and len(set(names)) != dimension:
        raise WrongArrays("its names are not as many as its features")


def _crossed_texts(plain: Mapping[str, Any], prepare: PrepareSpec | None) -> int:
    """Return how many texts and codes of each row a head crosses.

    Raises ValueError for a wrong schema, or wrong codes.
    """
    schema = schema_from_plain(plain["schema"]) if "schema" in plain else None
    width = None if schema is not None or "names" in plain else plain["dimension"]
    form = RowForm(preparing(prepare), width=width, schema=schema)
    return with_saved_codes(form, plain).crossed_width

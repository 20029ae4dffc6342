"""Labels of classes, or numbers to be regressed, out of decoded bodies, checked."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from wolfstream.service.errors import SampleError, refuse, refuse_all
from wolfstream.service.samples.raw_arrays import read_raw
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.read_cells import number_of

Label = str | int | bool
# Labels or, if the model's task is regression, an array of numbers.
Targets: TypeAlias = list[Label] | Float64Array

# The squares of errors of such numbers can still be summed.
LARGEST_TARGET = 1e100
LONGEST_LABEL = 256
_NUMERIC = {int, float}
# Above it, not every whole number is a 64-bit float.
_LARGEST_WHOLE = 2**53
_HINT = 'numbers are learned by a model whose spec says "task": "regression"'


def read_labels(y: Any, single: bool) -> list[Label]:
    """Return labels of classes.

    single: whether y is one label, not a list.

    Raises InvalidSamples.
    """
    if isinstance(y, dict):
        raw = read_raw(y, "/y")
        if raw.ndim != 1:
            refuse("/y", "a raw array of labels must have one dimension")
        y, single = raw.tolist(), False
    labels = _listed(y, single)
    if float in set(map(type, labels)):
        labels = [int(y) if _is_whole(y) else y for y in labels]
    if any(map(_label_problem, labels)):
        refuse_all("some labels are not valid", _wrong_in(labels, single, _label_problem))
    return labels


def _is_whole(label: Any) -> bool:
    """Return whether a label is a float that is a whole number, as data frames have them."""
    return type(label) is float and abs(label) <= _LARGEST_WHOLE and label.is_integer()


def read_targets(y: Any, single: bool) -> Float64Array:
    """Return numbers to be regressed, (n,) float64, also from texts with a unit or a currency.

    single: whether y is one number, not a list.

    Raises InvalidSamples.
    """
    if isinstance(y, dict):
        raw = read_raw(y, "/y")
        if raw.ndim != 1:
            refuse("/y", "a raw array of numbers must have one dimension")
        with np.errstate(invalid="ignore"):  # a signalling NaN is refused like any other
            targets = raw.astype(np.float64)
        if (np.abs(targets) <= LARGEST_TARGET).all():
            return targets
        y = targets.tolist()
    else:
        y = _listed(y, single)
        if str in set(map(type, y)):
            y = list(map(_number_of, y))
        if set(map(type, y)) <= _NUMERIC and all(map(_is_in_range, y)):
            return np.array(y, np.float64)
    wrong = _wrong_in(y, single, _target_problem)
    refuse_all("the model's task is regression: each of y must be a number", wrong)
    raise AssertionError("numbers were refused, but each of them is valid")


def _number_of(value: Any) -> Any:
    """Return a text such as "$1,234.50" as its number, and anything else as it is."""
    number = number_of(value) if type(value) is str else None
    return value if number is None else number


def _is_in_range(value: float) -> bool:
    return -LARGEST_TARGET <= value <= LARGEST_TARGET


def _listed(y: Any, single: bool) -> list[Any]:
    if single:
        return [y]
    if not isinstance(y, list):
        refuse("/y", "must be an array, one value for each row")
    return y


def _wrong_in(y: list[Any], single: bool, problem: Callable[[Any], str]) -> Iterator[SampleError]:
    for i, value in enumerate(y):
        detail = problem(value)
        if detail:
            yield {"row": i, "pointer": "/y" if single else f"/y/{i}", "detail": detail}


def _target_problem(value: Any) -> str:
    """Return what is wrong with a number to be regressed; "" if it is valid."""
    if type(value) not in _NUMERIC:
        return f"must be a number{not_what(value)}"
    if _is_in_range(value):
        return ""
    finite = type(value) is int or math.isfinite(value)
    return f"is beyond {LARGEST_TARGET:g}" if finite else "is NaN or infinite"


def _label_problem(label: Any) -> str:
    """Return what is wrong with a label; "" if it is valid."""
    if type(label) is bool:
        return ""
    if type(label) is int:
        return "" if -(2**63) <= label < 2**63 else "does not fit into 64 bits"
    if type(label) is float and not math.isnan(label):
        return f"must be a string, a whole number or a boolean; {_HINT}"
    if label is None or type(label) is float:
        return "is missing: leave the row out, or predict it with an id and label it later"
    if type(label) is not str:
        return "must be a string, a whole number or a boolean"
    if len(label) > LONGEST_LABEL:
        return f"is longer than {LONGEST_LABEL} characters"
    return "" if is_unicode(label) else "is not valid Unicode"


def are_answers(values: Sequence[Any], *, regression: bool) -> bool:
    """Return whether values can be labels, or a regression's answers, which may be missing."""
    if not regression:
        return not any(map(_label_problem, values))
    return all(y is None or (type(y) in _NUMERIC and math.isfinite(y)) for y in values)


def not_what(value: Any) -> str:
    """Return the kind of a value that is no number, as the end of a sentence; "" if none fits."""
    kinds = {str: "text", bool: "a boolean", type(None): "null", list: "an array"}
    kind = kinds.get(type(value))
    return f", not {kind}" if kind else ""


def is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

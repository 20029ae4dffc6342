"""Labels of classes, or numbers to be regressed, out of decoded bodies."""

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from wolfstream.service.errors import SampleError, refuse, refuse_all
from wolfstream.service.samples.raw_arrays import read_raw
from wolfstream.solver.arrays import Float64Array

Label = str | int | bool
# Labels, or where the model's task is regression an array of its numbers.
Targets: TypeAlias = list[Label] | Float64Array

# The squares of errors of such numbers can still be summed.
LARGEST_TARGET = 1e100
LONGEST_LABEL = 256
_NUMERIC = {int, float}
_HINT = 'numbers are learned by a model whose spec says "task": "regression"'


def read_labels(y: Any, single: bool) -> list[Label]:
    """Return labels of classes. single: y is one label, not a list. Raises InvalidSamples."""
    if isinstance(y, dict):
        raw = read_raw(y, "/y")
        if raw.dtype.kind != "i" or raw.ndim != 1:
            detail = 'a raw array of labels must have dtype "<i8" and one dimension'
            refuse("/y", f"{detail}; {_HINT}" if raw.dtype.kind == "f" else detail)
        return list(raw.tolist())
    labels = _listed(y, single)
    if any(map(_label_problem, labels)):
        refuse_all("some labels are not valid", _wrong_in(labels, single, _label_problem))
    return labels


def read_targets(y: Any, single: bool) -> Float64Array:
    """Numbers to be regressed, (n,) float64. single: y is one. Raises InvalidSamples."""
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
        if set(map(type, y)) <= _NUMERIC and all(map(_is_in_range, y)):
            return np.array(y, np.float64)
    wrong = _wrong_in(y, single, _target_problem)
    refuse_all("the model's task is regression: each of y must be a number", wrong)
    raise AssertionError("numbers were refused, but each of them is valid")


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
    if type(label) is float:
        return f"must be a string, an integer or a boolean; {_HINT}"
    if type(label) is not str:
        return "must be a string, an integer or a boolean"
    if len(label) > LONGEST_LABEL:
        return f"is longer than {LONGEST_LABEL} characters"
    return "" if is_unicode(label) else "is not valid Unicode"


def not_what(value: Any) -> str:
    """The kind of a value that is no number, as the end of a sentence; empty where none fits."""
    kinds = {str: "text", bool: "a boolean", type(None): "null", list: "an array"}
    kind = kinds.get(type(value))
    return f", not {kind}" if kind else ""


def is_unicode(text: str) -> bool:
    """Return whether text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

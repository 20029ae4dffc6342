"""The task of classification, where y are labels of classes (`samples.tasks`)."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from wolfstream.service.errors import refuse_all
from wolfstream.service.samples.raw_arrays import read_raw_vector
from wolfstream.service.samples.values import is_unicode, listed, wrong_in
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.labels import LabelKey, key_of

Label: TypeAlias = str | int | bool

# What `samples.tasks.Task` wants to know of the task.
SCORE = "accuracy"
BASELINES: Sequence[str] = ("majority", "last_label")
TYPE: type = list
PACKED: type = list

# In characters.
LONGEST_LABEL = 256
# Not every whole number above this is a 64-bit float.
_LARGEST_WHOLE = 2**53
_HINT = 'numbers are learned by a model whose spec says "task": "regression"'


def read(y: Any, single: bool) -> list[Label]:
    """Return labels of classes.

    single: whether y is one label, not a list.

    Raises InvalidSamples.
    """
    if isinstance(y, dict):
        y, single = read_raw_vector(y, "/y", "labels").tolist(), False
    labels = listed(y, single)
    if float in set(map(type, labels)):
        labels = [int(y) if _is_whole(y) else y for y in labels]
    if any(map(_problem, labels)):
        refuse_all("some labels are not valid", wrong_in(labels, single, _problem))
    return labels


def _is_whole(label: Any) -> bool:
    """Return whether a label is a float that is a whole number, as data frames have them."""
    return type(label) is float and abs(label) <= _LARGEST_WHOLE and label.is_integer()


def recorded(y: list[Label]) -> list[Label]:
    """Return the labels as a record has them: as they are."""
    return y


def pack(y: list[Label]) -> list[Label]:
    """Return the labels as MessagePack writes them: as they are."""
    return y


def unpack(plain: list[Label]) -> list[Label]:
    """Invert `pack`."""
    return plain


def plain(y: list[Label]) -> list[Label]:
    """Return the labels as a list."""
    return y


def take(y: list[Label], indices: Sequence[int]) -> list[Label]:
    """Return the labels at some indices."""
    return [y[index] for index in indices]


def join(parts: Sequence[list[Label]]) -> list[Label]:
    """Return the labels of all parts."""
    return [label for part in parts for label in part]


def key(label: Label) -> LabelKey:
    """Return a key that all spellings of a label share."""
    return key_of(label)


def are_answers(values: Sequence[Any]) -> bool:
    """Return whether all values are what a model of this task may predict: valid labels."""
    return not any(map(_problem, values))


def losses(prediction: Sequence[Any], y: list[Label]) -> Float64Array:
    """Return 0 or 1 for each prediction (true is not 1); NaN where there is none."""
    pairs = zip(prediction, y, strict=True)
    wrong = (np.nan if p is None else (type(p), p) != (type(t), t) for p, t in pairs)
    return np.fromiter(wrong, np.float64, len(y))


def n_classes(y: list[Label]) -> int:
    """Return how many different labels there are."""
    return len(set(y))


def example(n: int, classes: Sequence[Label]) -> list[Label]:
    """Return labels of these classes in turn."""
    return [classes[i % len(classes)] for i in range(n)]


def _problem(label: Any) -> str:
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

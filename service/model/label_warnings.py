"""Warnings about a model's labels, for its description and its responses."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.samples.labels import Label
from wolfstream.solver.labels import text_of
from wolfstream.solver.prepare.read_cells import number_of

# If one class has at least this share of at least this many labels, accuracy says little.
_IMBALANCED_SHARE, _MIN_LABELS = 0.95, 100
# Fewer distinct numbers may well be classes, such as digits, months or ratings.
_MANY_NUMBERS = 20
# A message shows as much of a label.
_SHOWN_CHARACTERS = 40
# Of texts that mean a missing value in a feature, those that hardly are the name of a class.
_MISSING = frozenset(("na", "n/a", "#n/a", "<na>", "nat", "null", "?", "-"))


def label_warnings(view: HeadView | None) -> list[dict[str, Any]]:
    """Return the warnings about the labels that a head has met; none in regression."""
    if view is None or view.classes is None:
        return []
    warnings = [_imbalance(view.classes, view.label_counts), *_class_warnings(*view.classes)]
    return [warning for warning in warnings if warning is not None]


@lru_cache(64, typed=True)  # blocks meet new classes seldom; 1 and True are two of them
def _class_warnings(*classes: Label) -> tuple[dict[str, Any] | None, ...]:
    """Return the warnings that depend on the classes alone."""
    return _numbers(classes), _similar(classes), _missing(classes)


def _imbalance(classes: Sequence[Label], counts: Sequence[int]) -> dict[str, Any] | None:
    """Return a warning if nearly all labels are of one class."""
    total, largest = sum(counts), max(counts, default=0)
    if len(classes) < 2 or total < _MIN_LABELS or largest < _IMBALANCED_SHARE * total:
        return None
    tenths = math.floor(1000 * largest / total)  # of a percent; down: 99.96% is not 100.0%
    label = text_of(classes[counts.index(largest)])[:_SHOWN_CHARACTERS]
    message = f"{tenths / 10}% of labels are `{label}`: look at precision and recall"
    return _warning("imbalanced-labels", message)


def _numbers(classes: Sequence[Label]) -> dict[str, Any] | None:
    """Return a warning if the labels are many numbers, as in regression."""
    if len(classes) < _MANY_NUMBERS or not all(map(_is_number, classes)):
        return None
    message = f"{len(classes)} distinct numeric labels: did you mean regression?"
    return _warning("numeric-labels", f'{message} A spec with "task": "regression" learns numbers')


def _similar(classes: Sequence[Label]) -> dict[str, Any] | None:
    """Return a warning about the first labels that differ in case or spaces alone."""
    spellings: dict[str, list[str]] = {}
    for label in classes:
        text = text_of(label)
        spellings.setdefault(" ".join(text.casefold().split()), []).append(text)
    alike = next((texts for texts in spellings.values() if len(texts) > 1), None)
    if alike is None:
        return None
    *others, last = [f"`{text[:_SHOWN_CHARACTERS]}`" for text in alike]
    message = f"{', '.join(others)} and {last} are {len(alike)} classes: did you mean one?"
    return _warning("similar-labels", message)


def _missing(classes: Sequence[Label]) -> dict[str, Any] | None:
    """Return a warning about the first label that elsewhere means a missing value."""
    label = next(
        (y for y in classes if isinstance(y, str) and y.strip().casefold() in _MISSING), None
    )
    if label is None:
        return None
    message = f"`{label}` is a class: if it means that a label is missing, leave such rows out"
    return _warning("missing-labels", message)


def _is_number(label: Label) -> bool:
    return number_of(label) is not None if isinstance(label, str) else not isinstance(label, bool)


def _warning(slug: str, message: str) -> dict[str, Any]:
    return {"slug": slug, "column": None, "message": message}

"""Converts the columns of a table to rows, with their labels, weights and ids."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.files.arrow import Columns
from wolfstream.service.files.npz import Label
from wolfstream.service.files.roles import Roles, find_roles
from wolfstream.service.files.text import MISSING_LABEL, DataFileError
from wolfstream.solver.arrays import Float64Array

# Names that pandas gives to an index, when writing and when reading one.
_INDEX = re.compile(r"__index_level_[0-9]+__|Unnamed: [0-9]+")


class TableRows(NamedTuple):
    """Rows of a table, with the names of their columns, and their labels, weights and ids.

    Attributes:
        names: the names of the features.
        X: (n, d) float64, NaN for a missing number; lists if the values are not all numbers.
        labels, weights, ids: one for each row; None if the table has none.
        unnamed: numbers, from 1, of columns that are left out because nobody named them.
    """

    names: list[str]
    X: Float64Array | list[list[Any]]
    labels: list[Label] | None = None
    weights: list[Any] | None = None
    ids: list[Any] | None = None
    unnamed: Sequence[int] = ()


def rows_of_columns(table: Columns, roles: Roles, labelled: bool | None) -> TableRows:
    """Return the rows of a table.

    Args:
        table: the table's columns.
        roles: the columns that are not features.
        labelled: whether there must be labels; None if they may be missing.

    Raises DataFileError.
    """
    role_places = find_roles(table.names, roles, labelled)
    nameless = {i for i, name in enumerate(table.names) if not name or _INDEX.fullmatch(name)}
    features = [i for i in range(len(table.names)) if i not in nameless and i not in role_places]
    if not features:
        raise DataFileError("there is no column besides the label, and at least one is needed")

    def column_at(place: int | None) -> list[Any] | None:
        return None if place is None else _listed(table.columns[place])

    labels = None
    if labelled is not False and role_places.label is not None:
        labels = _labels(table.columns[role_places.label])
    return TableRows(
        [table.names[i] for i in features],
        _matrix([table.columns[i] for i in features], table.rows),
        labels,
        column_at(role_places.weight),
        whole_ids(column_at(role_places.id)),
        sorted(i + 1 for i in nameless.difference(role_places)),
    )


def _matrix(columns: list[Any], rows: int) -> Float64Array | list[list[Any]]:
    """Return columns as rows: (rows, columns), or lists if the values are not all numbers."""
    if all(isinstance(column, np.ndarray) for column in columns) or not rows:
        return np.column_stack([np.asarray(column, np.float64) for column in columns])
    return [list(row) for row in zip(*map(_listed, columns), strict=True)]


def whole_ids(ids: list[Any] | None) -> list[Any] | None:
    """Return ids, with whole floats as integers: a data frame may have converted them."""
    if ids is None:
        return None
    return [int(i) if type(i) is float and i.is_integer() else i for i in ids]


def _listed(column: Any) -> list[Any]:
    """Return a column's values as a list of Python's own types."""
    return list(column.tolist() if isinstance(column, np.ndarray) else column)


def _labels(column: Any) -> list[Label]:
    """Return labels, as integers if all are whole floats: a data frame may have converted them."""
    labels: list[Label] = _listed(column)
    missing = next((i for i, y in enumerate(labels, 1) if y is None or y != y), None)
    if missing is not None:
        raise DataFileError(f"the label of row {missing:,} is missing: {MISSING_LABEL}")
    if all(type(y) is float and y.is_integer() and abs(y) <= 2**53 for y in labels):
        return list(map(int, labels))
    return labels

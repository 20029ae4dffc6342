"""Samples in the forms that callers have them, cut into batches that a server takes.

X is a data frame, an array (or anything that numpy turns into one, as nested lists), a list of rows
of named values, one row, or an iterable of rows; y has a label or number for each row, or is the
label of the one row. Without y, X gives pairs of a row and its label. A weight is a number for all
samples, or gives one for each.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

# A tenth of the largest body that a server takes by default.
MOST_BYTES = 6 << 20
# What pandas has where a value is missing.
_MISSING_TYPES = {"NAType", "NaTType"}
_NUMBER = (bool, int, float, np.generic, type(None))
_SCALAR = (str, bytes, bool, int, float, np.generic)


class Batch(NamedTuple):
    """Rows as `rows_of` returns them, and their n labels or numbers.

    weight: a number for all of them, or one for each; None if all count 1.
    """

    X: Any
    y: Any
    weight: Any = None

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return its first and its second half."""
        half = len(self.X) // 2
        return self._part(slice(half)), self._part(slice(half, None))

    def fields(self) -> dict[str, Any]:
        """Return the fields of a request that hold it."""
        weight = {} if self.weight is None else {"weight": self.weight}
        return {**fields_of(self.X), "y": self.y, **weight}

    def _part(self, part: slice) -> "Batch":
        each = self.weight is not None and not isinstance(self.weight, _SCALAR)
        return Batch(self.X[part], self.y[part], self.weight[part] if each else self.weight)


class Batches:
    """Samples, from which batches of at most `most` are taken; `most` may change in between.

    Raises ValueError, TypeError for anything that is not samples.
    """

    def __init__(self, X: Any, y: Any, most: int, weight: Any = None) -> None:
        if most < 1:
            raise ValueError(f"a batch must have at least one sample, not {most}")
        self.most = most
        self._rows: Any = None
        self._labels: Any = None
        self._weight = plain_value(weight) if isinstance(weight, _SCALAR) else None
        self._weights: Iterator[Any] | None = None
        if weight is not None and not isinstance(weight, _SCALAR):
            self._weights = iter(weight)
        if y is None:
            self._pairs: Iterator[Any] = iter(X)
        elif isinstance(y, _SCALAR):
            self._keep(rows_of(X), [y])
        elif isinstance(X, Iterator) or isinstance(y, Iterator) or not _is_sized(X):
            self._pairs = zip(X, y, strict=True)
        else:
            self._keep(rows_of(X), _labels_of(y))

    def take(self) -> Batch | None:
        """Return the next batch; None when all have been taken."""
        if self._rows is None:
            pairs = list(islice(self._pairs, self.most))
            if not pairs:
                self._end_weights()
                return None
            given, labels = zip(*pairs, strict=True)
            rows = rows_of(list(given))
            if len(rows) != len(labels):
                raise ValueError("each row of X must be an array or named numbers")
            return Batch(rows, list(labels), self._weights_of(len(pairs)))
        if not len(self._rows):
            self._end_weights()
            return None
        n = self.most
        rows = self._rows.rows if isinstance(self._rows, Table) else self._rows
        if isinstance(rows, np.ndarray):
            n = min(n, max(1, MOST_BYTES // max(1, rows[0].nbytes)))
        labels = self._labels[:n]
        batch = Batch(self._rows[:n], labels, self._weights_of(len(labels)))
        self._rows, self._labels = self._rows[n:], self._labels[n:]
        return batch

    def _weights_of(self, n: int) -> Any:
        """Return the weights of the next n samples."""
        if self._weights is None:
            return self._weight
        weights = [plain_value(weight) for weight in islice(self._weights, n)]
        if len(weights) < n:
            raise ValueError("there are fewer weights than samples")
        return weights

    def _end_weights(self) -> None:
        if self._weights is not None and list(islice(self._weights, 1)):
            raise ValueError("there are more weights than samples")

    def _keep(self, rows: Any, labels: Any) -> None:
        if len(rows) != len(labels):
            raise ValueError(f"there are {len(rows)} rows in X and {len(labels)} values in y")
        self._rows, self._labels = rows, labels


def one_batch(X: Any, y: Any, weight: Any = None) -> Batch:
    """Return samples as the one batch that they are sent in. Raises ValueError, TypeError."""
    batches = Batches(X, y, sys.maxsize, weight)
    batch = batches.take()
    if batch is None:
        raise ValueError("there are no samples")
    if batches.take():
        raise ValueError(f"a request takes {MOST_BYTES >> 20} MiB at most: send fewer rows")
    return batch


def late_labels(ids: Any, y: Any) -> Batch:
    """Return ids in the place of rows, and their labels. Raises ValueError.

    A single id has its label as y.
    """
    if isinstance(ids, str | int):
        ids, y = [ids], [y]
    given = ids_of(ids)
    labels = _labels_of(y)
    if len(given) != len(labels):
        raise ValueError(f"there are {len(given)} ids and {len(labels)} values in y")
    if not given:
        raise ValueError("there are no ids")
    return Batch(given, labels)


def ids_of(ids: Any) -> list[Any]:
    """Return ids as they are sent: texts and whole numbers."""
    return list(ids.tolist() if hasattr(ids, "tolist") else ids)


class Table:
    """Rows under the names of their columns; a slice of it is a table of some of the rows.

    names: of the columns. rows: an array (n, d) of numbers, or a list for each row.
    """

    def __init__(self, names: list[str], rows: Any) -> None:
        self.names, self.rows = names, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> "Table":
        return Table(self.names, self.rows[part])


def fields_of(rows: Any) -> dict[str, Any]:
    """Return the fields of a request that hold rows."""
    if isinstance(rows, Table):
        return {"x": rows.rows, "names": rows.names}
    return {"x": rows}


def rows_of(X: Any) -> Any:
    """Return rows as they are sent: a list of named values, a table, an array, or lists.

    A single row becomes a list of one. A data frame whose columns have names is a table. Rows that
    are not all numbers are lists, in which None means a missing value.
    """
    if isinstance(X, Mapping):
        return [X]
    if isinstance(X, Table):
        return X
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        names, rows = list(X.columns), _numbers_or_lists(_values_of(X))
        return Table(names, rows) if all(isinstance(name, str) for name in names) else rows
    if not _is_sized(X):
        X = list(X)
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        return [dict(row) for row in X]
    return _numbers_or_lists(X)


def _values_of(frame: Any) -> Any:
    """Return a data frame's values as one array, column by column.

    polars' own array of all columns has dates as numbers beside numbers. Raises ValueError.
    """
    names = list(frame.columns)
    if len(set(names)) < len(names):
        raise ValueError("some columns of X have the same name")
    columns = [np.asarray(frame[name].to_numpy()) for name in names]
    if not columns or all(column.dtype.kind in "fiub" for column in columns):
        return np.column_stack(columns) if columns else np.empty((len(frame), 0))
    values = np.empty((len(frame), len(columns)), object)
    for k, column in enumerate(columns):
        # Of nanoseconds, `tolist` would make integers.
        if column.dtype.kind in "mM":
            column = column.astype(f"{column.dtype.str[1:3]}[us]")
        values[:, k] = column.tolist()
    return values


def _numbers_or_lists(X: Any) -> Any:
    rows = np.asarray(X)
    if rows.dtype.kind in "US" and not isinstance(X, np.ndarray):
        rows = np.asarray(X, object)  # an array of texts has made texts of numbers
    if rows.dtype.kind not in "fi" and all(isinstance(v, _NUMBER) for v in rows.ravel().tolist()):
        rows = rows.astype(np.float64)
    if rows.ndim == 1 and len(rows):
        rows = rows[None, :]
    if rows.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows of values, not {rows.ndim}")
    if rows.dtype.kind in "fi":
        return rows
    return [[plain_value(value) for value in row] for row in rows.tolist()]


def plain_value(value: Any) -> Any:
    """Return a value as it is sent: a number, a boolean, a text, or None if it is missing.

    Raises TypeError.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, date):
        # A data frame's missing time is no time; it is not equal to itself.
        return value.isoformat() if value == value else None
    if isinstance(value, Decimal | float):
        return None if value != value else float(value)
    if type(value).__name__ in _MISSING_TYPES:
        return None
    raise TypeError(f"{value!r:.40} is neither a number nor a text")


def _labels_of(y: Any) -> Any:
    if isinstance(y, list):
        return y
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension, a value for each row, not {labels.ndim}")
    return labels if labels.dtype.kind in "fi" else labels.tolist()


def _is_sized(X: Any) -> bool:
    """Return whether rows can be counted and indexed, as those of an array or a list."""
    return isinstance(X, Sequence | Table) or hasattr(X, "__array__") or hasattr(X, "to_numpy")

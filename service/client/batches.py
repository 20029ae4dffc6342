"""Samples in the forms that callers have them, cut into batches that a server takes.

X is an array (or anything that numpy turns into one: nested lists, a data frame), a list of rows
of named numbers, one row, or an iterable of rows; y has a label or number for each row, or is the
label of the one row. Without y, X gives pairs of a row and its label.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

# A tenth of the largest body that a server takes by default.
MOST_BYTES = 6 << 20
_SCALAR = (str, bytes, bool, int, float, np.generic)


class Batch(NamedTuple):
    """Rows, an array (n, d) or a list of named rows, and their n labels or numbers."""

    X: Any
    y: Any

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return its first and its second half."""
        half = len(self.X) // 2
        return Batch(self.X[:half], self.y[:half]), Batch(self.X[half:], self.y[half:])


class Batches:
    """Samples, from which batches of at most `most` are taken; `most` may change in between.

    Raises ValueError, TypeError for anything that is not samples.
    """

    def __init__(self, X: Any, y: Any, most: int) -> None:
        if most < 1:
            raise ValueError(f"a batch must have at least one sample, not {most}")
        self.most = most
        self._rows: Any = None
        self._labels: Any = None
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
                return None
            given, labels = zip(*pairs, strict=True)
            rows = rows_of(list(given))
            if len(rows) != len(labels):
                raise ValueError("each row of X must be an array or named numbers")
            return Batch(rows, list(labels))
        if not len(self._rows):
            return None
        n = self.most
        if isinstance(self._rows, np.ndarray):
            n = min(n, max(1, MOST_BYTES // max(1, self._rows[0].nbytes)))
        batch = Batch(self._rows[:n], self._labels[:n])
        self._rows, self._labels = self._rows[n:], self._labels[n:]
        return batch

    def _keep(self, rows: Any, labels: Any) -> None:
        if len(rows) != len(labels):
            raise ValueError(f"there are {len(rows)} rows in X and {len(labels)} values in y")
        self._rows, self._labels = rows, labels


def one_batch(X: Any, y: Any) -> Batch:
    """Return samples as the one batch that they are sent in. Raises ValueError, TypeError."""
    batches = Batches(X, y, sys.maxsize)
    batch = batches.take()
    if batch is None:
        raise ValueError("there are no samples")
    if batches.take():
        raise ValueError(f"a request takes {MOST_BYTES >> 20} MiB at most: send fewer rows")
    return batch


def rows_of(X: Any) -> Any:
    """Return rows as they are sent: an array (n, d) of numbers, or a list of named numbers.

    A single row becomes a list of one.
    """
    if isinstance(X, Mapping):
        return [X]
    if not _is_sized(X):
        X = list(X)
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        return [dict(row) for row in X]
    rows = np.asarray(X)
    if rows.dtype.kind not in "fi":
        rows = rows.astype(np.float64)
    if rows.ndim == 1 and len(rows):
        rows = rows[None, :]
    if rows.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows of numbers, not {rows.ndim}")
    return rows


def _labels_of(y: Any) -> Any:
    if isinstance(y, list):
        return y
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension, a value for each row, not {labels.ndim}")
    return labels if labels.dtype.kind in "fi" else labels.tolist()


def _is_sized(X: Any) -> bool:
    """Whether rows can be counted and indexed, as those of an array or a list."""
    return hasattr(X, "__array__") or isinstance(X, Sequence)

"""Cuts samples, in all forms that callers may have, into batches that a server takes.

X is a table (`client.tables`), an array or what numpy turns into one, a sparse matrix of scipy, a
list of rows of named values, one row, or an iterable of rows. y has a label or number for each row,
or is that of the one row. Without y, X is a table, a file or rows of named values with labels in a
column, or it yields (row, label) pairs. A weight is a number for all samples, or one for each.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.client.tables import (
    as_value_errors,
    column_name,
    open_table,
    read_columns,
)
from wolfstream.service.files.roles import NO_ROLES, Roles, find_roles
from wolfstream.service.files.text import MISSING_LABEL, read_id
from wolfstream.service.files.values import features_of, plain_row, plain_value

# A tenth of the largest body that a server takes by default.
MAX_BYTES = 6 << 20
_NUMBER = (bool, int, float, np.generic, type(None))
# What has no rows, or, like a set, none in an order.
_NO_ROWS = (bytes, bool, int, float, complex, set, frozenset)
_SCALAR = (str, bytes, bool, int, float, np.generic)


_NO_LABELS = (
    "without y, X must be a table with a column of labels or yield (row, label) pairs: give the "
    "labels as y"
)


class Batch(NamedTuple):
    """n samples for one request."""

    X: Any  # rows, as `as_rows` returns them
    y: Any  # n labels or numbers
    weight: Any = None  # a number for all, or one for each; None if all count 1

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return the first and the second half."""
        half = len(self.X) // 2
        return self._part(slice(half)), self._part(slice(half, None))

    def fields(self) -> dict[str, Any]:
        """Return the fields of a request for these samples."""
        weight = {} if self.weight is None else {"weight": self.weight}
        return {**row_fields(self.X), "y": self.y, **weight}

    def _part(self, part: slice) -> "Batch":
        each = self.weight is not None and not isinstance(self.weight, _SCALAR)
        return Batch(self.X[part], self.y[part], self.weight[part] if each else self.weight)


class Batches:
    """Samples, from which `take` returns one batch after another.

    Attributes:
        size: bound on the samples of the next batch; the caller may change it.
    """

    def __init__(
        self, X: Any, y: Any, size: int, weight: Any = None, roles: Roles = NO_ROLES
    ) -> None:
        """Begin with the first sample.

        Args:
            X: rows; see the module.
            y: labels; see the module.
            size: bound on the samples of a batch.
            weight: a number for all samples, or one for each.
            roles: columns of a table, or names of values, that are not features.

        Raises ValueError, TypeError for anything that is not samples.
        """
        if size < 1:
            raise ValueError(f"a batch must have at least one sample, not {size}")
        self.size = size
        # Exactly one of the three has the samples that are left: rows with their labels, an
        # iterator of pairs, or an iterator of batches of named rows or of a file.
        self._rows: Any = None
        self._labels: Any = None
        self._pairs: Iterator[Any] = iter(())
        self._batches: Iterator[Batch] | None = None
        # A weight for all samples, or an iterator of those that are left.
        self._weight = plain_value(weight) if isinstance(weight, _SCALAR) else None
        self._weights: Iterator[Any] | None = None
        if weight is not None and not isinstance(weight, _SCALAR):
            self._weights = iter(weight)
        if y is None:
            self._begin_table(X, roles)
            return
        _check_rows(X)
        if roles.label is not None or _is_path(X):
            raise ValueError("the labels are in a column of X: leave y out, and say label=NAME")
        if roles != NO_ROLES:
            raise ValueError("id and weight name columns of X, which has its labels beside it in y")
        if isinstance(y, _SCALAR):
            self._set_rows(as_rows(X), [y])
        elif isinstance(X, Iterator) or isinstance(y, Iterator) or not _is_sized(X):
            self._pairs = _pairs_of(X, y)
        else:
            _check_beside(X, y)
            self._set_rows(as_rows(X), _as_labels(y))

    def _begin_table(self, X: Any, roles: Roles) -> None:
        """Begin with samples whose labels are in X."""
        _check_rows(X)
        if _is_path(X):
            self._batches = self._file_batches(X, roles)
        elif isinstance(X, Mapping):
            self._batches = self._named_batches(iter([X]), roles)
        elif (columns := read_columns(X, roles)) is not None:
            table, y, weights, _ = _split_columns(columns, roles, labelled=True)
            self._set_rows(table, y)
            if weights is not None:
                self._weights = iter(weights)
        else:
            rows = iter(X)
            first = list(islice(rows, 1))
            rows = chain(first, rows)
            if roles != NO_ROLES or (first and isinstance(first[0], Mapping)):
                self._batches = self._named_batches(rows, roles)
            else:
                self._pairs = rows

    def _file_batches(self, path: Any, roles: Roles) -> Iterator[Batch]:
        file = open_table(path, roles, labelled=True)
        for batch in file.batches(self.size):
            rows = batch.X if file.names is None else Table(list(file.names), batch.X)
            weights = self._column_weights(batch.weights, len(batch.labels))
            yield Batch(rows, batch.labels, weights)

    def _named_batches(self, rows: Iterator[Any], roles: Roles) -> Iterator[Batch]:
        """Yield batches of rows of named values, one of which is the label."""
        columns, done = None, 0
        while part := list(islice(rows, self.size)):
            plain = _plain_rows(part)
            names = list(dict.fromkeys(chain.from_iterable(plain)))
            if columns is None:
                with as_value_errors():
                    places = find_roles(names, roles, True)
                columns = [None if place is None else names[place] for place in places]
            label, _, weight = columns
            y = [row.get(label) for row in plain]
            if None in y:
                row = done + y.index(None) + 1
                raise ValueError(f"the label of row {row:,} is missing: {MISSING_LABEL}")
            weights = None if weight is None else [row.get(weight) for row in plain]
            features = _as_features(plain, names, columns)
            yield Batch(features, y, self._column_weights(weights, len(y)))
            done += len(part)

    def _column_weights(self, weights: Any, n: int) -> Any:
        """Return the weights of the next n rows: those of a column if there are any."""
        return self._next_weights(n) if weights is None else weights

    def take(self) -> Batch | None:
        """Return the next batch; None at the end. Raises ValueError, TypeError."""
        if self._batches is not None:
            batch = next(self._batches, None)
            if batch is None:
                self._end_weights()
            return batch
        if self._rows is None:
            pairs = list(islice(self._pairs, self.size))
            if not pairs:
                self._end_weights()
                return None
            try:
                pair_rows, labels = zip(*pairs, strict=True)
            except (TypeError, ValueError):
                raise ValueError(_NO_LABELS) from None
            rows = as_rows(list(pair_rows))
            if len(rows) != len(labels):
                raise ValueError(_NO_LABELS)
            return Batch(rows, list(labels), self._next_weights(len(pairs)))
        if not len(self._rows):
            self._end_weights()
            return None
        n = self.size
        rows = self._rows.rows if isinstance(self._rows, Table) else self._rows
        if isinstance(rows, np.ndarray):
            n = min(n, max(1, MAX_BYTES // max(1, rows[0].nbytes)))
        labels = self._labels[:n]
        batch = Batch(self._rows[:n], labels, self._next_weights(len(labels)))
        self._rows, self._labels = self._rows[n:], self._labels[n:]
        return batch

    def _next_weights(self, n: int) -> Any:
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

    def _set_rows(self, rows: Any, labels: Any) -> None:
        if len(rows) != len(labels):
            named = len(labels) == 1 and isinstance(labels[0], str)
            hint = f"; if y is a column of X, write label={labels[0][:40]!r}" if named else ""
            raise ValueError(f"there are {len(rows)} rows in X and {len(labels)} values in y{hint}")
        self._rows, self._labels = rows, labels


def _pairs_of(X: Iterable[Any], y: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield rows with their labels. Raises ValueError where either ends before the other."""
    end = object()
    for row, label in zip_longest(X, y, fillvalue=end):
        if row is end or label is end:
            raise ValueError("X and y have different lengths: give one label for each row")
        yield row, label


def split_roles(label: Any, id_column: Any, weight: Any) -> tuple[Roles, Any]:
    """Return the columns that are not features, and the weights unless they are in a column.

    Raises TypeError for a label or an id that is not the name of a column.
    """
    label, id_column = _role("label", label), _role("id", id_column)
    if isinstance(weight, str):
        return Roles(label, id_column, weight), None
    return Roles(label, id_column), weight


def _role(role: str, given: Any) -> str | None:
    """Return the name of a column; that of a data frame may have several levels."""
    if given is None or isinstance(given, str | int | tuple):
        return None if given is None else str(column_name(given))
    what = "; labels that are not in a column of X are given as y" if role == "label" else ""
    raise TypeError(
        f"{role} is the name of a column of X, such as {role}='Outcome', not a "
        f"{type(given).__name__}{what}"
    )


def _check_beside(X: Any, y: Any) -> None:
    """Raise ValueError for a Series of labels that is also in X, or in another order than X."""
    rows: Any = getattr(X, "index", None)
    labels: Any = getattr(y, "index", None)
    if not hasattr(rows, "equals") or not hasattr(labels, "equals"):
        return
    name = getattr(y, "name", None)
    if name is not None and name in getattr(X, "columns", ()) and y.equals(X[name]):
        raise ValueError(
            f"column {str(name)!r} of X has the labels themselves: leave it out of X, or leave y "
            f"out and say label={str(name)!r}"
        )
    in_order = labels.tolist() == list(range(len(labels)))  # as one that was made anew
    if not in_order and not labels.equals(rows) and set(labels) == set(rows):
        raise ValueError(
            "by their index, the labels are in another order than the rows of X: give "
            "y.loc[X.index], or y.to_numpy() if they belong together as they are"
        )


def one_batch(X: Any, y: Any, weight: Any = None) -> Batch:
    """Return samples as a single batch. Raises ValueError, TypeError."""
    batches = Batches(X, y, sys.maxsize, weight)
    batch = batches.take()
    if batch is None:
        raise ValueError("there are no samples")
    if batches.take():
        raise ValueError(f"a request takes {MAX_BYTES >> 20} MiB at most: send fewer rows")
    return batch


def late_labels(ids: Any, y: Any) -> Batch:
    """Return a batch with ids in place of rows. Raises ValueError.

    Args:
        ids: of predicted rows; or one id.
        y: a label or number for each; or that of the one id.
    """
    if isinstance(ids, str | int):
        ids, y = [ids], [y]
    row_ids = as_ids(ids)
    labels = _as_labels(y)
    if len(row_ids) != len(labels):
        raise ValueError(f"there are {len(row_ids)} ids and {len(labels)} values in y")
    if not row_ids:
        raise ValueError("there are no ids")
    return Batch(row_ids, labels)


def as_ids(ids: Any) -> list[Any]:
    """Return ids as they are sent: texts and whole numbers."""
    return list(ids.tolist() if hasattr(ids, "tolist") else ids)


class Table:
    """Rows with names of columns; a slice is a table of some of the rows."""

    def __init__(self, names: list[str], rows: Any) -> None:
        """Take names and rows.

        Args:
            names: of the d columns.
            rows: an array (n, d) of numbers, or a list for each row.
        """
        self.names, self.rows = names, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> "Table":
        return Table(self.names, self.rows[part])


class Csr:
    """Rows of a sparse matrix (CSR); a slice has some of the rows. Columns are named 0, 1, ..."""

    def __init__(self, X: Any) -> None:
        """Take a matrix of scipy."""
        self._X = X

    def __len__(self) -> int:
        return int(self._X.shape[0])

    def __getitem__(self, part: slice) -> "Csr":
        return Csr(self._X[part])

    def named(self) -> list[dict[str, float]]:
        """Return the rows as values by name."""
        X = self._X
        names = list(map(str, X.indices.tolist()))
        values, ends = X.data.tolist(), X.indptr.tolist()
        return [
            dict(zip(names[start:stop], values[start:stop], strict=True))
            for start, stop in pairwise(ends)
        ]


def row_fields(rows: Any) -> dict[str, Any]:
    """Return the fields of a request for rows."""
    if isinstance(rows, Table):
        return {"x": rows.rows, "names": rows.names}
    return {"x": rows.named() if isinstance(rows, Csr) else rows}


def as_rows(X: Any) -> Any:
    """Return rows as they are sent: a list of dicts, a `Table` or `Csr`, an array, or lists.

    A single row becomes a list of one. Named columns become a `Table`. Rows that are not all
    numbers become lists, with None for missing values.
    """
    return rows_and_ids(X, NO_ROLES)[0]


def _check_rows(X: Any) -> None:
    """Raise TypeError or ValueError for what clearly is not rows, saying what rows are."""
    if X is None or isinstance(X, _NO_ROWS):
        raise TypeError(
            f"X is of type {type(X).__name__}: give a list of rows, an array, a data frame, or the "
            "path of a file"
        )
    if isinstance(X, Mapping) and any(map(_is_column, X.values())):
        raise ValueError(
            "X has a list of values under each name: for a row each, write pandas.DataFrame(X), or "
            "a list of rows such as {name: value}"
        )


def _is_column(value: Any) -> bool:
    """Return whether a value is a column of values; a list of texts may be one text."""
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    return not all(isinstance(each, str) for each in value)


def rows_and_ids(X: Any, roles: Roles) -> tuple[Any, list[Any] | None]:
    """Return rows as they are sent, and their ids if a column has them.

    Args:
        X: rows; see the module.
        roles: columns that are not features; only the column of ids must exist.

    Raises ValueError, TypeError.
    """
    if isinstance(X, Table | Csr):
        return X, None
    _check_rows(X)
    if hasattr(X, "tocsr"):
        return Csr(X.tocsr()), None
    if _is_path(X):
        return _file_rows(X, roles)
    if isinstance(X, Mapping):
        X = [X]
    columns = read_columns(X, roles)
    if columns is not None:
        table, _, _, ids = _split_columns(columns, roles, labelled=False)
        return table, ids
    if not _is_sized(X):
        X = list(X)
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        return _named_rows(X, roles)
    if roles != NO_ROLES:
        raise ValueError("label, id and weight name columns, and the rows of X have no names")
    return _numbers_or_lists(X), None


def _named_rows(rows: Sequence[Any], roles: Roles) -> tuple[Any, list[Any] | None]:
    plain = _plain_rows(rows)
    if roles == NO_ROLES:
        return plain, None
    names = list(dict.fromkeys(chain.from_iterable(plain)))
    with as_value_errors():
        places = find_roles(names, roles, False)
    columns = [None if place is None else names[place] for place in places]
    ids = None if columns[1] is None else [_as_id(row.get(columns[1])) for row in rows]
    return _as_features(plain, names, columns), ids


def _as_features(plain: Sequence[Any], names: Sequence[Any], columns: Sequence[Any]) -> Any:
    """Return rows of named values without the columns of labels, ids and weights."""
    feature_names, rows = features_of(plain, names, columns)
    return rows if feature_names is None else Table(feature_names, rows)


def _as_id(value: Any) -> Any:
    return read_id(value) if isinstance(value, str) else plain_value(value)


def _file_rows(path: Any, roles: Roles) -> tuple[Any, list[Any] | None]:
    file = open_table(path, roles, labelled=False)
    (batch,) = file.batches(file.samples)
    rows = batch.X if file.names is None else Table(list(file.names), batch.X)
    return rows, None if roles.id is None else list(batch.ids)


def _plain_rows(rows: Sequence[Any]) -> list[dict[Any, Any]]:
    if not all(isinstance(row, Mapping) for row in rows):
        raise ValueError("some rows of X have named values, and others have not")
    return list(map(plain_row, rows))


def _split_columns(columns: Any, roles: Roles, labelled: bool) -> tuple[Any, Any, Any, Any]:
    """Return (rows, labels, weights, ids) of a table; None for what it does not have.

    Rows are a `Table` if all names of columns are texts.
    """
    from wolfstream.service.files.tables import rows_of_columns

    named = all(isinstance(name, str) for name in columns.names)
    with as_value_errors():
        table = rows_of_columns(
            columns._replace(names=list(map(str, columns.names))), roles, labelled
        )
    rows = Table(table.names, table.X) if named else table.X
    return rows, table.labels, table.weights, table.ids


def _is_path(X: Any) -> bool:
    return isinstance(X, str | Path)


def _why_uneven(X: Sequence[Any]) -> str:
    """Return why numpy can make no array of rows."""
    lengths = [len(row) if _is_sized(row) else 1 for row in X]
    for number, length in enumerate(lengths, 1):
        if length != lengths[0]:
            return (
                f"the rows of X differ in length: the first has {lengths[0]} values, row "
                f"{number:,} has {length}"
            )
    arrays = list, tuple, np.ndarray
    for number, row in enumerate(X, 1):
        if isinstance(row, arrays) and any(isinstance(value, arrays) for value in row):
            return f"row {number:,} of X has a list or an array for a value: give numbers or texts"
    return "some of X are rows, and others are numbers: give a list of rows"


def _numbers_or_lists(X: Any) -> Any:
    try:
        rows = np.asarray(X)
    except ValueError:
        raise ValueError(_why_uneven(X)) from None
    if rows.dtype.kind in "US" and not isinstance(X, np.ndarray):
        rows = np.asarray(X, object)  # numpy turns numbers beside texts into texts
    if rows.dtype.kind not in "fi" and all(isinstance(v, _NUMBER) for v in rows.ravel().tolist()):
        rows = rows.astype(np.float64)
    if rows.ndim == 1 and len(rows):
        rows = rows[None, :]
    if rows.ndim != 2:
        empty = "; X has no rows" if not len(X) else ""
        raise ValueError(f"X must have two dimensions, rows of values, not {rows.ndim}{empty}")
    if rows.dtype.kind in "fi":
        return rows
    return [[plain_value(value) for value in row] for row in rows.tolist()]


def _as_labels(y: Any) -> Any:
    if isinstance(y, list):
        return [plain_value(label) for label in y]
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension, a value for each row, not {labels.ndim}")
    if labels.dtype.kind in "fi":
        return labels
    return [plain_value(label) for label in labels.tolist()]


def _is_sized(X: Any) -> bool:
    """Return whether rows can be counted and indexed, like those of an array or a list."""
    return isinstance(X, Sequence | Table | Csr) or any(
        hasattr(X, name) for name in ("__array__", "to_numpy", "tocsr", "collect", "column_names")
    )

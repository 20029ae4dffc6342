"""Samples in the forms that callers have them, cut into batches that a server takes.

X is a table (`client.tables`), an array (or anything that numpy turns into one, as nested lists), a
sparse matrix of scipy, a list of rows of named values, one row, or an iterable of rows; y has a
label or number for each row, or is the label of the one row. Without y, X is a table, a file or
rows of named values that have their labels in a column, or it gives pairs of a row and its label. A
weight is a number for all samples, or gives one for each.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.client.tables import as_value_errors, columns_of, open_table
from wolfstream.service.files.roles import NO_ROLES, Roles, find_roles
from wolfstream.service.files.text import MISSING_LABEL, read_id
from wolfstream.service.files.values import features_of, plain_row, plain_value

# A tenth of the largest body that a server takes by default.
MOST_BYTES = 6 << 20
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

    roles: the columns of a table, or of rows of named values, that are no features.
    Raises ValueError, TypeError for anything that is not samples.
    """

    def __init__(
        self, X: Any, y: Any, most: int, weight: Any = None, roles: Roles = NO_ROLES
    ) -> None:
        if most < 1:
            raise ValueError(f"a batch must have at least one sample, not {most}")
        self.most = most
        self._rows: Any = None
        self._labels: Any = None
        self._weight = plain_value(weight) if isinstance(weight, _SCALAR) else None
        self._weights: Iterator[Any] | None = None
        if weight is not None and not isinstance(weight, _SCALAR):
            self._weights = iter(weight)
        self._pairs: Iterator[Any] = iter(())
        # Batches of rows that have their labels among their values, or of a file.
        self._batches: Iterator[Batch] | None = None
        if y is None:
            self._begin_table(X, roles)
        elif roles.label is not None or _is_path(X):
            raise ValueError("the labels are in a column of X: leave y out, and say label=NAME")
        elif roles != NO_ROLES:
            raise ValueError("id and weight name columns of X, which has its labels beside it in y")
        elif isinstance(y, _SCALAR):
            self._keep(rows_of(X), [y])
        elif isinstance(X, Iterator) or isinstance(y, Iterator) or not _is_sized(X):
            self._pairs = zip(X, y, strict=True)
        else:
            self._keep(rows_of(X), _labels_of(y))

    def _begin_table(self, X: Any, roles: Roles) -> None:
        """Begin with samples whose labels are in X."""
        if _is_path(X):
            self._batches = self._of_file(X, roles)
        elif isinstance(X, Mapping):
            self._batches = self._of_rows(iter([X]), roles)
        elif (columns := columns_of(X)) is not None:
            table, y, weights, _ = _parted(columns, roles, labelled=True)
            self._keep(table, y)
            if weights is not None:
                self._weights = iter(weights)
        else:
            rows = iter(X)
            first = list(islice(rows, 1))
            rows = chain(first, rows)
            if roles != NO_ROLES or (first and isinstance(first[0], Mapping)):
                self._batches = self._of_rows(rows, roles)
            else:
                self._pairs = rows

    def _of_file(self, path: Any, roles: Roles) -> Iterator[Batch]:
        file = open_table(path, roles, labelled=True)
        for batch in file.batches(self.most):
            rows = batch.X if file.names is None else Table(list(file.names), batch.X)
            yield Batch(rows, batch.labels, self._weights_beside(batch.weights, len(batch.labels)))

    def _of_rows(self, rows: Iterator[Any], roles: Roles) -> Iterator[Batch]:
        columns, done = None, 0
        while part := list(islice(rows, self.most)):
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
            rows_kept = _features_of(plain, names, columns)
            yield Batch(rows_kept, y, self._weights_beside(weights, len(y)))
            done += len(part)

    def _weights_beside(self, weights: Any, n: int) -> Any:
        """Return the weights that the next n rows have in a column, or else those given apart."""
        return self._weights_of(n) if weights is None else weights

    def take(self) -> Batch | None:
        """Return the next batch; None when all have been taken."""
        if self._batches is not None:
            batch = next(self._batches, None)
            if batch is None:
                self._end_weights()
            return batch
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


def roles_of(label: str | None, id_column: str | None, weight: Any) -> tuple[Roles, Any]:
    """Return the columns that are no features, and the weights that are given apart."""
    if isinstance(weight, str):
        return Roles(label, id_column, weight), None
    return Roles(label, id_column), weight


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


class Csr:
    """Rows of a sparse matrix (CSR); a slice of it has some of the rows.

    A column is known under its number, from 0 on.
    """

    def __init__(self, X: Any) -> None:
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


def fields_of(rows: Any) -> dict[str, Any]:
    """Return the fields of a request that hold rows."""
    if isinstance(rows, Table):
        return {"x": rows.rows, "names": rows.names}
    return {"x": rows.named() if isinstance(rows, Csr) else rows}


def rows_of(X: Any) -> Any:
    """Return rows as they are sent: a list of named values, a table, an array, or lists.

    A single row becomes a list of one. Columns that have names are a table. Rows that are not all
    numbers are lists, in which None means a missing value.
    """
    return rows_and_ids(X, NO_ROLES)[0]


def rows_and_ids(X: Any, roles: Roles) -> tuple[Any, list[Any] | None]:
    """Return rows to predict as they are sent, and their ids if a column has these.

    roles: the columns that are no features, of which only that of ids has to be there. Raises
    ValueError, TypeError.
    """
    if isinstance(X, Table | Csr):
        return X, None
    if hasattr(X, "tocsr"):
        return Csr(X.tocsr()), None
    if _is_path(X):
        return _rows_of_file(X, roles)
    if isinstance(X, Mapping):
        X = [X]
    columns = columns_of(X)
    if columns is not None:
        table, _, _, ids = _parted(columns, roles, labelled=False)
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
    taken = [None if place is None else names[place] for place in places]
    ids = None if taken[1] is None else [_id_in(row.get(taken[1])) for row in rows]
    return _features_of(plain, names, taken), ids


def _features_of(plain: Sequence[Any], names: Sequence[Any], taken: Sequence[Any]) -> Any:
    kept, rows = features_of(plain, names, taken)
    return rows if kept is None else Table(kept, rows)


def _id_in(value: Any) -> Any:
    return read_id(value) if isinstance(value, str) else plain_value(value)


def _rows_of_file(path: Any, roles: Roles) -> tuple[Any, list[Any] | None]:
    file = open_table(path, roles, labelled=False)
    (batch,) = file.batches(file.samples)
    rows = batch.X if file.names is None else Table(list(file.names), batch.X)
    return rows, None if roles.id is None else list(batch.ids)


def _plain_rows(rows: Sequence[Any]) -> list[dict[Any, Any]]:
    if not all(isinstance(row, Mapping) for row in rows):
        raise ValueError("some rows of X have named values, and others have not")
    return list(map(plain_row, rows))


def _parted(columns: Any, roles: Roles, labelled: bool) -> tuple[Any, Any, Any, Any]:
    """Return a table's rows, and its labels, weights and ids, None where it has none.

    Rows are a table if all columns have names that are texts.
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


def _labels_of(y: Any) -> Any:
    if isinstance(y, list):
        return [plain_value(label) for label in y]
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension, a value for each row, not {labels.ndim}")
    if labels.dtype.kind in "fi":
        return labels
    return [plain_value(label) for label in labels.tolist()]


def _is_sized(X: Any) -> bool:
    """Return whether rows can be counted and indexed, as those of an array or a list."""
    return isinstance(X, Sequence | Table | Csr) or any(
        hasattr(X, what) for what in ("__array__", "to_numpy", "tocsr", "collect", "column_names")
    )

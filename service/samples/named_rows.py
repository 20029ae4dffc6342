"""Rows of named numbers, and a model's table of the names it has met.

A name has no number of its own: each model numbers the names as they first appear in its
journal, which holds the names, so live learning and replay give them the same numbers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array
from solver.rows.matrix import SparseRows, sparse_from_csr
from solver.rows.matrix import square_norms as square_norms_of_matrix

# A Python string without its letters, and its pointer in a list.
_NAME_BYTES = 57


class NamedRows(NamedTuple):
    """Rows as a request names them: lengths[i] of the entries are row i's, in any order.

    names: those with a nonzero value in some row, in the order of their first appearance. A zero
        means the same as an absent name, so it does not make its name known.
    lengths: (n,) integers.
    place: (entries,) integers, each entry's place in the names, no two alike in a row.
    value: (entries,) float64, finite, none of them zero.
    """

    names: list[str]
    lengths: NDArray[np.integer[Any]]
    place: NDArray[np.integer[Any]]
    value: Float64Array


Rows: TypeAlias = Float64Array | NamedRows


def named_rows(rows: Sequence[Mapping[str, float]]) -> NamedRows:
    """Rows of checked names and numbers. Raises OverflowError for a number beyond float64."""
    lengths = np.array([len(row) for row in rows], np.int64)
    present = list(chain.from_iterable(rows))
    value = np.array(list(chain.from_iterable(row.values() for row in rows)), np.float64)
    nonzero = value != 0.0
    if not nonzero.all():
        row = np.repeat(np.arange(len(rows)), lengths)[nonzero]
        lengths = np.bincount(row, minlength=len(rows))
        present, value = list(compress(present, nonzero)), value[nonzero]
    place_of = {name: k for k, name in enumerate(dict.fromkeys(present))}
    place = np.fromiter(map(place_of.__getitem__, present), np.int64, len(present))
    return NamedRows(list(place_of), lengths, place, value)


def named_columns(names: Sequence[str], columns: Float64Array) -> NamedRows:
    """Rows of checked, different names and an (n, names) array of finite numbers."""
    used = np.flatnonzero(columns.any(axis=0))
    columns = columns[:, used]
    row, place = np.nonzero(columns)
    lengths = np.bincount(row, minlength=len(columns))
    return NamedRows([names[k] for k in used.tolist()], lengths, place, columns[row, place])


def joined(parts: Sequence[NamedRows]) -> NamedRows:
    """The rows of all parts, one after another."""
    table = NameTable(chain.from_iterable(part.names for part in parts))
    return NamedRows(
        table.names(),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([table.numbers(part.names, len(table))[part.place] for part in parts]),
        np.concatenate([part.value for part in parts]),
    )


def n_rows(rows: Rows) -> int:
    """The number of rows."""
    return len(rows.lengths if isinstance(rows, NamedRows) else rows)


def n_entries(rows: Rows) -> int:
    """The number of values in all rows, including the zeros of arrays."""
    return rows.value.size if isinstance(rows, NamedRows) else rows.size


def n_bytes(rows: Rows) -> int:
    """The approximate memory that rows take."""
    if not isinstance(rows, NamedRows):
        return rows.nbytes
    columns = rows.lengths.nbytes + rows.place.nbytes + rows.value.nbytes
    return columns + _NAME_BYTES * len(rows.names) + sum(map(len, rows.names))


def square_norms(rows: Rows | SparseRows) -> Float64Array:
    """||x||^2 of each row, (n,); infinite where it overflows."""
    with np.errstate(over="ignore"):
        if not isinstance(rows, NamedRows):
            return square_norms_of_matrix(rows)
        row = np.repeat(np.arange(n_rows(rows)), rows.lengths)
        return np.bincount(row, rows.value * rows.value, n_rows(rows)).astype(np.float64)


class NameTable:
    """Names and their numbers 0, 1, 2, ... in the order in which they came.

    It only grows, and a name's number never changes. So another thread may read it meanwhile:
    with the number of names that were known when its view was published.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._number: dict[str, int] = {}
        self.add(names)

    def __len__(self) -> int:
        return len(self._number)

    def add(self, names: Iterable[str]) -> None:
        """Give names that are new the next numbers."""
        for name in names:
            self._number.setdefault(name, len(self._number))

    def names(self) -> list[str]:
        """All names, by number."""
        return list(self._number)

    def unknown(self, names: Iterable[str], drafted: Collection[str] = ()) -> list[str]:
        """Those that are neither here nor drafted."""
        return [name for name in names if name not in self._number and name not in drafted]

    def numbers(self, names: Sequence[str], known: int) -> NDArray[np.int64]:
        """Numbers of different names, of which this table's first `known` count.

        The others get the numbers from `known` on.
        """
        numbers = np.array([self._number.get(name, known) for name in names], np.int64)
        unknown = numbers >= known
        if unknown.any():
            numbers[unknown] = known + np.arange(np.count_nonzero(unknown))
        return numbers

    def matrix(self, rows: NamedRows, known: int) -> SparseRows:
        """The rows with this table's first `known` numbers.

        A name beyond them becomes a feature that no learned row has: it is part of ||x||^2.
        """
        numbers = self.numbers(rows.names, known)
        ends = np.concatenate([[0], np.cumsum(rows.lengths, dtype=np.int64)])
        width = max(known, int(numbers.max(initial=-1)) + 1)
        return sparse_from_csr(rows.value, numbers[rows.place], ends, width)

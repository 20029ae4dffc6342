"""Rows of named numbers, and a model's table of the names it has met.

A name has no number of its own: each model numbers the names as they first appear in its log,
so the log carries names and the numbers come out the same live and in replay.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import NamedTuple, TypeAlias

import numpy as np

from solver.rows import (
    Float64Array,
    Matrix,
    SparseRows,
    concatenate_rows,
    n_rows,
    sparse_from_csr,
    to_csr,
)


class NamedRows(NamedTuple):
    """Rows of one request: feature number k of `numbered` is names[k].

    names: what some row has other than zero, in the order of its first appearance. A zero says
        no more than an absent name, so it does not make its name known.
    """

    names: list[str]
    numbered: SparseRows


Rows: TypeAlias = Float64Array | NamedRows


def named_rows(rows: Sequence[Mapping[str, float]]) -> NamedRows:
    """Rows of checked names and numbers. Raises OverflowError for a number beyond float64."""
    every_value = np.array(list(chain.from_iterable(row.values() for row in rows)), np.float64)
    nonzero = every_value != 0.0
    present = list(compress(chain.from_iterable(rows), nonzero))
    number = {name: k for k, name in enumerate(dict.fromkeys(present))}
    feature = np.fromiter((number[name] for name in present), np.int64, len(present))
    row = np.repeat(np.arange(len(rows)), [len(row) for row in rows])[nonzero]
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows)))])
    numbered = sparse_from_csr(every_value[nonzero], feature, ends, len(number))
    return NamedRows(list(number), numbered)


def joined(parts: Sequence[NamedRows]) -> NamedRows:
    """The rows of all parts, one after another."""
    table = NameTable(chain.from_iterable(part.names for part in parts))
    numbered = [table.numbered(part, len(table)) for part in parts]
    together = concatenate_rows(numbered)
    assert isinstance(together, SparseRows)
    return NamedRows(table.names(), together)


def matrix_of(rows: Rows) -> Matrix:
    """The rows for whom the numbers of features do not matter."""
    return rows.numbered if isinstance(rows, NamedRows) else rows


def count(rows: Rows) -> int:
    """How many rows there are."""
    return n_rows(matrix_of(rows))


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

    def numbered(self, rows: NamedRows, known: int) -> SparseRows:
        """The rows with the numbers of this table.

        Of its names the first `known` count; the others get the numbers from `known` on: no
        learned row has them, but they are part of ||x||^2.
        """
        numbers = np.array([self._number.get(name, known) for name in rows.names], np.int64)
        unknown = numbers >= known
        numbers[unknown] = known + np.arange(np.count_nonzero(unknown))
        data, features, ends = to_csr(rows.numbered)
        width = known + int(np.count_nonzero(unknown))
        return sparse_from_csr(data, numbers[features], ends, width)

"""Rows by name as requests have them, and a sparse model's table of names.

Each model numbers names in the order in which they first appear in its log, which holds the names,
so that live learning and replay give a name the same number.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import NO_TEXT, Cells, cells_of_numbers
from wolfstream.solver.prepare.cells import joined as joined_cells
from wolfstream.solver.rows.matrix import SparseRows, sparse_from_csr
from wolfstream.solver.rows.matrix import square_norms as square_norms_of_matrix

# The memory of a string without its characters, and of its pointer in a list.
_NAME_BYTES = 57
_NO_TEXTS = np.empty(0, np.int32)


class NamedRows(NamedTuple):
    """n rows as a request names their values; entries of a row are in any order."""

    names: list[str]  # in the order of their first appearance
    lengths: NDArray[np.integer[Any]]  # (n,) number of entries of each row
    place: NDArray[np.integer[Any]]  # (entries,) index in `names`, all different in a row
    value: Float64Array  # (entries,) finite; NaN where the value is missing or a text
    texts: Sequence[str] = ()  # the texts that occur
    # (entries,) index in `texts`, NO_TEXT where there is no text; empty if there are no texts.
    text: NDArray[np.int32] = _NO_TEXTS

    def part(self, start: int, stop: int) -> "NamedRows":
        """Return the rows from `start` up to `stop`, with all names."""
        first = int(self.lengths[:start].sum())
        entries = slice(first, first + int(self.lengths[start:stop].sum()))
        return self._replace(
            lengths=self.lengths[start:stop],
            place=self.place[entries],
            value=self.value[entries],
            text=self.text[entries] if len(self.texts) else self.text,
        )


Rows: TypeAlias = Float64Array | NamedRows | Cells


def named_rows(rows: Sequence[Mapping[str, float]]) -> NamedRows:
    """Return rows of numbers without zeros.

    rows: checked name -> checked number.

    Raises OverflowError for a number beyond float64.
    """
    return without_zeros(named_values(rows))


def named_values(rows: Sequence[Mapping[str, Any]]) -> NamedRows:
    """Return rows of values by name.

    rows: checked name -> checked number, boolean or text; None if the value is missing.

    Raises OverflowError for a number beyond float64.
    """
    lengths = np.array([len(row) for row in rows], np.int64)
    present = list(chain.from_iterable(rows))
    given = list(chain.from_iterable(row.values() for row in rows))
    place_of = {name: k for k, name in enumerate(dict.fromkeys(present))}
    place = np.fromiter(map(place_of.__getitem__, present), np.int64, len(present))
    value, texts, text = values_and_texts(given)
    return NamedRows(list(place_of), lengths, place, value, texts, text)


def values_and_texts(given: Sequence[Any]) -> tuple[Float64Array, list[str], NDArray[np.int32]]:
    """Return `value`, `texts` and `text` of `NamedRows` for checked values.

    Raises OverflowError for a number beyond float64.
    """
    if str not in set(map(type, given)):
        return np.array(given, np.float64), [], _NO_TEXTS  # None becomes NaN
    place_of: dict[str, int] = {}
    text = [
        place_of.setdefault(value, len(place_of)) if type(value) is str else NO_TEXT
        for value in given
    ]
    numbers = [None if type(value) is str else value for value in given]
    return np.array(numbers, np.float64), list(place_of), np.array(text, np.int32)


def without_zeros(rows: NamedRows) -> NamedRows:
    """Return rows as sparse rows, where zero, a missing value and an absent name mean the same.

    The name of a zero does not become known.
    """
    kept = (rows.value != 0.0) & ~np.isnan(rows.value)
    if kept.all():
        return rows
    row = np.repeat(np.arange(len(rows.lengths)), rows.lengths)[kept]
    used, first, place = np.unique(rows.place[kept], return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(used), np.int64)
    number[order] = np.arange(len(used))
    return NamedRows(
        [rows.names[k] for k in used[order].tolist()],
        np.bincount(row, minlength=len(rows.lengths)),
        number[place],
        rows.value[kept],
    )


def cells(rows: Rows) -> Cells:
    """Return rows as cells, in which each row has room for all names."""
    if isinstance(rows, Cells):
        return rows
    if not isinstance(rows, NamedRows):
        return cells_of_numbers(None, rows)
    shape = len(rows.lengths), len(rows.names)
    if _are_whole(rows):
        numbers = rows.value.reshape(shape)
        text = rows.text.reshape(shape) if len(rows.texts) else np.full(shape, NO_TEXT, np.int32)
        given = np.ones(shape, np.bool_)
        return Cells(tuple(rows.names), numbers, tuple(rows.texts), text, given, whole=False)
    row = np.repeat(np.arange(shape[0]), rows.lengths)
    numbers, text = np.full(shape, np.nan), np.full(shape, NO_TEXT, np.int32)
    given = np.zeros(shape, np.bool_)
    numbers[row, rows.place], given[row, rows.place] = rows.value, True
    if len(rows.texts):
        text[row, rows.place] = rows.text
    return Cells(tuple(rows.names), numbers, tuple(rows.texts), text, given, whole=False)


def _are_whole(rows: NamedRows) -> bool:
    """Return whether each row has all names, in order."""
    n, width = len(rows.lengths), len(rows.names)
    if len(rows.place) != n * width:
        return False
    return bool((rows.place.reshape(n, width) == np.arange(width)).all())


def table_of(names: Sequence[str] | None, rows: Float64Array | Sequence[Sequence[Any]]) -> Cells:
    """Return cells of checked values.

    names: checked and different; None without names.
    rows: (n, k) numbers, or n lists of k values.
    """
    given = None if names is None else tuple(names)
    if isinstance(rows, np.ndarray):
        return cells_of_numbers(given, rows)
    shape = len(rows), len(rows[0])
    value, texts, text = values_and_texts(list(chain.from_iterable(rows)))
    table = cells_of_numbers(given, value.reshape(shape))
    return table._replace(texts=tuple(texts), text=text.reshape(shape)) if texts else table


def rows_between(rows: Rows, start: int, stop: int) -> Rows:
    """Return the rows from `start` up to `stop`."""
    if isinstance(rows, np.ndarray):
        return rows[start:stop]
    return rows.rows(start, stop) if isinstance(rows, Cells) else rows.part(start, stop)


def with_own_words(rows: Rows) -> Rows:
    """Return rows with only their own names and texts, in the order of their first appearance.

    Rows cut from a request have all its names and texts. Cells keep their names.
    """
    if isinstance(rows, NamedRows):
        names, place = _in_order(rows.names, rows.place)
        rows = rows._replace(names=list(names), place=place)
    return with_own_texts(rows)


def with_own_texts(rows: Rows) -> Rows:
    """Return rows with only their own texts, in the order of their first appearance."""
    if isinstance(rows, np.ndarray) or not len(rows.texts):
        return rows
    is_text = rows.text != NO_TEXT
    texts, indices = _in_order(rows.texts, rows.text[is_text])
    if texts is rows.texts:
        return rows
    text = rows.text.copy()
    text[is_text] = indices
    if isinstance(rows, Cells):
        return rows._replace(texts=tuple(texts), text=text)
    return rows._replace(texts=texts, text=text)


def _in_order(
    words: Sequence[str], place: NDArray[np.integer[Any]]
) -> tuple[Sequence[str], NDArray[np.integer[Any]]]:
    """Return the words that occur, in the order of first appearance, and their new indices."""
    indices = place.tolist()
    order = list(dict.fromkeys(indices))
    if len(order) == len(words) and order == list(range(len(words))):
        return words, place
    # A request may have many more words than one of its rows.
    rank = {k: i for i, k in enumerate(order)}
    return [words[k] for k in order], np.array([rank[k] for k in indices], np.int64)


def form_of(rows: Rows) -> Hashable:
    """Return a key that is equal for rows that can be joined."""
    if isinstance(rows, np.ndarray):
        return "arrays"
    return ("table", rows.names, rows.numbers.shape[1]) if isinstance(rows, Cells) else "named"


def named_columns(names: Sequence[str], columns: Float64Array) -> NamedRows:
    """Return rows of numbers without zeros.

    names: checked and different.
    columns: (n, names) finite numbers.
    """
    used = np.flatnonzero(columns.any(axis=0))
    columns = columns[:, used]
    row, place = np.nonzero(columns)
    lengths = np.bincount(row, minlength=len(columns))
    return NamedRows([names[k] for k in used.tolist()], lengths, place, columns[row, place])


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several parts of one form, in order."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(cast("Sequence[Float64Array]", parts))
    named = [part for part in parts if isinstance(part, NamedRows)]
    if named:
        return _joined_named(named)
    tables = [part for part in parts if isinstance(part, Cells)]
    return joined_cells(tables) if len(tables) > 1 else tables[0]


def _joined_named(parts: Sequence[NamedRows]) -> NamedRows:
    if len(parts) == 1:
        return parts[0]
    table = NameTable(chain.from_iterable(part.names for part in parts))
    texts = NameTable(chain.from_iterable(part.texts for part in parts))
    text = [
        np.append(texts.numbers(part.texts, len(texts)), NO_TEXT)[
            part.text if len(part.texts) else np.full(len(part.value), NO_TEXT)
        ]
        for part in parts
    ]
    return NamedRows(
        table.names(),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([table.numbers(part.names, len(table))[part.place] for part in parts]),
        np.concatenate([part.value for part in parts]),
        texts.names(),
        np.concatenate(text).astype(np.int32) if len(texts) else _NO_TEXTS,
    )


def n_rows(rows: Rows) -> int:
    """Return the number of rows."""
    if isinstance(rows, Cells):
        return len(rows.numbers)
    return len(rows.lengths if isinstance(rows, NamedRows) else rows)


def n_entries(rows: Rows) -> int:
    """Return the number of values in all rows, including the zeros of arrays."""
    if isinstance(rows, np.ndarray):
        return rows.size
    return rows.numbers.size if isinstance(rows, Cells) else rows.value.size


def n_bytes(rows: Rows) -> int:
    """Return the approximate memory of rows in bytes."""
    if isinstance(rows, np.ndarray):
        return rows.nbytes
    words = [*(rows.names or ()), *rows.texts]
    arrays = [array for array in rows if isinstance(array, np.ndarray)]
    return sum(a.nbytes for a in arrays) + _NAME_BYTES * len(words) + sum(map(len, words))


def square_norms(rows: Rows | SparseRows) -> Float64Array:
    """Return ||x||^2 (n,) of each row; infinity where it overflows."""
    with np.errstate(over="ignore"):
        if isinstance(rows, Cells):
            return square_norms_of_matrix(np.nan_to_num(rows.numbers))
        if not isinstance(rows, NamedRows):
            return square_norms_of_matrix(rows)
        row = np.repeat(np.arange(n_rows(rows)), rows.lengths)
        value = np.nan_to_num(rows.value)
        return np.bincount(row, value * value, n_rows(rows)).astype(np.float64)


class NameTable:
    """Names and their numbers 0, 1, 2, ... in the order in which they came.

    It only grows, and the number of a name never changes. So other threads may read it, limited to
    the number of names that were known when their view was made.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._number: dict[str, int] = {}
        self.add(names)

    def __len__(self) -> int:
        return len(self._number)

    def add(self, names: Iterable[str]) -> None:
        """Give new names the next numbers."""
        for name in names:
            self._number.setdefault(name, len(self._number))

    def names(self) -> list[str]:
        """Return all names, by number."""
        return list(self._number)

    def unknown(self, names: Iterable[str], drafted: Collection[str] = ()) -> list[str]:
        """Return the names that are neither in the table nor in `drafted`."""
        return [name for name in names if name not in self._number and name not in drafted]

    def numbers(self, names: Sequence[str], known: int) -> NDArray[np.int64]:
        """Return the numbers (names,) of different names; unknown ones get those from `known` on.

        known: how many names of the table count.
        """
        numbers = np.array([self._number.get(name, known) for name in names], np.int64)
        unknown = numbers >= known
        if unknown.any():
            numbers[unknown] = known + np.arange(np.count_nonzero(unknown))
        return numbers

    def matrix(self, rows: NamedRows, known: int) -> SparseRows:
        """Return named rows as sparse rows of numbered features.

        An unknown name becomes a feature that no learned row has; it only counts in ||x||^2.

        known: how many names of the table count.
        """
        numbers = self.numbers(rows.names, known)
        ends = np.concatenate([[0], np.cumsum(rows.lengths, dtype=np.int64)])
        width = max(known, int(numbers.max(initial=-1)) + 1)
        return sparse_from_csr(rows.value, numbers[rows.place], ends, width)

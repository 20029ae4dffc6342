"""Prepares encoded rows for learners: categories become slots, and all columns are standardised.

    number     one column, standardised (`scale`); NaN is missing and becomes the mean, 0
    category   one-hot slots, standardised; the first codes have a slot each, others are hashed to
               the last quarter of the slots; NaN is missing and is 0 in all slots

A column may have one more, which is 1 where its value is missing. The layout determines the width,
which never changes, however many categories come.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger
from wolfstream.solver.prepare.bends import bent
from wolfstream.solver.prepare.scale import (
    COMPRESSED,
    Moments,
    copied,
    moments_arrays,
    moments_from_arrays,
    no_moments,
    standardise,
    standardised,
)
from wolfstream.solver.prepare.units import (
    differences_arrays,
    differences_from_arrays,
    no_differences,
)

Kind = Literal["number", "category"]
MOST_SLOTS = 32
# Codes are float64, which cannot represent all larger integers.
LARGEST_CODE = 2.0**53


class Layout(NamedTuple):
    """The kinds of the columns of encoded rows, which are numbers and codes."""

    numbers: tuple[int, ...]  # columns of numbers
    categories: tuple[int, ...] = ()  # columns of codes
    slots: tuple[int, ...] = ()  # of each category
    indicators: tuple[int, ...] = ()  # columns whose missing values have a column of their own
    # Indices in `numbers` of columns of seconds, learned as the time since the row before.
    since: tuple[int, ...] = ()
    # Indices in `numbers` of columns that are transformed, each with its bend (`bends`).
    bends: tuple[tuple[int, float], ...] = ()

    @property
    def plain(self) -> bool:
        """Whether there are only numbers that are learned as they come."""
        return not (self.categories or self.indicators or self.since or self.bends)

    @property
    def width(self) -> int:
        """The number of prepared columns."""
        return len(self.numbers) + sum(self.slots) + len(self.indicators)


def layout_of(kinds: Sequence[Kind], *, indicators: bool = False) -> Layout:
    """Return the layout of rows.

    kinds: of the columns, in order.
    indicators: whether missing values have columns of their own.
    """
    numbers = tuple(j for j, kind in enumerate(kinds) if kind == "number")
    categories = tuple(j for j, kind in enumerate(kinds) if kind == "category")
    slots = (MOST_SLOTS,) * len(categories)
    return Layout(numbers, categories, slots, tuple(range(len(kinds))) if indicators else ())


@inner
def own_codes(slots: int) -> int:
    """Return how many codes of a category with `slots` slots have a slot of their own."""
    shared: int = larger(1, slots // 4)
    return slots - shared


class PreparationView(NamedTuple):
    """An immutable view of a preparation, for rows to predict."""

    layout: Layout
    moments: Moments
    before: Float64Array  # (times,), the last time in each column of seconds

    def numbers(self, X: Float64Array) -> Float64Array:
        """Return rows X (n, d) as columns (n, width) before scaling, each as if it came next.

        Times are those since the last row that the preparation had absorbed.
        """
        rows = encoded(self.layout, X)
        if self.layout.since:
            since = list(self.layout.since)
            rows[:, since] = log_size(rows[:, since] - self.before)
        return rows


class Preparation:
    """Prepares the rows of a stream in order."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.moments = no_moments(layout.width)
        self.differences = no_differences(layout.width)
        # (times,) the last time in each column of seconds; NaN before the first.
        self.before = np.full(len(layout.since), np.nan)

    def absorb(self, X: Float64Array) -> Float64Array:
        """Return prepared rows (n, width) float64, each scaled by the rows up to and including it.

        The bits do not depend on how a stream is cut into blocks.

        X: (n, d) finite numbers, and codes 0, 1, 2, ...; NaN where a value is missing.

        Raises ValueError for a wrong code; nothing is changed then.
        """
        rows = encoded(self.layout, X)
        if self.layout.since:
            self._put_times_since(rows)
        return standardise(self.moments, rows, COMPRESSED, self.differences)

    def _put_times_since(self, rows: Float64Array) -> None:
        """Replace times by the seconds since the last row that had one."""
        if len(rows) == 1:  # the same without indices
            since = list(self.layout.since)
            seconds = rows[0, since]
            rows[0, since] = log_size(seconds - self.before)
            self.before = np.where(np.isnan(seconds), self.before, seconds)
            return
        for k, j in enumerate(self.layout.since):
            seconds = np.concatenate([self.before[k : k + 1], rows[:, j]])
            # The index of the last time up to each row; 0, which may be NaN, before the first.
            last = np.maximum.accumulate(np.where(np.isnan(seconds), 0, np.arange(len(seconds))))
            rows[:, j] = log_size(seconds[1:] - seconds[last[:-1]])
            self.before[k] = seconds[last[-1]]

    def view(self) -> PreparationView:
        """Return an immutable view."""
        return PreparationView(self.layout, copied(self.moments), self.before.copy())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays from which `restore` continues bit for bit."""
        arrays = moments_arrays("prepare_", self.moments)
        arrays |= differences_arrays("prepare_differences_", self.differences)
        if self.layout.since:
            arrays["prepare_before"] = self.before.copy()
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned. Raises ValueError for the state of another layout."""
        if any(
            name not in state or (state[name].shape, state[name].dtype) != (own.shape, own.dtype)
            for name, own in self.state().items()
        ):
            raise ValueError("the saved preparation is of other columns")
        self.moments = moments_from_arrays("prepare_", state)
        self.differences = differences_from_arrays("prepare_differences_", state)
        if self.layout.since:
            self.before = np.array(state["prepare_before"])


def prepared(view: PreparationView, X: Float64Array) -> Float64Array:
    """Return rows X (n, d), each as `Preparation.absorb` would return it next: (n, width)."""
    return standardised(view.moments, view.numbers(X), COMPRESSED)


def log_size(seconds: Float64Array) -> Float64Array:
    """Return sign(s) log(1 + |s|), for times s between a second and years."""
    return np.asarray(np.sign(seconds) * np.log1p(np.abs(seconds)))


def encoded(layout: Layout, X: Float64Array) -> Float64Array:
    """Return rows X (n, d) as columns (n, width) before scaling, NaN where a value is missing.

    It is X itself if the rows have only numbers that are learned as they come.

    Raises ValueError for a number that is no code.
    """
    X = np.ascontiguousarray(X)
    if layout.plain and len(layout.numbers) == X.shape[1]:
        return X
    # Rows must be contiguous: sums over columns of another memory order are rounded differently.
    rows, indices = np.zeros((len(X), layout.width)), _indices(layout)
    if not _write(X, np.isnan(X), *indices[:4], rows):
        raise ValueError("a category's code must be one of 0, 1, 2, ...")
    if layout.bends:
        rows[:, indices.bent] = bent(rows[:, indices.bent], indices.bends)
    return rows


class _Indices(NamedTuple):
    """The fields of a `Layout` as arrays, for compiled code."""

    numbers: NDArray[np.int64]
    categories: NDArray[np.int64]
    slots: NDArray[np.int64]  # of each category
    indicators: NDArray[np.int64]
    bent: NDArray[np.int64]  # in the columns before scaling
    bends: Float64Array


@lru_cache(64)
def _indices(layout: Layout) -> _Indices:
    each = layout.numbers, layout.categories, layout.slots, layout.indicators
    numbers, categories, slots, indicators = (np.array(columns, np.int64) for columns in each)
    bent_columns = np.array([j for j, _ in layout.bends], np.int64)
    bends = np.array([bend for _, bend in layout.bends])
    return _Indices(numbers, categories, slots, indicators, bent_columns, bends)


@compiled
def _write(
    X: Float64Array,
    missing: NDArray[np.bool_],
    numbers: NDArray[np.int64],
    categories: NDArray[np.int64],
    slots: NDArray[np.int64],
    indicators: NDArray[np.int64],
    rows: Float64Array,
) -> bool:
    """Write rows X (n, d) as columns; return False at the first code that is none of 0, 1, 2, ...

    missing: (n, d) whether a value is.
    numbers, categories, slots, indicators: of a `Layout`.
    rows: (n, width) zeros; is written.
    """
    for i in range(len(X)):
        column = 0
        for j in numbers:
            rows[i, column] = X[i, j]
            column += 1
        for k in range(len(categories)):
            j, width = categories[k], slots[k]
            if missing[i, j]:
                rows[i, column : column + width] = np.nan
            else:
                code = X[i, j]
                if code < 0.0 or code > LARGEST_CODE or code != np.floor(code):
                    return False
                rows[i, column + _slot_of(np.int64(code), width)] = 1.0
            column += width
        for j in indicators:
            rows[i, column] = 1.0 if missing[i, j] else 0.0
            column += 1
    return True


@inner
def _slot_of(code: Any, slots: int) -> Any:
    """Return the slot of a code: its own, or one of the last quarter, which others share."""
    own = own_codes(slots)
    if code < own:
        return code
    # Multiplicative hashing (Knuth): the upper bits of a product with 2^64 / golden ratio.
    product = np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)
    return own + np.int64((product >> np.uint64(32)) % np.uint64(slots - own))

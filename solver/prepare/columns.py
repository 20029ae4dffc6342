"""Prepares encoded rows for learners: categories become slots, and all columns are standardised.

    number     one column, standardised (`scale`); NaN is missing and becomes the mean, 0
    category   one-hot slots, standardised; the first codes have a slot each, others are hashed to
               the last quarter of the slots; NaN is missing and is 0 in all slots

A column may have one more, which is 1 where its value is missing. The layout determines the width,
which never changes, however many categories come.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
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


def own_codes(slots: int) -> int:
    """Return how many codes of a category with `slots` slots have a slot of their own."""
    return slots - max(1, slots // 4)


class PreparationView(NamedTuple):
    """An immutable view of a preparation, for rows to predict."""

    layout: Layout
    moments: Moments
    before: Float64Array  # as of `Preparation`

    def numbers(self, X: Float64Array) -> Float64Array:
        """Return rows X (n, d) as columns (n, width) before scaling, each as if it came next."""
        rows = encoded(self.layout, X)
        if not self.layout.since:
            return rows
        since = list(self.layout.since)
        rows = rows.copy()
        rows[:, since] = log_size(rows[:, since] - self.before)
        return rows


class Preparation:
    """Prepares the rows of a stream in order."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.moments = no_moments(layout.width)
        self.differences = no_differences(layout.width)
        # The last time in each column of seconds; NaN before the first.
        self.before = np.full(len(layout.since), np.nan)

    def absorb(self, X: Float64Array) -> Float64Array:
        """Return prepared rows (n, width) float64, each by the rows up to and including it.

        The bits do not depend on how a stream is cut into blocks.

        X: (n, d) finite numbers, and codes 0, 1, 2, ...; NaN where a value is missing.

        Raises ValueError for a wrong code; nothing is changed then.
        """
        rows = encoded(self.layout, X)
        if self.layout.since:
            rows = self._with_times_since(rows.copy())
        return standardise(self.moments, rows, COMPRESSED, self.differences)

    def _with_times_since(self, rows: Float64Array) -> Float64Array:
        """Replace times by the seconds since the last row that had one."""
        for k, j in enumerate(self.layout.since):
            seconds = np.concatenate([self.before[k : k + 1], rows[:, j]])
            last = np.maximum.accumulate(np.where(np.isnan(seconds), 0, np.arange(len(seconds))))
            rows[:, j] = log_size(seconds[1:] - seconds[last[:-1]])
            self.before[k] = seconds[last[-1]]
        return rows

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
    """Return rows X (n, d) as columns (n, width) before scaling, NaN where a value is missing."""
    rows = _expanded(layout, X)
    if not layout.bends:
        return rows
    columns, bends = (list(each) for each in zip(*layout.bends, strict=True))
    rows = rows.copy()
    rows[:, columns] = bent(rows[:, columns], np.array(bends))
    return rows


def _expanded(layout: Layout, X: Float64Array) -> Float64Array:
    """Return numbers as they are, and each category as its slots."""
    if len(layout.numbers) == layout.width == X.shape[1]:
        return np.ascontiguousarray(X)  # numbers alone are in their order
    parts = [X[:, list(layout.numbers)]]
    categories = zip(layout.categories, layout.slots, strict=True)
    for slots, alike in groupby(categories, key=lambda category: category[1]):
        parts.append(_one_hot(X[:, [j for j, _ in alike]], slots))
    if layout.indicators:
        parts.append(np.isnan(X[:, list(layout.indicators)]).astype(np.float64))
    # Rows must be contiguous: sums over columns of another memory order are rounded differently.
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _one_hot(codes: Float64Array, slots: int) -> Float64Array:
    """Return codes (n, k) as slots (n, k slots).

    Raises ValueError for a number that is no code.
    """
    missing = np.isnan(codes)
    code = np.where(missing, 0.0, codes)
    if np.any((code < 0.0) | (code > LARGEST_CODE) | (code != np.floor(code))):
        raise ValueError("a category's code must be one of 0, 1, 2, ...")
    number, own = code.astype(np.int64), own_codes(slots)
    # Multiplicative hashing (Knuth): the upper bits of a product with 2^64 / golden ratio.
    product = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    shared = own + ((product >> np.uint64(32)) % np.uint64(slots - own)).astype(np.int64)
    slot = np.where(number < own, number, shared)
    columns: Float64Array = (slot[:, :, None] == np.arange(slots)).astype(np.float64)
    columns[missing] = np.nan
    return columns.reshape(len(codes), codes.shape[1] * slots)

"""Columns of different kinds as standardised numbers: the rows that learners take.

    number     one column, standardised (`scale`); NaN is missing and becomes the mean, 0
    category   slots, one of them 1, standardised likewise; the first codes have one each, all
               others share the last quarter by a hash; NaN is missing and is 0 in all of them

A column may have one more, which is 1 where its value is missing. The width is settled by the
layout and never changes, however many categories come.
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
# Codes are float64 numbers: beyond it, not every integer is one.
LARGEST_CODE = 2.0**53


class Layout(NamedTuple):
    """What each column of an array of numbers and codes is.

    numbers, categories: column numbers. slots: of each category. indicators: numbers of the
    columns whose missing values have a column of their own. since: places among the numbers of
    those that are seconds, and learned as the time since the row before. bends: places among the
    numbers of those whose logarithms are learned, each with its bend (`bends`).
    """

    numbers: tuple[int, ...]
    categories: tuple[int, ...] = ()
    slots: tuple[int, ...] = ()
    indicators: tuple[int, ...] = ()
    since: tuple[int, ...] = ()
    bends: tuple[tuple[int, float], ...] = ()

    @property
    def width(self) -> int:
        """The number of prepared columns."""
        return len(self.numbers) + sum(self.slots) + len(self.indicators)


def layout_of(kinds: Sequence[Kind], *, indicators: bool = False) -> Layout:
    """Return the layout of rows with columns of these kinds, in their order."""
    numbers = tuple(j for j, kind in enumerate(kinds) if kind == "number")
    categories = tuple(j for j, kind in enumerate(kinds) if kind == "category")
    slots = (MOST_SLOTS,) * len(categories)
    return Layout(numbers, categories, slots, tuple(range(len(kinds))) if indicators else ())


def own_codes(slots: int) -> int:
    """Return how many codes have a slot that no other code shares."""
    return slots - max(1, slots // 4)


class PreparationView(NamedTuple):
    """An immutable view of a preparation, for rows that are only asked about."""

    layout: Layout
    moments: Moments
    before: Float64Array

    def numbers(self, X: Float64Array) -> Float64Array:
        """Return encoded rows as numbers that are not standardised yet, each as if it came next."""
        rows = encoded(self.layout, X)
        if not self.layout.since:
            return rows
        since = list(self.layout.since)
        rows = rows.copy()
        rows[:, since] = log_size(rows[:, since] - self.before)
        return rows


class Preparation:
    """Prepares the rows of a stream in their order."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.moments = no_moments(layout.width)
        self.differences = no_differences(layout.width)
        # The last moment of each column of seconds; NaN before the first.
        self.before = np.full(len(layout.since), np.nan)

    def absorb(self, X: Float64Array) -> Float64Array:
        """Rows (n, d) prepared, (n, width) float64, each by the rows up to and including it.

        Numbers are finite or NaN, categories are codes 0, 1, 2, ... or NaN. Raises ValueError for
        a code that is none, before anything is taken in. Blocks of any length give the same bits.
        """
        rows = encoded(self.layout, X)
        if self.layout.since:
            rows = self._with_times_since(rows.copy())
        return standardise(self.moments, rows, COMPRESSED, self.differences)

    def _with_times_since(self, rows: Float64Array) -> Float64Array:
        """Replace moments by the times since those of the last row that had one."""
        for k, j in enumerate(self.layout.since):
            seconds = np.concatenate([self.before[k : k + 1], rows[:, j]])
            last = np.maximum.accumulate(np.where(np.isnan(seconds), 0, np.arange(len(seconds))))
            rows[:, j] = log_size(seconds[1:] - seconds[last[:-1]])
            self.before[k] = seconds[last[-1]]
        return rows

    def view(self) -> PreparationView:
        """Return the preparation as it is now."""
        return PreparationView(self.layout, copied(self.moments), self.before.copy())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that `restore` needs to go on bit for bit, as plain arrays."""
        arrays = moments_arrays("prepare_", self.moments)
        arrays |= differences_arrays("prepare_differences_", self.differences)
        if self.layout.since:
            arrays["prepare_before"] = self.before.copy()
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state of a preparation with the same layout; ValueError for another."""
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
    """Return rows (n, d) as `Preparation.absorb` would give each, if it came next."""
    return standardised(view.moments, view.numbers(X), COMPRESSED)


def log_size(seconds: Float64Array) -> Float64Array:
    """sign(s) log(1 + |s|), for times between a second and years."""
    return np.asarray(np.sign(seconds) * np.log1p(np.abs(seconds)))


def encoded(layout: Layout, X: Float64Array) -> Float64Array:
    """Rows (n, d) as numbers (n, width) that are not standardised yet; NaN where missing."""
    rows = _apart(layout, X)
    if not layout.bends:
        return rows
    places, bends = (list(each) for each in zip(*layout.bends, strict=True))
    rows = rows.copy()
    rows[:, places] = bent(rows[:, places], np.array(bends))
    return rows


def _apart(layout: Layout, X: Float64Array) -> Float64Array:
    """Return numbers as they are, and each category as its slots."""
    if len(layout.numbers) == layout.width == X.shape[1]:
        return np.ascontiguousarray(X)  # numbers alone are in their order
    parts = [X[:, list(layout.numbers)]]
    categories = zip(layout.categories, layout.slots, strict=True)
    for slots, alike in groupby(categories, key=lambda category: category[1]):
        parts.append(_one_hot(X[:, [j for j, _ in alike]], slots))
    if layout.indicators:
        parts.append(np.isnan(X[:, list(layout.indicators)]).astype(np.float64))
    # Columns that are picked lie one after another, and sums over rows would round otherwise.
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _one_hot(codes: Float64Array, slots: int) -> Float64Array:
    """Return codes (n, k) of columns with as many slots each as (n, k slots) numbers."""
    missing = np.isnan(codes)
    code = np.where(missing, 0.0, codes)
    if np.any((code < 0.0) | (code > LARGEST_CODE) | (code != np.floor(code))):
        raise ValueError("a category's code must be one of 0, 1, 2, ...")
    number, own = code.astype(np.int64), own_codes(slots)
    # Multiplicative hashing (Knuth): the upper bits of a product with 2^64 / golden ratio.
    product = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    shared = own + ((product >> np.uint64(32)) % np.uint64(slots - own)).astype(np.int64)
    place = np.where(number < own, number, shared)
    columns: Float64Array = (place[:, :, None] == np.arange(slots)).astype(np.float64)
    columns[missing] = np.nan
    return columns.reshape(len(codes), codes.shape[1] * slots)

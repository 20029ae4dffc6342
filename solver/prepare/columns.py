"""Columns of different kinds as standardised numbers: the rows that learners take.

    number     one column, standardised (`scale`); NaN is missing and becomes the mean, 0
    category   SLOTS columns, one of them 1, standardised likewise; the first SLOTS codes have
               one each, others share them by a hash; NaN is missing and is 0 in all of them

With `indicators`, each column has one more, which is 1 where its value is missing. The width is
settled by the kinds and never changes, however many categories come.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array
from solver.prepare.scale import (
    Moments,
    copied,
    moments_arrays,
    moments_from_arrays,
    no_moments,
    standardise,
    standardised,
)

Kind = Literal["number", "category"]
SLOTS = 32
# Codes are float64 numbers: beyond it, not every integer is one.
_LARGEST_CODE = 2.0**53


class Layout(NamedTuple):
    """What each column of a row is.

    numbers, categories: column numbers. indicators: whether there are any.
    """

    numbers: tuple[int, ...]
    categories: tuple[int, ...]
    indicators: bool

    @property
    def width(self) -> int:
        """The number of prepared columns."""
        columns = len(self.numbers) + len(self.categories)
        return len(self.numbers) + SLOTS * len(self.categories) + columns * self.indicators


def layout_of(kinds: Sequence[Kind], *, indicators: bool = False) -> Layout:
    """The layout of rows with columns of these kinds, in their order."""
    numbers = tuple(j for j, kind in enumerate(kinds) if kind == "number")
    categories = tuple(j for j, kind in enumerate(kinds) if kind == "category")
    return Layout(numbers, categories, indicators)


class PreparationView(NamedTuple):
    """An immutable picture of a preparation, for rows that are only asked about."""

    layout: Layout
    moments: Moments


class Preparation:
    """Prepares the rows of a stream in their order."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.moments = no_moments(layout.width)

    def absorb(self, X: Float64Array) -> Float64Array:
        """Rows (n, d) prepared, (n, width) float64, each by the rows up to and including it.

        Numbers are finite or NaN, categories are codes 0, 1, 2, ... or NaN. Raises ValueError for
        a code that is none, before anything is taken in. Blocks of any length give the same bits.
        """
        return standardise(self.moments, encoded(self.layout, X))

    def view(self) -> PreparationView:
        """The preparation as it is now."""
        return PreparationView(self.layout, copied(self.moments))

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `restore` needs to go on bit for bit, as plain arrays."""
        return moments_arrays("prepare_", self.moments)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state of a preparation with the same layout."""
        self.moments = moments_from_arrays("prepare_", state)


def prepared(view: PreparationView, X: Float64Array) -> Float64Array:
    """Rows (n, d) as `Preparation.absorb` would give each, if it came next."""
    return standardised(view.moments, encoded(view.layout, X))


def encoded(layout: Layout, X: Float64Array) -> Float64Array:
    """Rows (n, d) as numbers (n, width) that are not standardised yet; NaN where missing."""
    parts = [X[:, list(layout.numbers)]]
    parts += [_one_hot(X[:, j]) for j in layout.categories]
    if layout.indicators:
        parts.append(np.isnan(X[:, [*layout.numbers, *layout.categories]]).astype(np.float64))
    # Columns that are picked lie one after another, and sums over rows would round otherwise.
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _one_hot(codes: Float64Array) -> Float64Array:
    missing = np.isnan(codes)
    code = np.where(missing, 0.0, codes)
    if np.any((code < 0.0) | (code > _LARGEST_CODE) | (code != np.floor(code))):
        raise ValueError("a category's code must be one of 0, 1, 2, ...")
    number = code.astype(np.int64)
    # Multiplicative hashing (Knuth): the upper bits of a product with 2^64 / golden ratio.
    product = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    shared = (product >> np.uint64(64 - SLOTS.bit_length() + 1)).astype(np.int64)
    columns = np.zeros((len(codes), SLOTS))
    columns[np.arange(len(codes)), np.where(number < SLOTS, number, shared)] = 1.0
    columns[missing] = np.nan
    return columns

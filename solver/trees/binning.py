"""Bins of columns, between which trees split.

number      bin 1 + how many edges are below it; edges are midpoints between values, all of
them where they are few, else at quantiles
category    bin 1 + the place of its code among those that came most often; OTHER of any other
missing     bin 0
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner

BINS = 64
# All bins but those of missing values and of other codes.
EDGES = BINS - 2
OTHER = BINS - 1
# Rarer codes of a category share the bin OTHER.
_LEAST_COUNT = 5


class Bins(NamedTuple):
    """The bins of d columns."""

    edges: Float64Array  # (d, EDGES) ascending, padded with infinity; of a category its codes
    categories: NDArray[np.bool_]  # (d,)


def bins_of(X: Float64Array, categories: NDArray[np.bool_]) -> Bins:
    """Return bins that suit some rows.

    X: (n, d), NaN where a value is missing.
    categories: (d,) which columns are codes.
    """
    edges = np.full((X.shape[1], EDGES), np.inf)
    ordered = np.sort(X, axis=0)
    present = len(X) - np.isnan(X).sum(axis=0)
    for j, count in enumerate(present.tolist()):
        values = ordered[:count, j]
        borders = _frequent(values) if categories[j] else _midpoints(values)
        edges[j, : len(borders)] = borders
    return Bins(edges, categories)


def _frequent(values: Float64Array) -> Float64Array:
    codes, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:EDGES]
    return np.sort(codes[order[counts[order] >= _LEAST_COUNT]])


def without_own_bin(values: Float64Array) -> bool:
    """Return whether codes of a category share a bin; values: (n,), NaN where one is missing."""
    codes = np.unique(values[~np.isnan(values)])
    return len(_frequent(np.sort(values[~np.isnan(values)]))) < len(codes)


def _midpoints(values: Float64Array) -> Float64Array:
    """Return at most EDGES edges between ascending values."""
    last_of = np.flatnonzero(values[1:] > values[:-1])
    if len(last_of) > EDGES:
        # The borders next to the quantiles, without repetition.
        wanted = np.arange(1, EDGES + 1) * len(values) / (EDGES + 1) - 1.0
        last_of = np.unique(last_of[np.searchsorted(last_of, wanted).clip(max=len(last_of) - 1)])
    below, above = values[last_of], values[last_of + 1]
    # Halved first, as the sum of two large numbers may overflow.
    edges = 0.5 * below + 0.5 * above
    return np.where(edges < above, edges, below)


def binned(bins: Bins, X: Float64Array) -> NDArray[np.uint8]:
    """Return the bins (n, d) of rows (n, d), NaN where a value is missing."""
    out = np.empty(X.shape, np.uint8)
    _bin(bins, to_bin(X), out)
    return out


def to_bin(X: Float64Array) -> Float64Array:
    """Return rows with infinity for NaN, as `bin_row` takes them: compiled code assumes no NaN."""
    return np.where(np.isnan(X), np.inf, X)


@compiled
def _bin(bins: Bins, X: Float64Array, out: NDArray[np.uint8]) -> None:
    for i in range(len(X)):
        bin_row(bins, X[i], out[i])


@inner
def bin_row(bins: Bins, x: Float64Array, out: NDArray[np.uint8]) -> None:
    """Write the bins of a row.

    x: (d,), infinity where a value is missing.
    out: (d,) gets the bins.
    """
    for j in range(len(x)):
        value, edges = x[j], bins.edges[j]
        if value == np.inf:
            out[j] = 0
            continue
        # Counted in vector registers: a search by halves is mispredicted at each step.
        low = 0
        for k in range(EDGES):
            low += 1 if edges[k] < value else 0
        if not bins.categories[j] or (low < EDGES and edges[low] == value):
            out[j] = 1 + low
        else:
            out[j] = OTHER

"""Trees of a window of rows: of the labels, and of what the present answers leave of them.

    fresh       trees that begin with a constant
    residual    trees that begin with the answers about the rows: values, or log odds of classes
    past        of numbers: trees that begin with the answers that the other trees have joined, and
                see the targets before (`targets_before`)

All see the same columns (`tree_columns`); those on residuals of numbers also see the answer.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.target_scale import LARGEST, Units
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, smaller
from wolfstream.solver.rows.seen import RawRows
from wolfstream.solver.stream.targets_before import (
    COLUMNS,
    NOTHING_BEFORE,
    columns_in_order,
)
from wolfstream.solver.stream.tree_columns import Encoding, encoding_bytes, fit_encoding
from wolfstream.solver.stream.tree_schedule import MOST_ROUNDS
from wolfstream.solver.stream.tree_window import WindowRows
from wolfstream.solver.trees.binning import EDGES, Bins, bin_row, binned, bins_of, to_bin
from wolfstream.solver.trees.boosting import Effort, Problem, Trees, fitted, outputs_of
from wolfstream.solver.trees.code_values import MOST_VALUES
from wolfstream.solver.trees.growing import LEAVES, NODES
from wolfstream.solver.trees.predicting import outputs, write_outputs

# What probabilities count as at least where trees add to their logarithms.
LEAST_PROBABILITY = 1e-3
_SMALLEST_UNIT = 1e-200


class Forests(NamedTuple):
    """classes: that were known, 0 of numbers. units: of the targets.

    encoding: of rows as the columns that all trees split at. bins: of these and of those beside.
    past: None of classes, and where the targets before are not used. unit: of what these add, in
    which targets come.
    """

    classes: int
    units: Units
    encoding: Encoding
    bins: Bins
    fresh: Trees
    residual: Trees
    past: Trees | None = None
    unit: float = 1.0

    @property
    def columns(self) -> int:
        """Of the rows."""
        beside = 0 if self.classes else 1 if self.past is None else 1 + COLUMNS
        return len(self.bins.categories) - beside - self.encoding.width


def forests_bytes(columns: int, classes: int, *, past: bool, codes: bool) -> int:
    """Return the memory of forests for rows of so many columns, at most.

    past: as of `Forests`. codes: whether rows have categories or words.
    """
    targets = outputs_of(classes)
    tree_bytes = NODES * 14 + LEAVES * 8 * targets
    edges = (columns + 1 + (COLUMNS if past else 0)) * 8 * EDGES
    code_bytes = encoding_bytes(targets) + MOST_VALUES * 8 * EDGES if codes else 0
    return (2 + past) * MOST_ROUNDS * tree_bytes + edges + code_bytes


def fit_forests(
    rows: WindowRows,
    categories: NDArray[np.bool_],
    classes: int,
    units: Units,
    effort: Effort,
    *,
    past: bool = False,
) -> Forests:
    """Return the forests of some rows; the same bits for the same arrays.

    categories: (d,). rows.base: logarithms of probabilities, or values. classes: 0 of numbers.
    past: whether trees of numbers see the targets before. Rows are one after the other then, and
    rows.base has a second column of answers that other trees have joined.
    """
    weight = rows.weight / rows.weight.mean()
    base = rows.base[:, : max(classes, 1)]
    if classes:
        y, start = rows.y, base[:, 1:] - base[:, :1] if classes == 2 else base
        targets = np.equal(y[:, None], np.arange(1 if classes == 2 else 0, classes)) * 1.0
    else:
        y, start = in_units(units, rows.y), in_units(units, base)
        targets = y[:, None]
    encoding, X = fit_encoding(rows.X, rows.words, categories, targets, weight)
    fresh_categories = np.append(categories, np.zeros(encoding.width, np.bool_))
    residual_categories = fresh_categories
    if not classes:
        X = np.concatenate([X, start], axis=1)
        residual_categories = np.append(fresh_categories, False)
    all_categories = residual_categories
    if past:
        beside = columns_in_order(NOTHING_BEFORE, rows.y, rows.base[:, 1])
        X = np.concatenate([X, beside], axis=1)
        all_categories = np.append(residual_categories, np.zeros(COLUMNS, np.bool_))
    bins = bins_of(X, all_categories)
    row_bins = binned(bins, X)
    start = np.ascontiguousarray(start)

    def trees(columns: NDArray[np.bool_], begin: Float64Array | None) -> Trees:
        used_bins = np.ascontiguousarray(row_bins[:, : len(columns)])
        return fitted(Problem(used_bins, columns, y, weight, begin, classes), effort)

    fresh, residual = trees(fresh_categories, None), trees(residual_categories, start)
    if not past:
        return Forests(classes, units, encoding, bins, fresh, residual)
    left = rows.y - rows.base[:, 1]
    unit = float(np.maximum(np.abs(left).mean(), _SMALLEST_UNIT))
    scaled = np.clip(left / unit, -LARGEST, LARGEST)
    problem = Problem(row_bins, all_categories, scaled, weight, None, 0)
    return Forests(classes, units, encoding, bins, fresh, residual, fitted(problem, effort), unit)


def in_units(units: Units, values: Float64Array) -> Float64Array:
    """Return values in units of the targets, cut off where targets are."""
    return np.clip(units.of(values), -LARGEST, LARGEST)


def write_class_scores(
    forests: Forests, raw: RawRows, base: Float64Array, scores: Float64Array
) -> None:
    """Write what fresh trees and those on residuals say of rows to scores[:, 1] and scores[:, 2].

    base: (n, K) logarithms of probabilities, of perhaps more classes than the trees'. scores: (n,
    experts, at least K). A class that trees do not know has the least score of fresh ones.
    """
    X = forests.encoding.encoded(raw.X, raw.word_codes)
    bins, trees = np.empty(X.shape[1], np.uint8), (forests.fresh, forests.residual)
    _write_scores(forests.bins, *trees, forests.classes, to_bin(X), bins, base, scores)


@compiled
def _write_scores(
    bins_of_values: Bins,
    fresh: Trees,
    residual: Trees,
    classes: int,
    X: Float64Array,
    bins: NDArray[np.uint8],
    base: Float64Array,
    scores: Float64Array,
) -> None:
    """As of `write_class_scores`; bins: reused memory for a row."""
    for i in range(len(X)):
        fresh_scores, residual_scores = scores[i, 1], scores[i, 2]
        bin_row(bins_of_values, X[i], bins)
        _write_each(fresh, bins, fresh_scores)
        _write_each(residual, bins, residual_scores)
        least = fresh_scores[0]
        for k in range(base.shape[1]):
            if k < classes:
                least = smaller(least, fresh_scores[k])
                residual_scores[k] += base[i, k]
            else:
                fresh_scores[k], residual_scores[k] = least, base[i, k]


@inner
def _write_each(trees: Trees, bins: NDArray[np.uint8], scores: Float64Array) -> None:
    """Write a score of each class; of two, half the log odds for and against."""
    outputs = len(trees.start)
    if outputs > 1:
        write_outputs(trees, bins, scores[:outputs])
    else:
        write_outputs(trees, bins, scores[1:2])
        scores[0] = -0.5 * scores[1]
        scores[1] = 0.5 * scores[1]


def value_votes(forests: Forests, raw: RawRows, base: Float64Array) -> Float64Array:
    """Return (n, 3) in units of the targets: the answers, and values by both kinds of trees.

    base: (n,) answers, in the units that targets come in.
    """
    start = in_units(forests.units, base)[:, None]
    rows = _with_answers(forests, raw, start, None)
    fresh, residual = outputs(forests.fresh, rows), outputs(forests.residual, rows)
    return np.concatenate([start, fresh, start + residual], axis=1)


def past_votes(
    forests: Forests, raw: RawRows, base: Float64Array, beside: Float64Array
) -> Float64Array:
    """Return values (n,), as targets come, by trees that see the targets before.

    beside: (n, COLUMNS) of these. Others: as of `value_votes`.
    """
    assert forests.past is not None
    rows = _with_answers(forests, raw, in_units(forests.units, base)[:, None], beside)
    return np.asarray(beside[:, 0] + forests.unit * outputs(forests.past, rows)[:, 0])


def _with_answers(
    forests: Forests, raw: RawRows, start: Float64Array, beside: Float64Array | None
) -> NDArray[np.uint8]:
    """Return the bins of rows with the answers about them, and targets before them."""
    parts = [forests.encoding.encoded(raw.X, raw.word_codes), start]
    if forests.past is not None:
        parts.append(np.full((len(start), COLUMNS), np.nan) if beside is None else beside)
    return binned(forests.bins, np.concatenate(parts, axis=1))


def undone(units: Units, t: Float64Array, base: Float64Array) -> Float64Array:
    """Return values in units of the targets as targets.

    Logarithms are as bounded as those of the answers, `base`, or those when the trees were fitted.
    """
    if not units.bend:
        return units.undone(t)
    lowest, highest = units.bounds()
    u = np.clip(t, np.minimum(lowest, base), np.maximum(highest, base))
    return np.asarray(units.bend * np.sinh(units.centre + units.unit * u))

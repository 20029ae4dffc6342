"""Boosted trees fitted to a window of rows: to the labels, and to the residuals of predictions.

    fresh       begin with a constant
    residual    begin with the bank's predictions for the rows: values, or log odds of classes
    past        in regression: begin with the predictions of bank and trees together, and see the
                targets before each row (`targets_before`)

All split at the same columns (`trees.columns`); in regression, `residual` and `past` also see the
prediction.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.target_scale import LARGEST, Units
from wolfstream.solver.adaptive.targets_before import (
    COLUMNS,
    NOTHING_BEFORE,
    columns_in_order,
)
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, smaller
from wolfstream.solver.rows.head_rows import RawRows
from wolfstream.solver.trees.binning import EDGES, Bins, bin_row, binned, bins_of, to_bin
from wolfstream.solver.trees.boosting import Effort, Problem, Trees, fitted, outputs_of
from wolfstream.solver.trees.code_values import MOST_VALUES
from wolfstream.solver.trees.columns import Encoding, encoding_bytes, fit_encoding
from wolfstream.solver.trees.growing import LEAVES, NODES
from wolfstream.solver.trees.predicting import outputs, write_outputs
from wolfstream.solver.trees.schedule import MOST_ROUNDS
from wolfstream.solver.trees.window import WindowRows

# Where trees add to the log of a probability, it counts as at least this.
LEAST_PROBABILITY = 1e-3
_SMALLEST_UNIT = 1e-200


class Forests(NamedTuple):
    """The trees of one fit."""

    classes: int  # number of classes in the fit; 0 in regression
    units: Units  # of the targets
    encoding: Encoding  # of rows as columns that trees split at
    bins: Bins  # of these columns, and in regression of predictions and targets before
    fresh: Trees
    residual: Trees
    past: Trees | None = None  # None in classification, or if the targets before are not used
    unit: float = 1.0  # of the values of `past`, in units of the target as it comes

    @property
    def columns(self) -> int:
        """Number of columns of the rows."""
        added = 0 if self.classes else 1 if self.past is None else 1 + COLUMNS
        return len(self.bins.categories) - added - self.encoding.width


def forests_bytes(columns: int, classes: int, *, past: bool, codes: bool) -> int:
    """Return the most bytes that forests take.

    columns: number of columns of the rows.
    classes: number of classes; 0 in regression.
    past: whether there are `past` trees.
    codes: whether rows have categories or words.
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
    """Fit trees to rows; deterministic, bit for bit.

    rows: rows.base are log probabilities (n, K), or values (n, 1) in regression. With `past`, rows
        are consecutive and rows.base has a second column: predictions of bank and trees together.
    categories: (d,) which columns are codes.
    classes: number of classes; 0 in regression.
    units: of the targets.
    effort: rounds of boosting, and their seed.
    past: whether to fit trees that see the targets before a row.
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
        before = columns_in_order(NOTHING_BEFORE, rows.y, rows.base[:, 1])
        X = np.concatenate([X, before], axis=1)
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
    residual_values = rows.y - rows.base[:, 1]
    unit = float(np.maximum(np.abs(residual_values).mean(), _SMALLEST_UNIT))
    scaled = np.clip(residual_values / unit, -LARGEST, LARGEST)
    problem = Problem(row_bins, all_categories, scaled, weight, None, 0)
    return Forests(classes, units, encoding, bins, fresh, residual, fitted(problem, effort), unit)


def in_units(units: Units, values: Float64Array) -> Float64Array:
    """Return targets or predictions (n,) in units of the target, clipped as targets are."""
    return np.clip(units.scaled(values), -LARGEST, LARGEST)


def write_class_scores(
    forests: Forests, raw: RawRows, base: Float64Array, scores: Float64Array
) -> None:
    """Write the scores of fresh trees to scores[:, 1], and those of residual trees to scores[:, 2].

    A class that is newer than the trees gets the least score of the fresh trees.

    raw: n rows before they were scaled.
    base: (n, K) log probabilities by the bank.
    scores: (n, experts, at least K).
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
    """Compute `write_class_scores`; bins: reused memory for a row."""
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
    """Write the score of each class; with two classes these are -f/2 and f/2 of the log odds f."""
    outputs = len(trees.start)
    if outputs > 1:
        write_outputs(trees, bins, scores[:outputs])
    else:
        write_outputs(trees, bins, scores[1:2])
        scores[0] = -0.5 * scores[1]
        scores[1] = 0.5 * scores[1]


def value_votes(forests: Forests, raw: RawRows, base: Float64Array) -> Float64Array:
    """Return the values (n, 3) of the bank, fresh and residual trees, in units of the target.

    raw: n rows before they were scaled.
    base: (n,) predictions of the bank, as targets come.
    """
    start = in_units(forests.units, base)[:, None]
    rows = _with_answers(forests, raw, start, None)
    fresh, residual = outputs(forests.fresh, rows), outputs(forests.residual, rows)
    return np.concatenate([start, fresh, start + residual], axis=1)


def past_votes(
    forests: Forests, raw: RawRows, base: Float64Array, before: Float64Array
) -> Float64Array:
    """Return the values (n,) of trees that see the targets before, as targets come.

    raw, base: see `value_votes`.
    before: (n, COLUMNS) of `targets_before`.
    """
    assert forests.past is not None
    rows = _with_answers(forests, raw, in_units(forests.units, base)[:, None], before)
    return np.asarray(before[:, 0] + forests.unit * outputs(forests.past, rows)[:, 0])


def _with_answers(
    forests: Forests, raw: RawRows, start: Float64Array, before: Float64Array | None
) -> NDArray[np.uint8]:
    """Return the bins of rows with the predictions for them, and the targets before them."""
    parts = [forests.encoding.encoded(raw.X, raw.word_codes), start]
    if forests.past is not None:
        parts.append(np.full((len(start), COLUMNS), np.nan) if before is None else before)
    return binned(forests.bins, np.concatenate(parts, axis=1))


def unscaled(units: Units, t: Float64Array, base: Float64Array) -> Float64Array:
    """Return values t (n,) in units of the target as targets.

    Of skewed targets, t is clipped to the range of the targets at the fit, extended to `base`.

    base: (n,) the bank's predictions, in units of the target.
    """
    if not units.bend:
        return units.unscaled(t)
    lowest, highest = units.bounds()
    u = np.clip(t, np.minimum(lowest, base), np.maximum(highest, base))
    return np.asarray(units.bend * np.sinh(units.centre + units.unit * u))

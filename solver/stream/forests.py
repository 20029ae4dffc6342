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
from wolfstream.solver.rows.seen import RawRows
from wolfstream.solver.stream.targets_before import (
    COLUMNS,
    NOTHING_BEFORE,
    columns_in_order,
)
from wolfstream.solver.stream.tree_columns import Encoding, encoding_bytes, fit_encoding
from wolfstream.solver.stream.tree_schedule import MOST_ROUNDS
from wolfstream.solver.stream.tree_window import WindowRows
from wolfstream.solver.trees.binning import EDGES, Bins, binned, bins_of
from wolfstream.solver.trees.boosting import Effort, Problem, Trees, fitted, outputs_of
from wolfstream.solver.trees.code_values import MOST_VALUES
from wolfstream.solver.trees.growing import LEAVES, NODES
from wolfstream.solver.trees.predicting import outputs

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
    of_tree = NODES * 12 + LEAVES * 8 * targets
    edges = (columns + 1 + (COLUMNS if past else 0)) * 8 * EDGES
    of_codes = encoding_bytes(targets) + MOST_VALUES * 8 * EDGES if codes else 0
    return (2 + past) * MOST_ROUNDS * of_tree + edges + of_codes


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
    of_fresh = np.append(categories, np.zeros(encoding.width, np.bool_))
    of_residual = of_fresh
    if not classes:
        X, of_residual = np.concatenate([X, start], axis=1), np.append(of_fresh, False)
    of_all = of_residual
    if past:
        beside = columns_in_order(NOTHING_BEFORE, rows.y, rows.base[:, 1])
        X = np.concatenate([X, beside], axis=1)
        of_all = np.append(of_residual, np.zeros(COLUMNS, np.bool_))
    bins = bins_of(X, of_all)
    of_rows = binned(bins, X)
    start = np.ascontiguousarray(start)

    def trees(columns: NDArray[np.bool_], begin: Float64Array | None) -> Trees:
        own = np.ascontiguousarray(of_rows[:, : len(columns)])
        return fitted(Problem(own, columns, y, weight, begin, classes), effort)

    fresh, residual = trees(of_fresh, None), trees(of_residual, start)
    if not past:
        return Forests(classes, units, encoding, bins, fresh, residual)
    left = rows.y - rows.base[:, 1]
    unit = float(np.maximum(np.abs(left).mean(), _SMALLEST_UNIT))
    problem = Problem(of_rows, of_all, np.clip(left / unit, -LARGEST, LARGEST), weight, None, 0)
    return Forests(classes, units, encoding, bins, fresh, residual, fitted(problem, effort), unit)


def in_units(units: Units, values: Float64Array) -> Float64Array:
    """Return values in units of the targets, cut off where targets are."""
    return np.clip(units.of(values), -LARGEST, LARGEST)


def class_votes(
    forests: Forests, raw: RawRows, base: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return scores by fresh trees, (n, classes), and by those on residuals, (n, K).

    base: (n, K) logarithms of probabilities, of perhaps more classes than the trees'.
    """
    rows = binned(forests.bins, forests.encoding.encoded(raw.X, raw.word_codes))
    fresh, residual = (
        _of_each(outputs(trees, rows)) for trees in (forests.fresh, forests.residual)
    )
    said = base.copy()
    said[:, : forests.classes] += residual
    return fresh, said


def _of_each(out: Float64Array) -> Float64Array:
    """Return a score of each class; of two, half the log odds for and against."""
    return np.concatenate([-0.5 * out, 0.5 * out], axis=1) if out.shape[1] == 1 else out


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

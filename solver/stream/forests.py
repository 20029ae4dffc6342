"""Trees of a window of rows: of the labels, and of what the present answers leave of them.

    fresh       trees that begin with a constant
    residual    trees that begin with the answers about the rows: values, or log odds of classes

Both see the same columns (`tree_columns`); those on residuals of numbers also see the answer.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.target_scale import LARGEST, Units
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.seen import RawRows
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


class Forests(NamedTuple):
    """classes: that were known, 0 of numbers. units: of the targets.

    encoding: of rows as the columns that trees split at. bins: of these.
    """

    classes: int
    units: Units
    encoding: Encoding
    bins: Bins
    fresh: Trees
    residual: Trees


def forests_bytes(columns: int, classes: int, *, codes: bool) -> int:
    """Return the memory of two forests for rows of so many columns, at most.

    codes: whether rows have categories or words.
    """
    targets = outputs_of(classes)
    of_trees = 2 * MOST_ROUNDS * (NODES * 12 + LEAVES * 8 * targets)
    of_codes = encoding_bytes(targets) + MOST_VALUES * 8 * EDGES if codes else 0
    return of_trees + (columns + 1) * 8 * EDGES + of_codes


def fit_forests(
    rows: WindowRows, categories: NDArray[np.bool_], classes: int, units: Units, effort: Effort
) -> Forests:
    """Return both forests of some rows; the same bits for the same arrays.

    categories: (d,). rows.base: logarithms of probabilities, or values. classes: 0 of numbers.
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
    columns = np.append(categories, np.zeros(encoding.width, np.bool_))
    of_residual = columns
    if not classes:
        X, of_residual = np.concatenate([X, start], axis=1), np.append(columns, False)
    bins = bins_of(X, of_residual)
    of_rows = binned(bins, X)
    own = np.ascontiguousarray(of_rows[:, : len(columns)])
    fresh = fitted(Problem(own, columns, y, weight, None, classes), effort)
    start = np.ascontiguousarray(start)
    residual = fitted(Problem(of_rows, of_residual, y, weight, start, classes), effort)
    return Forests(classes, units, encoding, bins, fresh, residual)


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
    X = forests.encoding.encoded(raw.X, raw.word_codes)
    rows = binned(forests.bins, np.concatenate([X, start], axis=1))
    fresh, residual = outputs(forests.fresh, rows), outputs(forests.residual, rows)
    return np.concatenate([start, fresh, start + residual], axis=1)


def undone(units: Units, t: Float64Array, base: Float64Array) -> Float64Array:
    """Return values in units of the targets as targets.

    Logarithms are as bounded as those of the answers, `base`, or those when the trees were fitted.
    """
    if not units.bend:
        return units.undone(t)
    lowest, highest = units.bounds()
    u = np.clip(t, np.minimum(lowest, base), np.maximum(highest, base))
    return np.asarray(units.bend * np.sinh(units.centre + units.unit * u))

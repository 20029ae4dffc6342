"""Codes as numbers that trees split at: what targets are, by the codes of a row.

Splits of categories see the few most frequent codes only, and words not at all. Here each group of
codes, those of a category's column or of a text's words, becomes a column for each target:

    v_i = m + sum_u b_iu w_u,   b_iu = 1 / sqrt(codes of row i) if row i has code u, else 0

m is the targets' mean, w by ridge regression (Hoerl and Kennard 1970). For one code a row that is
the mean target of its rows, drawn to the mean of all. The rows that w is fitted to would know their
own targets: each has the value of a fit without its fold (cross-fitting; Micci-Barreca 2001).
Where these values are hardly nearer to the targets than m is, codes count nothing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner

# Of one row: groups, columns of all of them, and codes that have values.
MOST_GROUPS, MOST_VALUES, MOST_CODES = 16, 32, 1 << 14
# No code is one: they are whole numbers.
NO_CODE = 0.5
RIDGE = 1.0
_FOLDS, _SWEEPS = 5, 8
# Of the squared error of the mean: what values may leave that are of use.
_MOST_LEFT = 0.98
# A code of fewer rows has no value: of one row, no fit without that row knows it.
_LEAST_ROWS = 2


class Codes(NamedTuple):
    """The codes of a group that n rows have. row: of each, ascending. code: of any value."""

    row: NDArray[np.int64]
    code: Float64Array


class CodeValues(NamedTuple):
    """What codes count, of g groups and c targets.

    code: those of each group, ascending, one group after another. begin: (g + 1,) where they begin.
    value: (codes, c). start: (g, c).
    """

    code: Float64Array
    begin: NDArray[np.int64]
    value: Float64Array
    start: Float64Array


def no_code_values() -> CodeValues:
    """Return the values of no group."""
    return CodeValues(np.empty(0), np.zeros(1, np.int64), np.empty((0, 0)), np.empty((0, 0)))


def fit_code_values(
    groups: list[Codes], targets: Float64Array, weight: Float64Array
) -> tuple[CodeValues, Float64Array]:
    """Return values, and the columns (n, g c) that trees learn from.

    groups: at most MOST_GROUPS. targets: (n, c). weight: (n,).
    """
    if not groups:
        return no_code_values(), np.empty((len(targets), 0))
    most = MOST_CODES // len(groups)
    fitted = [_fit(_frequent(group, most), targets, weight) for group in groups]
    codes, values, starts, columns = zip(*fitted, strict=True)
    begin = np.cumsum([0, *map(len, codes)])
    code_values = CodeValues(np.concatenate(codes), begin, np.concatenate(values), np.stack(starts))
    return code_values, np.concatenate(columns, axis=1)


def _frequent(group: Codes, most: int) -> Codes:
    """Return the codes of at least _LEAST_ROWS rows, the most frequent ones."""
    _, inverse, counts = np.unique(group.code, return_inverse=True, return_counts=True)
    kept = counts >= _LEAST_ROWS
    if kept.sum() > most:
        ranked = np.argsort(-counts, kind="stable")
        kept[ranked[most:]] = False
    rows = kept[inverse]
    return Codes(group.row[rows], group.code[rows])


def _fit(
    group: Codes, targets: Float64Array, weight: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """Return codes, their values (codes, c), the start (c,), and the rows' columns (n, c)."""
    n, c = targets.shape
    code, inverse = np.unique(group.code, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    row, begin = group.row[order], np.searchsorted(inverse[order], np.arange(len(code) + 1))
    share = 1.0 / np.sqrt(np.maximum(np.bincount(group.row, minlength=n), 1.0))
    value, start, columns = np.zeros((len(code), c)), np.empty(c), np.empty((n, c))
    for k in range(c):
        target = np.ascontiguousarray(targets[:, k])
        for fold in range(_FOLDS + 1):
            # The last fit is to all rows.
            fitted = weight * (np.arange(n) % _FOLDS != fold)
            mean = float((fitted * target).sum() / fitted.sum()) if fitted.any() else 0.0
            rest, code_value = target - mean, np.zeros(len(code))
            _ridge(row, begin, share, fitted, rest, code_value)
            if fold < _FOLDS:
                columns[fold::_FOLDS, k] = (target - rest)[fold::_FOLDS]
            else:
                value[:, k], start[k] = code_value, mean
    loss, loss_of_mean = (
        float((weight[:, None] * (targets - fit) ** 2).sum()) for fit in (columns, start)
    )
    if loss > _MOST_LEFT * loss_of_mean:
        value[:], columns[:] = 0.0, start
    return code, value, start, columns


@compiled
def _ridge(
    row: NDArray[np.int64],
    begin: NDArray[np.int64],
    share: Float64Array,
    weight: Float64Array,
    rest: Float64Array,
    value: Float64Array,
) -> None:
    """Write the codes' values by Gauss and Seidel's steps; rest: of the targets, which goes on."""
    for _ in range(_SWEEPS):
        for u in range(len(value)):
            slope, curvature = 0.0, 0.0
            for k in range(begin[u], begin[u + 1]):
                i = row[k]
                slope += weight[i] * share[i] * rest[i]
                curvature += weight[i] * share[i] * share[i]
            step = (slope - RIDGE * value[u]) / (curvature + RIDGE)
            value[u] += step
            for k in range(begin[u], begin[u + 1]):
                rest[row[k]] -= step * share[row[k]]


def values_of_codes(values: CodeValues, group: int, codes: Float64Array) -> Float64Array:
    """Return the columns (n, c) of a group for rows with codes (n, k), NO_CODE for none."""
    part = slice(values.begin[group], values.begin[group + 1])
    out = np.empty((len(codes), values.start.shape[1]))
    codes = np.ascontiguousarray(codes)
    _write(values.code[part], values.value[part], values.start[group], codes, out)
    return out


@compiled
def _write(
    code: Float64Array,
    value: Float64Array,
    start: Float64Array,
    codes: Float64Array,
    out: Float64Array,
) -> None:
    for i in range(len(codes)):
        count = 0
        for k in range(out.shape[1]):
            out[i, k] = 0.0
        for place in range(codes.shape[1]):
            u = _place(code, codes[i, place])
            if u >= 0:
                count += 1
                for k in range(out.shape[1]):
                    out[i, k] += value[u, k]
        for k in range(out.shape[1]):
            out[i, k] = start[k] + out[i, k] / np.sqrt(max(count, 1))


@inner
def _place(code: Float64Array, wanted: float) -> int:
    """Return the place of a code among ascending ones; -1 if it is not there."""
    low, high = 0, len(code)
    while low < high:
        middle = (low + high) >> 1
        if code[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(code) and code[low] == wanted else -1

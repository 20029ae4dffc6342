"""Target encoding: numbers in place of codes, at which trees split.

A split of a category sees only its most frequent codes, and words not at all. Here each group of
codes (of a category's column, or of a text's words) becomes a column for each target:

    v_i = m + sum_u b_iu w_u,   b_iu = 1 / sqrt(number of codes of row i) if it has code u, else 0

m is the mean target, and w a ridge regression (Hoerl and Kennard 1970). With one code in each row,
v is the mean target of the rows with this code, shrunk to m. The rows of a fit would see their own
targets in v, so each gets the value of a fit without its fold (cross-fitting; Micci-Barreca 2001).
If these values are hardly nearer to the targets than m, all w are 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner

# The most groups, columns of all groups, and codes with values.
MOST_GROUPS, MOST_VALUES, MOST_CODES = 16, 32, 1 << 14
# Stands for a missing code; codes are whole numbers.
NO_CODE = 0.5
RIDGE = 1.0
_FOLDS, _SWEEPS = 5, 8
# Values must reduce the squared error of the mean to this share of it.
_MOST_LEFT = 0.98
# A code of a single row has no value: a fit without this row does not know it.
_LEAST_ROWS = 2


class Codes(NamedTuple):
    """The codes of one group in n rows, which have any number of them."""

    row: NDArray[np.int64]  # (entries,) ascending
    code: Float64Array  # (entries,)


class CodeValues(NamedTuple):
    """The fitted values of the codes of g groups, for c targets."""

    code: Float64Array  # (codes,) ascending within each group, one group after another
    begin: NDArray[np.int64]  # (g + 1,) where the codes of each group begin
    value: Float64Array  # (codes, c) w
    start: Float64Array  # (g, c) m


def no_code_values() -> CodeValues:
    """Return the values of rows without groups."""
    return CodeValues(np.empty(0), np.zeros(1, np.int64), np.empty((0, 0)), np.empty((0, 0)))


def fit_code_values(
    groups: list[Codes], targets: Float64Array, weight: Float64Array
) -> tuple[CodeValues, Float64Array]:
    """Fit values of codes; return them, and the cross-fitted columns (n, g c) of the rows.

    groups: the codes of g <= MOST_GROUPS groups in n rows.
    targets: (n, c).
    weight: (n,) weights of the rows.
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
    """Return the `most` most frequent codes of those in at least _LEAST_ROWS rows."""
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
            # The last fit uses all rows.
            fitted = weight * (np.arange(n) % _FOLDS != fold)
            mean = float((fitted * target).sum() / fitted.sum()) if fitted.any() else 0.0
            residual, code_value = target - mean, np.zeros(len(code))
            _ridge(row, begin, share, fitted, residual, code_value)
            if fold < _FOLDS:
                columns[fold::_FOLDS, k] = (target - residual)[fold::_FOLDS]
            else:
                value[:, k], start[k] = code_value, mean
    loss, mean_loss = (
        float((weight[:, None] * (targets - fit) ** 2).sum()) for fit in (columns, start)
    )
    if loss > _MOST_LEFT * mean_loss:
        value[:], columns[:] = 0.0, start
    return code, value, start, columns


@compiled
def _ridge(
    row: NDArray[np.int64],
    begin: NDArray[np.int64],
    share: Float64Array,
    weight: Float64Array,
    residual: Float64Array,
    value: Float64Array,
) -> None:
    """Write the ridge regression's values by Gauss-Seidel sweeps; residual: (n,) is updated."""
    for _ in range(_SWEEPS):
        for u in range(len(value)):
            slope, curvature = 0.0, 0.0
            for k in range(begin[u], begin[u + 1]):
                i = row[k]
                slope += weight[i] * share[i] * residual[i]
                curvature += weight[i] * share[i] * share[i]
            step = (slope - RIDGE * value[u]) / (curvature + RIDGE)
            value[u] += step
            for k in range(begin[u], begin[u + 1]):
                residual[row[k]] -= step * share[row[k]]


def values_of_codes(values: CodeValues, group: int, codes: Float64Array) -> Float64Array:
    """Return the columns (n, c) of one group.

    group: its number.
    codes: (n, k) of the rows, NO_CODE for none.
    """
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
        for j in range(codes.shape[1]):
            u = _index_of(code, codes[i, j])
            if u >= 0:
                count += 1
                for k in range(out.shape[1]):
                    out[i, k] += value[u, k]
        for k in range(out.shape[1]):
            out[i, k] = start[k] + out[i, k] / np.sqrt(max(count, 1))


@inner
def _index_of(code: Float64Array, wanted: float) -> int:
    """Return the index of a code among ascending ones, or -1."""
    low, high = 0, len(code)
    while low < high:
        middle = (low + high) >> 1
        if code[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(code) and code[low] == wanted else -1

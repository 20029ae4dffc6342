"""The scatter of rows around their mean, without overflow or loss of digits."""

import numpy as np

from wolfstream.solver.rows.matrix import Matrix, SparseRows, compact, n_rows


def scatter(X: Matrix) -> tuple[float, float]:
    """Return (S, scale) with sum_i ||x_i - mean||^2 = S scale^2; (0, 0) if all rows are equal.

    The first row is subtracted from all rows, so that a common offset costs no digits. The entries
    are then divided by scale, the largest of them, so that nothing overflows. For sparse rows the
    time is O(nonzeros log nonzeros).

    X: (n, d) rows, n > 0.
    """
    if isinstance(X, SparseRows):
        return _sparse_scatter(X)
    scale = float(np.abs(X - X[0]).max())
    if scale == 0.0:
        return 0.0, 0.0
    centred = (X - X[0]) / scale
    centred -= centred.mean(axis=0)
    return float((centred * centred).sum()), scale


def _sparse_scatter(X: SparseRows) -> tuple[float, float]:
    """Return the scatter of sparse rows; a feature's rows without an entry are one term."""
    packed, n = compact(X), n_rows(X)
    if not len(packed.indices):
        return 0.0, 0.0
    features, column = np.unique(packed.indices, return_inverse=True)
    reference = np.zeros(len(features))
    reference[column[: packed.stop[0]]] = packed.values[: packed.stop[0]]
    absent = n - np.bincount(column, minlength=len(features))
    entry = packed.values - reference[column]
    missing = np.where(absent > 0, -reference, 0.0)
    scale = float(max(np.abs(entry).max(), np.abs(missing).max()))
    if scale == 0.0:
        return 0.0, 0.0
    entry, missing = entry / scale, missing / scale
    mean = (np.bincount(column, entry, len(features)) + absent * missing) / n
    entry, missing = entry - mean[column], missing - mean
    return float((entry * entry).sum() + (absent * missing * missing).sum()), scale

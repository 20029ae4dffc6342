"""The scatter of rows around their mean, computed without overflow and without loss of digits."""

import numpy as np

from wolfstream.solver.rows.matrix import Matrix, SparseRows, compact, n_rows


def scatter(X: Matrix) -> tuple[float, float]:
    """sum_i ||x_i - mean||^2 = S scale^2 of n > 0 rows; returns (S, scale).

    The first row is subtracted from all rows, so that a common offset costs no digits. The entries
    are then divided by scale, the largest of them, so that nothing overflows. Returns (0, 0) where
    all rows are equal. Sparse rows take O(nonzeros log nonzeros).
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
    """Return the scatter feature by feature; rows without an entry count together."""
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

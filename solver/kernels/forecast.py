"""The one-step-ahead errors of a kernel on a stream, in closed form."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array

# Rows of the kernel matrix that are filled at a time, so that they stay in the cache.
_ROWS = 128
# Columns of the factor that are computed at a time.
_COLUMNS = 32
# From this ridge on, single precision changes the sum by less than a ten-thousandth of it, a
# two-hundredth of the least difference for which a width is changed, and takes half the time.
_LEAST_OF_SINGLE = 0.1


def forecast_error(Z: Float64Array, Y: Float64Array, ridge: float, judged: int) -> float:
    """Return the sum of squared one-step-ahead errors of kernel ridge regression.

    With K_ij = exp(-||z_i - z_j||^2) + 1, the constant for a bias, and L L' = K + ridge I, sample i
    is forecast from those before it with the error e_i = L_ii (L^-1 Y)_i: row i of a Cholesky
    factor is made of the rows up to i alone, and L_ii^2 is the variance that they leave of y_i
    (the innovations of a Gaussian process: Rasmussen and Williams 2006, section 5.4.1, where the
    same factor gives the marginal likelihood sample by sample). So kernels can be compared by their
    prequential error with one factorisation each, without learning.

    Z: (n, d) rows, in units of the kernel's widths.
    Y: (n, K) targets; one-hot classes.
    ridge: > 0.
    judged: how many of the last samples count.
    """
    n, columns = Y.shape
    precision = np.float32 if ridge >= _LEAST_OF_SINGLE else np.float64
    matrix = np.zeros((n + columns, n + columns), precision)
    _fill(matrix, Z)
    matrix[range(n), range(n)] += ridge
    # Below L stands (L^-1 Y)' in the factor of [[A, Y], [Y', B]], whatever B is, provided that it
    # is large enough: Y' A^-1 Y is at most ||Y||^2 / ridge.
    matrix[n:, :n] = Y.T
    matrix[n:, n:] = np.eye(columns) * (2.0 * float(np.square(Y).sum()) / ridge + 1.0)
    _factorise(matrix)
    errors = matrix[n:, n - judged : n] * np.diag(matrix)[n - judged : n]
    return float(np.square(errors).sum(dtype=np.float64))


def _factorise(matrix: NDArray[Any]) -> None:
    """Replace the lower half by L of L L' = matrix.

    Each block of columns is computed from those before it (the left-looking form of Golub and Van
    Loan 2013, section 4.2.6). The library's own factorisation exists in double precision only, and
    takes twice as long.
    """
    n = len(matrix)
    for start in range(0, n, _COLUMNS):
        stop = min(n, start + _COLUMNS)
        panel = matrix[start:, start:stop]
        panel -= matrix[start:, :start] @ matrix[start:stop, :start].T
        corner = np.linalg.cholesky(panel[: stop - start].astype(np.float64))
        panel[: stop - start] = corner
        panel[stop - start :] = panel[stop - start :] @ np.linalg.inv(corner).T.astype(matrix.dtype)


def _fill(matrix: NDArray[Any], Z: Float64Array) -> None:
    """Write K into the first rows of a matrix, of which a factorisation reads the lower half."""
    # Centred, so that few digits cancel.
    centred = Z - Z.mean(axis=0)
    n, norms = len(Z), np.einsum("ij,ij->i", centred, centred)
    # The product of these is -||z_i - z_j||^2.
    left = np.concatenate([2.0 * centred, -norms[:, None], -np.ones((n, 1))], axis=1)
    right = np.concatenate([centred, np.ones((n, 1)), norms[:, None]], axis=1).T
    for start in range(0, n, _ROWS):
        stop = min(n, start + _ROWS)
        values = matrix[start:stop, :stop]
        # The sums are computed in double precision, because many digits cancel in them.
        np.minimum(left[start:stop] @ right[:, :stop], 0.0, out=values)
        np.exp(values, out=values)
        values += 1.0


def one_hot(codes: NDArray[np.int64]) -> Float64Array:
    """Return indicators of the classes that occur, (n, classes) float64, 1 or 0."""
    indicators: Float64Array = (codes[:, None] == np.unique(codes)).astype(np.float64)
    return indicators

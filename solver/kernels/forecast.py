"""How well a kernel's widths forecast a stream: one-step-ahead errors in closed form."""

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array


def squared_distances(X: Float64Array) -> Float64Array:
    """||x_i - x_j||^2 of (n, d) float64 rows, (n, n), about their mean so that little cancels."""
    centred = X - X.mean(axis=0)
    norms = np.einsum("ij,ij->i", centred, centred)
    found: Float64Array = norms[:, None] + norms - 2.0 * (centred @ centred.T)
    return np.maximum(found, 0.0, out=found)


def forecast_error(exponent: Float64Array, Y: Float64Array, ridge: float, judged: int) -> float:
    """The sum of squared one-step-ahead errors of kernel ridge regression over the last samples.

    With K = exp(-exponent) + 1, the constant for a bias, and L L' = K + ridge I, sample i is
    forecast from those before it with the error e_i = L_ii (L^-1 Y)_i: row i of a Cholesky factor
    is made of the rows up to i alone, and L_ii^2 is the variance that they leave of y_i (the
    innovations of a Gaussian process: Rasmussen and Williams 2006, section 5.4.1, where the same
    factor gives the marginal likelihood sample by sample). So a choice between kernels by their
    prequential error takes one factorisation each and learns nothing.

    exponent: (n, n) >= 0. Y: (n, K) targets, of classes one-hot. judged: how many of the last
    samples count.
    """
    n, columns = Y.shape
    matrix = np.empty((n + columns, n + columns))
    matrix[:n, :n] = np.exp(-exponent) + 1.0
    matrix[range(n), range(n)] += ridge
    # Below L stands (L^-1 Y)' in the factor of [[A, Y], [Y', B]], whatever B is, provided that it
    # is large enough: Y' A^-1 Y is at most ||Y||^2 / ridge.
    matrix[:n, n:], matrix[n:, :n] = Y, Y.T
    matrix[n:, n:] = np.eye(columns) * (2.0 * float(np.square(Y).sum()) / ridge + 1.0)
    factor = np.linalg.cholesky(matrix)
    errors = factor[n:, :n] * np.diag(factor)[:n]
    return float(np.square(errors[:, n - judged :]).sum())


def one_hot(codes: NDArray[np.int64]) -> Float64Array:
    """(n, classes that occur) float64: 1 where a sample is of the class, else 0."""
    found: Float64Array = (codes[:, None] == np.unique(codes)).astype(np.float64)
    return found

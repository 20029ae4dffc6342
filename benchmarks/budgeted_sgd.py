"""Kernel SGD on a budget, with merging, as its paper has it, compiled (BSGD).

Wang, Crammer and Vucetic 2012, Breaking the Curse of Kernelization, JMLR 13: Pegasos in the feature
space of an rbf kernel; when a sample violates the margin and the budget is full, the support vector
of least weight and another one become

    z = h x_m + (1 - h) x_n,  c_z = c_m k(x_m, z) + c_n k(x_n, z),

where h comes of a golden section search and n is the one that changes the decision function least:
c_m'c_m + c_n'c_n + 2 c_m'c_n k(x_m, x_n) - c_z'c_z. Two classes have one coefficient, more have one
each, and the hinge of Crammer and Singer.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled_allocating, inner_allocating
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import prepare_rows

# The golden section, and the searches' intervals: 1% of [0, 1], as in the paper.
_GOLDEN, _INTERVALS = 0.6180339887498949, 10
_ROWS_AT_ONCE = 256


class Model(NamedTuple):
    """At most `budget` support vectors, with room for one more.

    X: (budget + 1, d). c: (budget + 1, K) coefficients, those of the decision function times
        lambda t after t samples; K is 1 for two classes. size, t: (1,).
    """

    X: Float64Array
    c: Float64Array
    size: NDArray[np.int64]
    t: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self)


def empty_model(budget: int, d: int, n_classes: int) -> Model:
    """Return a model without support vectors."""
    coefficients = 1 if n_classes == 2 else n_classes
    counts = np.zeros((2, 1), np.int64)
    return Model(np.zeros((budget + 1, d)), np.zeros((budget + 1, coefficients)), *counts)


def learn(
    model: Model, X: Float64Array, codes: NDArray[np.int64], gamma: float, lam: float
) -> NDArray[np.int64]:
    """Learn (n, d) rows in order; returns the class that was predicted before each was learned."""
    predicted = np.empty(len(codes), np.int64)
    _learn(
        model, X, codes, gamma, lam, predicted, np.empty(len(model.c)), np.empty(model.c.shape[1])
    )
    return predicted


def predict(model: Model, X: Float64Array, gamma: float) -> NDArray[np.int64]:
    """Return the classes of (n, d) rows."""
    kernel, n, float64 = Kernel("rbf", gamma), model.size[0], np.dtype(np.float64)
    support = prepare_rows(kernel, model.X[:n], X[0].copy(), float64)
    parts = []
    for start in range(0, len(X), _ROWS_AT_ONCE):
        rows = prepare_rows(kernel, X[start : start + _ROWS_AT_ONCE], X[0].copy(), float64)
        decision = kernel_block(kernel, rows, support) @ model.c[:n]
        two = decision.shape[1] == 1
        parts.append(decision[:, 0] > 0.0 if two else np.argmax(decision, axis=1))
    return np.concatenate(parts).astype(np.int64)


@compiled_allocating
def _learn(
    model: Model,
    X: Float64Array,
    codes: NDArray[np.int64],
    gamma: float,
    lam: float,
    predicted: NDArray[np.int64],
    values: Float64Array,
    decision: Float64Array,
) -> None:
    """values: (budget + 1,) room for kernel values. decision: (K,) room for decisions."""
    c, size, t = model.c, model.size, model.t
    for k in range(len(codes)):
        _distances(model, X[k], values)
        decision[:] = 0.0
        for m in range(size[0]):
            value = math.exp(-gamma * values[m])
            for i in range(c.shape[1]):
                decision[i] += c[m, i] * value
        wins, rival = _classes(decision, codes[k])
        predicted[k] = wins
        # In the first step the model is zero whatever its scale.
        scale = 1.0 / (lam * max(t[0], 1))
        t[0] += 1
        if scale * _margin(decision, codes[k], rival) >= 1.0:
            continue
        new = size[0]
        model.X[new, :] = X[k]
        c[new, :] = 0.0
        if c.shape[1] == 1:
            c[new, 0] = 1.0 if codes[k] == 1 else -1.0
        else:
            c[new, codes[k]], c[new, rival] = 1.0, -1.0
        size[0] = new + 1
        if size[0] == len(c):
            _merge(model, gamma, values)


@inner_allocating
def _classes(decision: Float64Array, code: int) -> tuple[int, int]:
    """Return the class that wins, and the best one but `code`."""
    if len(decision) == 1:
        return (1 if decision[0] > 0.0 else 0), 1 - code
    wins, rival = 0, -1
    for i in range(len(decision)):
        if decision[i] > decision[wins]:
            wins = i
        if i != code and (rival < 0 or decision[i] > decision[rival]):
            rival = i
    return wins, rival


@inner_allocating
def _margin(decision: Float64Array, code: int, rival: int) -> float:
    if len(decision) == 1:
        return float(decision[0] if code == 1 else -decision[0])
    return float(decision[code] - decision[rival])


@inner_allocating
def _distances(model: Model, x: Float64Array, out: Float64Array) -> None:
    """out[m] = ||x_m - x||^2 for all support vectors."""
    for m in range(model.size[0]):
        total = 0.0
        for j in range(len(x)):
            difference = model.X[m, j] - x[j]
            total += difference * difference
        out[m] = total


@inner_allocating
def _product(c: Float64Array, m: int, n: int) -> float:
    total = 0.0
    for i in range(c.shape[1]):
        total += c[m, i] * c[n, i]
    return total


@inner_allocating
def _merged(h: float, exponent: float, a: float, b: float, ab: float) -> float:
    """Return c_z'c_z at h. a, b: c_m'c_m and c_n'c_n. ab: c_m'c_n. exponent: log k(x_m, x_n)."""
    of_m, of_n = math.exp((1.0 - h) ** 2 * exponent), math.exp(h * h * exponent)
    return a * of_m * of_m + 2.0 * ab * of_m * of_n + b * of_n * of_n


@inner_allocating
def _best_h(exponent: float, a: float, b: float, ab: float) -> float:
    """Return the h of the largest c_z'c_z by golden section search."""
    low, high = 0.0, 1.0
    left, right = 1.0 - _GOLDEN, _GOLDEN
    at_left = _merged(left, exponent, a, b, ab)
    at_right = _merged(right, exponent, a, b, ab)
    for _ in range(_INTERVALS):
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = _merged(left, exponent, a, b, ab)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = _merged(right, exponent, a, b, ab)
    return 0.5 * (low + high)


@inner_allocating
def _merge(model: Model, gamma: float, values: Float64Array) -> None:
    """Merge the support vector of least weight with the one that this changes least."""
    X, c, last = model.X, model.c, model.size[0] - 1
    m = 0
    for n in range(1, last + 1):
        if _product(c, n, n) < _product(c, m, m):
            m = n
    _distances(model, X[m], values)
    a, least, best, best_h = _product(c, m, m), np.inf, -1, 0.0
    for n in range(last + 1):
        if n == m:
            continue
        exponent, b, ab = -gamma * values[n], _product(c, n, n), _product(c, m, n)
        h = _best_h(exponent, a, b, ab)
        lost = a + b + 2.0 * ab * math.exp(exponent) - _merged(h, exponent, a, b, ab)
        if lost < least:
            least, best, best_h = lost, n, h
    exponent = -gamma * values[best]
    of_m, of_n = math.exp((1.0 - best_h) ** 2 * exponent), math.exp(best_h**2 * exponent)
    for j in range(X.shape[1]):
        X[best, j] = best_h * X[m, j] + (1.0 - best_h) * X[best, j]
    for i in range(c.shape[1]):
        c[best, i] = of_m * c[m, i] + of_n * c[best, i]
    # The last one takes the place of m.
    for j in range(X.shape[1]):
        X[m, j] = X[last, j]
    for i in range(c.shape[1]):
        c[m, i] = c[last, i]
    model.size[0] = last

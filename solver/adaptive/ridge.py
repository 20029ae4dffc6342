"""Second-order learners: recursive least squares, a block of rows at once and exactly.

With P = (Phi'Phi + ridge I)^-1 over all rows before, a block's rows Phi (n, D), targets Y (n, K):

    S = Phi P Phi' + I = L L',   V = L^-1 Phi P
    s_i = phi_i W + sum_{j < i} L_ij E_j,   E_i = residual(y_i, s_i) / L_ii
    then  W <- W + V'E,   P <- P - V'V

s_i is the answer before row i's own target: no bit of y_i or of a later row is in it. With

    square     residual(y, s) = y - s
    hinge      residual(y, s) = sign max(1 - sign s, 0), sign = 2 y - 1
    logistic   residual(y, s) = 4 (y - 1 / (1 + exp(-s)))
    huber      residual(y, s) = y - s, at most HUBER in size

the first is ridge regression, one row at a time by the Kalman recursion. The gains V depend on
the rows alone, so that learners with other losses share them at the cost of their own W: their
residual takes the place of the innovation, as in the second-order perceptron (Cesa-Bianchi,
Conconi and Gentile 2005). No residual has a slope above 1, so that no step overshoots.

A finite horizon forgets back to the prior after each CHUNK samples (KRLS-T: Van Vaerenbergh,
Lazaro-Gredilla and Santamaria 2012):

    l = exp(-CHUNK / horizon),   P <- l P + (1 - l) I / ridge,   W <- sqrt(l) W

P stays between 0 and I / ridge for ever. Rounding takes it out of these bounds by about
1e-16 / ridge a block; every REFRESH samples its eigenvalues are put back into them.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.adaptive.features import Span
from solver.arrays import Float64Array
from solver.compiled import compiled, inner, larger, smaller

Loss = Literal["square", "hinge", "logistic", "huber"]
_SQUARE, _HINGE, _LOGISTIC = range(3)
_KINDS: dict[Loss, int] = {"square": _SQUARE, "hinge": _HINGE, "logistic": _LOGISTIC, "huber": 3}
# In deviations of the target.
HUBER = 0.2
CHUNK = 32
# Up to so many rows, a matrix product costs more than passes over P.
FEW = 4
REFRESH = 65_536


class RidgeSetting(NamedTuple):
    """span: the columns to learn on. horizon: samples, or infinity. losses: a learner each."""

    span: Span
    horizon: float
    ridge: float
    losses: tuple[Loss, ...]


class RidgeLearners:
    """Learners with different losses and the same gains, on D columns.

    W: (losses, D, K) float64, replaced at each step, so that a view may keep it; of
    classification the last of the K targets is a class that never comes. P: (D, D) float64,
    symmetric, updated in place.
    """

    def __init__(self, setting: RidgeSetting, columns: int) -> None:
        self.setting = setting
        self.P = np.eye(columns) / setting.ridge
        self.W = np.zeros((len(setting.losses), columns, 1))
        self._kinds = np.array([_KINDS[loss] for loss in setting.losses])

    def meet(self, classes: int) -> None:
        """Have so many classes: each new one has the weights of the class that never came."""
        late = np.repeat(self.W[:, :, -1:], classes + 1 - self.W.shape[2], axis=2)
        self.W = np.concatenate([self.W, late], axis=2)

    def absorb(self, Phi: Float64Array, Y: Float64Array, work: Float64Array) -> Float64Array:
        """The answers (losses, n, K) before each row's own target; then the rows are learned.

        work: (D, D) float64 scratch.
        """
        answers = Phi @ self.W
        V = Phi @ self.P
        S = V @ Phi.T
        S.flat[:: len(S) + 1] += 1.0
        E = np.empty_like(answers)
        L = np.linalg.cholesky(S).astype(np.float64, copy=False)
        _substitute(L, V, Y, self._kinds, answers, E, self.P)
        if len(V) > FEW:
            np.matmul(V.T, V, out=work)
            self.P -= work
        self.W = self.W + V.T @ E
        return answers

    def end_chunk(self, samples: int) -> None:
        """Forget by CHUNK samples, the stream being `samples` long, a multiple of CHUNK."""
        ridge, horizon = self.setting.ridge, self.setting.horizon
        if np.isfinite(horizon):
            kept = float(np.exp(-CHUNK / horizon))
            self.P *= kept
            self.P.flat[:: len(self.P) + 1] += (1.0 - kept) / ridge
            self.W = np.sqrt(kept) * self.W
        if samples % REFRESH == 0:
            self.P = bounded(self.P, 1.0 / ridge)

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """P and W as plain arrays."""
        return {f"{name}_P": self.P.copy(), f"{name}_W": self.W.copy()}

    def restore(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.P, self.W = np.array(state[f"{name}_P"]), np.array(state[f"{name}_W"])


def bounded(P: Float64Array, largest: float) -> Float64Array:
    """The symmetric matrix nearest to P whose eigenvalues lie in [1e-14, 1] largest."""
    values, vectors = np.linalg.eigh((P + P.T) / 2.0)
    root = vectors * np.sqrt(np.clip(values, 1e-14 * largest, largest))
    nearest: Float64Array = root @ root.T
    return nearest


@compiled
def _substitute(
    L: Float64Array,
    V: Float64Array,
    Y: Float64Array,
    kinds: NDArray[np.int64],
    answers: Float64Array,
    E: Float64Array,
    P: Float64Array,
) -> None:
    """Forward substitution: Phi P to V, scores of the block's start to each row's own, and E.

    Of a few rows, P <- P - V'V as well, one pass over P for each.
    """
    for i in range(V.shape[0]):
        for j in range(i):
            factor = L[i, j]
            for k in range(V.shape[1]):
                V[i, k] -= factor * V[j, k]
            for e in range(len(kinds)):
                for k in range(Y.shape[1]):
                    answers[e, i, k] += factor * E[e, j, k]
        scale = 1.0 / L[i, i]
        for k in range(V.shape[1]):
            V[i, k] *= scale
        for e in range(len(kinds)):
            for k in range(Y.shape[1]):
                E[e, i, k] = scale * _residual(kinds[e], Y[i, k], answers[e, i, k])
        if V.shape[0] <= FEW:
            for r in range(V.shape[1]):
                for k in range(V.shape[1]):
                    P[r, k] -= V[i, r] * V[i, k]


@inner
def logistic(score: float) -> float:
    """1 / (1 + exp(-score))."""
    return 1.0 / (1.0 + math.exp(-larger(score, -700.0)))


@inner
def _residual(kind: int, y: float, score: float) -> float:
    if kind == _SQUARE:
        return y - score
    if kind == _HINGE:
        sign = 2.0 * y - 1.0
        return float(sign * larger(1.0 - sign * score, 0.0))
    if kind == _LOGISTIC:
        return 4.0 * (y - logistic(score))
    return float(smaller(larger(y - score, -HUBER), HUBER))

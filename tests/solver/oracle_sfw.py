"""P1 Algorithms 1-4 (SFW, MSFW) in plain numpy, for one binary problem and its whole matrix A.

Written line by line from the paper: no blocks, no shared rows, no compiled code. Beyond the
paper there are P4's pairwise (swap) steps after each sample, from the vertex whose step lowers q
most, and three clarifications:

- AWAY looks among the vertices with weight only, as the others have none to give away;
- a vertex whose weight the away step takes to its bound has weight exactly zero afterwards;
- gradients that differ by rounding only are equal. An exact line search makes two gradients
  equal, so such ties are the rule and not the exception. Among equal vertices the one admitted
  first is taken, except that a sample just admitted is selected, as section 3.2 says.
"""

from typing import NamedTuple

import numpy as np

ROUNDING = 1e-10


class Moment(NamedTuple):
    """The state after a sample: weights, q and gradients of the working set, in its order."""

    admitted: bool
    kind: str
    alpha: np.ndarray
    q: float
    g: np.ndarray


def kernel_matrix(kernel, X, Z):
    """Kernel values (len(X), len(Z)) in float64, from differences and inner products."""
    if kernel.type == "rbf":
        differences = X[:, None, :] - Z[None, :, :]
        return np.exp(-kernel.gamma * np.sum(differences**2, axis=2))
    products = np.sum(X[:, None, :] * Z[None, :, :], axis=2)
    if kernel.type == "linear":
        return products
    return (kernel.gamma * products + kernel.coef0) ** kernel.degree


def hessian(kernel, X, y, C):
    """A = K o yy' + yy' + I/(2C)                                             (P1 eq. 3.7)."""
    yy = np.outer(y, y)
    return kernel_matrix(kernel, X, X) * yy + yy + np.eye(len(y)) / (2.0 * C)


class Sfw:
    """Algorithm 1; with `away_steps`, line 10 is Algorithm 3 and the method is MSFW."""

    def __init__(self, A, away_steps, corrective_steps=0):
        self.A = A
        self.away_steps = away_steps
        self.corrective_steps = corrective_steps
        self.S = []
        self.alpha = np.zeros(len(A))
        self.g = np.zeros(len(A))
        self.q = 0.0

    def run(self):
        """One pass over all samples: the moment after each."""
        return [self.learn(k) for k in range(len(self.A))]

    def learn(self, k):
        if not self.S:
            # Lines 1-2: q = A_pp, alpha = e(p), update g.
            self.S = [k]
            self.q = self.A[k, k]
            self.alpha[k] = 1.0
            self.g[k] = -2.0 * self.A[k] @ self.alpha
            return self._moment(admitted=True, kind="initial")
        # Line 4: g_k by (3.8). Lines 5-9: k enters S when no vertex in S is better.
        g_k = -2.0 * self.A[k] @ self.alpha
        best = self._best()
        admitted = bool(g_k >= self.g[best] - self._slack())
        if admitted:
            self.S.append(k)
            self.g[k] = g_k
            best = k
        # Line 10.
        kind = self._decide_step(best) if self.away_steps else self._toward(best)
        for count in range(self.corrective_steps):
            gap = max(self.g[p] for p in self.S) + 2.0 * self.q
            if (count >= 2 or not admitted) and gap <= 0.5 * self.q:
                break
            self._swap()
        return self._moment(admitted, kind)

    def _decide_step(self, best):
        """Algorithm 3: TOWARD iff d_t'g >= d_a'g, d_t = e(best) - alpha, d_a = alpha - e(worst)."""
        S = np.array(self.S)
        along_alpha = self.alpha[S] @ self.g[S]
        toward_rise = self.g[best] - along_alpha
        away_rise = along_alpha - self.g[self._worst()]
        if toward_rise >= away_rise - self._slack():
            return self._toward(best)
        return self._away()

    def _toward(self, p):
        """Algorithm 2."""
        A_pp, g_p, q = self.A[p, p], self.g[p], self.q
        curvature = q + g_p + A_pp
        at_vertex = curvature <= ROUNDING * A_pp
        step = 0.0 if at_vertex else np.clip(1.0 - (g_p / 2.0 + A_pp) / curvature, 0.0, 1.0)
        self.q = (1.0 - step) ** 2 * q - step * (1.0 - step) * g_p + step**2 * A_pp
        for m in self.S:
            self.g[m] = (1.0 - step) * self.g[m] - 2.0 * step * self.A[m, p]
        self.alpha *= 1.0 - step
        self.alpha[p] += step
        return "toward"

    def _away(self):
        """Algorithm 4."""
        p = self._worst()
        A_pp, g_p, q = self.A[p, p], self.g[p], self.q
        bound = self.alpha[p] / (1.0 - self.alpha[p])
        step = np.clip((g_p / 2.0 + A_pp) / (q + g_p + A_pp) - 1.0, 0.0, bound)
        self.q = (1.0 + step) ** 2 * q + step * (1.0 + step) * g_p + step**2 * A_pp
        for m in self.S:
            self.g[m] = (1.0 + step) * self.g[m] + 2.0 * step * self.A[m, p]
        self.alpha *= 1.0 + step
        self.alpha[p] -= step
        if step < bound:
            return "away"
        self.alpha[p] = 0.0
        return "drop"

    def _swap(self):
        """P4's step lambda = min((g_best - g_m) / (2 d'Ad), alpha_m), d = e_best - e_m.

        Its m is the one whose step lowers q most; the first one of several.
        """
        best = self._best()
        steps = {
            m: self._swap_step(best, m)
            for m in self.S
            if self.alpha[m] > 0.0 and self.g[best] > self.g[m] + self._slack()
        }
        if not steps:
            return
        largest = max(decrease for decrease, _, _ in steps.values())
        partner = next(
            m for m, (decrease, _, _) in steps.items() if decrease >= 0.99999999 * largest
        )
        _, step, d = steps[partner]
        whole = step == self.alpha[partner]
        self.alpha += step * d
        if whole:
            self.alpha[partner] = 0.0
        self.q = self.alpha @ self.A @ self.alpha
        for m in self.S:
            self.g[m] = -2.0 * self.A[m] @ self.alpha

    def _swap_step(self, best, m):
        """(decrease of q, lambda, d) of the swap from m to best."""
        d = np.zeros(len(self.A))
        d[best], d[m] = 1.0, -1.0
        curvature = d @ self.A @ d
        step = min((self.g[best] - self.g[m]) / (2.0 * curvature), self.alpha[m])
        return step * (self.g[best] - self.g[m]) - step**2 * curvature, step, d

    def _slack(self):
        return ROUNDING * self.q

    def _best(self):
        highest = max(self.g[p] for p in self.S)
        return next(p for p in self.S if self.g[p] >= highest - self._slack())

    def _worst(self):
        weighted = [p for p in self.S if self.alpha[p] > 0.0]
        lowest = min(self.g[p] for p in weighted)
        return next(p for p in weighted if self.g[p] <= lowest + self._slack())

    def _moment(self, admitted, kind):
        S = np.array(self.S)
        return Moment(admitted, kind, self.alpha[S], self.q, self.g[S])


def project_onto_simplex(v):
    """The nearest point with weights >= 0 that sum to one (sort and threshold)."""
    descending = np.sort(v)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, len(v) + 1)
    return np.maximum(v - excess[np.flatnonzero(descending > excess)[-1]], 0.0)


def minimum_over_simplex(A, iterations=20_000):
    """min alpha'A alpha over the simplex by accelerated projected gradient steps.

    Returns (minimum, its own duality gap), so that a test can see how far it may be trusted.
    """
    length = 1.0 / (2.0 * np.linalg.eigvalsh(A)[-1])
    alpha = ahead = np.full(len(A), 1.0 / len(A))
    momentum = 1.0
    for _ in range(iterations):
        new = project_onto_simplex(ahead - length * 2.0 * A @ ahead)
        if (ahead - new) @ (new - alpha) > 0.0:
            momentum = 1.0
        grown = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = new + (momentum - 1.0) / grown * (new - alpha)
        alpha, momentum = new, grown
    return alpha @ A @ alpha, 2.0 * (alpha @ A @ alpha - np.min(A @ alpha))

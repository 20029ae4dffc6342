"""P5 Algorithm 1 (ASSET and ASSET*) in plain numpy, storing every iterate.

Classes are one-versus-rest and all known from the start; regression is a single machine. The
average is not carried along but computed from the stored iterates when asked for.

Feasible set: ||gamma|| <= R, |b| <= B; D_X is the largest norm of (gamma, b) in it. Hinge:
R = 1/sqrt(lambda), B = max(R, 1). Regression: R^2 = mean max(|y| - epsilon, 0) / lambda and
B = max(R, 2 mean |y|) over the samples so far, of the last `horizon` ones weighted like a mean
of so many.

D_G^2 is the mean of d^2 (||V||^2 + 1) with d^2 = 1 over the samples so far and over the first
128 at most. In regression a step ends at the edge of the tube around its sample.
"""

import numpy as np

D_G_SAMPLES = 128


class Asset:
    def __init__(self, dimension, machines, lam, star=False, epsilon=None, horizon=None):
        self.lam, self.star, self.epsilon, self.horizon = lam, star, epsilon, horizon
        self.square_norms = []
        self.mean_loss = self.mean_target = 0.0
        # Line 1: (gamma_0, b_0) = (0, 0).
        self.gamma = [np.zeros((machines, dimension))]
        self.b = [np.zeros(machines)]
        self.eta = [np.nan]
        self.projections = 0

    @property
    def steps(self):
        return len(self.gamma) - 1

    @property
    def radius(self):
        return np.sqrt((1.0 if self.epsilon is None else self.mean_loss) / self.lam)

    @property
    def bound(self):
        return max(self.radius, 1.0 if self.epsilon is None else 2.0 * self.mean_target)

    def learn(self, V, y):
        """Lines 3-7 for the features V of one sample; y is its class number or its target."""
        j = self.steps + 1
        self.square_norms.append(V @ V)
        counted = min(j, self.horizon or j)
        if self.epsilon is not None:
            self.mean_loss += (max(abs(y) - self.epsilon, 0.0) - self.mean_loss) / counted
            self.mean_target += (abs(y) - self.mean_target) / counted
        eta = self._step_length(counted)
        gamma, b = self.gamma[-1].copy(), self.b[-1].copy()
        for c in range(len(b)):
            d = self._slope(V, V @ gamma[c] + b[c], y, c, eta)
            gamma[c] = self._onto_ball(gamma[c] - eta * (self.lam * gamma[c] + d * V))
            if not self.star:
                b[c] = np.clip(b[c] - eta * d, -self.bound, self.bound)
        self.gamma.append(gamma)
        self.b.append(b)
        self.eta.append(eta)

    def _step_length(self, counted):
        if self.star:
            return 1.0 / (self.lam * counted)
        D_G = np.sqrt(np.mean(np.array(self.square_norms[:D_G_SAMPLES]) + 1.0))
        return np.hypot(self.radius, self.bound) / (D_G * np.sqrt(counted))

    def _slope(self, V, value, y, c, eta):
        """Table 1's d of machine c."""
        if self.epsilon is None:
            sign = 1.0 if y == c else -1.0
            return -sign if sign * value < 1.0 else 0.0
        beyond = abs(y - value) - self.epsilon
        if beyond <= 0.0:
            return 0.0
        reach = eta * (V @ V + (0.0 if self.star else 1.0))
        size = 1.0 if reach <= beyond else beyond / reach
        return -size if y > value else size

    def _onto_ball(self, gamma):
        norm = np.linalg.norm(gamma)
        if norm <= self.radius:
            return gamma
        self.projections += 1
        return gamma * (self.radius / norm)

    def averaged(self, average_from=None):
        """Lines 8-12: the eta-weighted average of iterates N-bar, ..., N; zero before N-bar.

        average_from None: from the start of the window before the present one, where windows
        start at 1, 2, 4, 8, ..., and from `horizon` on at its multiples. A window starts as
        soon as the last step before it is done. ASSET* does not average.
        """
        if self.star:
            return self.gamma[-1], self.b[-1]
        first = self._window_before(average_from)
        if first > self.steps:
            return np.zeros_like(self.gamma[0]), np.zeros_like(self.b[0])
        part = slice(max(first, 1), self.steps + 1)
        eta = np.array(self.eta[part])
        gamma = np.tensordot(eta, np.array(self.gamma[part]), axes=1) / eta.sum()
        return gamma, eta @ np.array(self.b[part]) / eta.sum()

    def _window_before(self, average_from):
        starts = [average_from or 1]
        for j in range(starts[0] + 1, self.steps + 2):
            if self.horizon is not None and j >= self.horizon:
                starts += [j] if j % self.horizon == 0 else []
            elif average_from is None and j & (j - 1) == 0:
                starts.append(j)
        return starts[-2] if len(starts) > 1 else starts[0]

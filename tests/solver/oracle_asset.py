"""P5 Algorithm 1 (ASSET, hinge loss) in plain numpy, storing every iterate.

One-versus-rest over classes that are all known from the start. The average is not carried
along but computed from the stored iterates when asked for.

D_G^2 is the mean of d^2 (||V||^2 + 1) at the first iterate, where d^2 = 1, over the samples so
far and over the first 128 at most. ||gamma|| is bounded by 1/sqrt(lambda), |b| by the same or
1 (B), whichever is larger; D_X is the largest norm of (gamma, b).
"""

import numpy as np

D_G_SAMPLES = 128


class Asset:
    def __init__(self, dimension, n_classes, lam):
        self.lam = lam
        self.radius = 1.0 / np.sqrt(lam)
        self.bound = max(self.radius, 1.0)
        self.D_X = np.hypot(self.radius, self.bound)
        self.square_norms = []
        # Line 1: (gamma_0, b_0) = (0, 0).
        self.gamma = [np.zeros((n_classes, dimension))]
        self.b = [np.zeros(n_classes)]
        self.eta = [np.nan]
        self.projections = 0

    @property
    def steps(self):
        return len(self.gamma) - 1

    def learn(self, V, code):
        """Lines 3-7 for the features V of one sample."""
        j = self.steps + 1
        self.square_norms.append(V @ V)
        D_G = np.sqrt(np.mean(np.array(self.square_norms[:D_G_SAMPLES]) + 1.0))
        eta = self.D_X / (D_G * np.sqrt(j))
        gamma, b = self.gamma[-1].copy(), self.b[-1].copy()
        for c in range(len(b)):
            y = 1.0 if code == c else -1.0
            d = -y if y * (V @ gamma[c] + b[c]) < 1.0 else 0.0
            moved = gamma[c] - eta * (self.lam * gamma[c] + d * V)
            gamma[c] = self._onto_ball(moved)
            b[c] = np.clip(b[c] - eta * d, -self.bound, self.bound)
        self.gamma.append(gamma)
        self.b.append(b)
        self.eta.append(eta)

    def _onto_ball(self, gamma):
        norm = np.linalg.norm(gamma)
        if norm <= self.radius:
            return gamma
        self.projections += 1
        return gamma * (self.radius / norm)

    def averaged(self, average_from):
        """Lines 8-12: the eta-weighted average of iterates N-bar, ..., N; zero before N-bar.

        average_from None: iterates from the start of the window before the present one, where
        windows start at 1, 2, 4, 8, ..., each as soon as the last step before it is done.
        """
        first = self._window_before() if average_from is None else average_from
        if first > self.steps:
            return np.zeros_like(self.gamma[0]), np.zeros_like(self.b[0])
        part = slice(max(first, 1), self.steps + 1)
        eta = np.array(self.eta[part])
        gamma = np.tensordot(eta, np.array(self.gamma[part]), axes=1) / eta.sum()
        return gamma, eta @ np.array(self.b[part]) / eta.sum()

    def _window_before(self):
        present = 1
        while 2 * present <= self.steps + 1:
            present *= 2
        return max(present // 2, 1)

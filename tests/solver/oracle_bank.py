"""The bank for classification in plain numpy, one sample at a time, all classes known at once.

Written from the formulas in the docstrings of `solver.adaptive`. An oracle is handed the
features of each sample; it combines the classes that have occurred, and no others.
"""

import numpy as np

RESIDUALS = {
    "square": lambda y, s: y - s,
    "hinge": lambda y, s: (2 * y - 1) * np.maximum(1 - (2 * y - 1) * s, 0.0),
    "logistic": lambda y, s: 4.0 * (y - 1.0 / (1.0 + np.exp(-s))),
    "huber": lambda y, s: np.clip(y - s, -0.2, 0.2),
}


class Kalman:
    """Recursive least squares with forgetting back to the prior after each 32 samples."""

    def __init__(self, columns, targets, horizon, ridge, loss="square"):
        self.P, self.W = np.eye(columns) / ridge, np.zeros((columns, targets))
        self.residual = RESIDUALS[loss]
        self.horizon, self.ridge, self.samples = horizon, ridge, 0

    def learn(self, phi, y):
        score = phi @ self.W
        gain = self.P @ phi / (phi @ self.P @ phi + 1.0)
        self.W = self.W + np.outer(gain, self.residual(y, score))
        self.P = self.P - np.outer(gain, phi @ self.P)
        self.samples += 1
        if self.samples % 32 == 0 and np.isfinite(self.horizon):
            kept = np.exp(-32.0 / self.horizon)
            self.P = kept * self.P + (1.0 - kept) * np.eye(len(self.P)) / self.ridge
            self.W = np.sqrt(kept) * self.W
        return score


class Logistic:
    """One-versus-rest logistic regression by implicit steps, each found by bisection."""

    def __init__(self, columns, targets, step):
        self.W, self.step = np.zeros((columns, targets)), step

    def learn(self, phi, y):
        score, square = phi @ self.W, phi @ phi
        low, high = np.full(len(y), -self.step), np.full(len(y), self.step)
        for _ in range(50):  # to 2e-15 of the step
            delta = (low + high) / 2.0
            p = 1.0 / (1.0 + np.exp(-(score + square * delta)))
            above = delta > self.step * (y - p)
            low, high = np.where(above, low, delta), np.where(above, delta, high)
        self.W = self.W + np.outer(phi, delta)
        return score


class NormalisedLms:
    """Least mean squares with steps divided by 1 + ||phi||^2."""

    def __init__(self, columns, targets, step):
        self.W, self.step = np.zeros((columns, targets)), step

    def learn(self, phi, y):
        score = phi @ self.W
        self.W = self.W + self.step * np.outer(phi, y - score) / (1.0 + phi @ phi)
        return score


class Neighbours:
    """All the rows so far, of which the last 1000 are asked."""

    def __init__(self, counts, columns, targets, regression=False):
        self.counts, self.columns, self.targets = counts, columns, targets
        self.regression = regression
        self.rows, self.labels, self.weight = [], [], np.ones(columns, np.float32)

    def learn(self, phi, y):
        z = phi[1 : 1 + self.columns].astype(np.float32)
        rows = np.array(self.rows[-1000:], np.float32).reshape(-1, self.columns)
        nearest = np.argsort(((rows - z) ** 2 * self.weight).sum(axis=1), kind="stable")
        labels = np.array(self.labels[-1000:]).reshape(-1, self.targets)
        near = [labels[nearest[:count]] for count in self.counts]
        self.rows.append(z)
        self.labels.append(y)
        if self.regression:
            return np.array([one.mean(axis=0) if len(one) else np.zeros(1) for one in near])
        return np.log(np.array([one.sum(axis=0) for one in near]) + 0.1)


class NaiveBayes:
    """All the rows so far, each with its share left; estimated anew when an eighth is new."""

    def __init__(self, columns, targets, horizon):
        self.columns, self.targets, self.horizon = columns, targets, horizon
        self.rows, self.labels, self.left = [], [], []
        self._estimate()

    def _estimate(self):
        self.mean, self.variance, self.count = [], [], []
        before = 1.0 / self.columns
        for k in range(self.targets):
            own = np.flatnonzero(np.array(self.labels) == k)
            # And one more row at 0, whose variance is that of a standardised column.
            rows = np.array([self.rows[i] for i in own] + [np.zeros(self.columns)])
            left = np.array([self.left[i] for i in own] + [1.0])
            mean = np.average(rows, axis=0, weights=left)
            square = np.average((rows - mean) ** 2, axis=0, weights=left)
            self.mean.append(mean)
            self.variance.append(np.maximum(square + before / left.sum(), 0.01 * before))
            self.count.append(left.sum())

    def learn(self, phi, y):
        z = phi[1 : 1 + self.columns]
        scores = np.log(self.count) - 0.5 * np.array(
            [
                (np.log(variance) + (z - mean) ** 2 / variance).sum()
                for mean, variance in zip(self.mean, self.variance, strict=True)
            ]
        )
        self.rows.append(z)
        self.labels.append(int(np.argmax(y)))
        self.left.append(1.0)
        n = len(self.rows)
        if n % 32 == 0:
            self.left = [left * np.exp(-32.0 / self.horizon) for left in self.left]
        ends = ((16, 1), (32, 2), (64, 4), (128, 8), (256, 16), (np.inf, 32))
        every = next(step for end, step in ends if n < end)
        if n % every == 0:
            self._estimate()
        return scores


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


class Combination:
    """Temperatures, stackers, noise and fixed share; an expert whose scores are None sleeps."""

    def __init__(self, experts, steps, prior=()):
        """The first experts have these weights before any sample; the others and stackers 1."""
        self.beta, self.curvature = np.ones(experts), np.full(experts, 10.0)
        self.drawn, self.labels = np.zeros((2, experts + len(steps)))
        self.counts = np.zeros(100)
        self.a = np.full((len(steps), experts), 1.0 / experts)
        self.square, self.steps = np.zeros((len(steps), experts)), np.array(steps)
        self.prior = np.ones(experts + len(steps))
        self.prior[: len(prior)] = prior
        self.prior /= self.prior.sum()
        self.weight = self.prior

    def learn(self, scores, label):
        """The probability of each class before the label, None as long as it is a new one."""
        awake = np.array([s is not None for s in scores] + [True] * len(self.steps))
        width = max(len(s) for s in scores if s is not None)
        u = np.array([np.zeros(width) if s is None else s - s.mean() for s in scores])
        expert = softmax(self.beta[:, None] * u)
        stacker = softmax(np.einsum("se,e,ek->sk", self.a, self.beta, u))
        noise = ((self.drawn + 0.4) / (self.labels + 20.0))[:, None]
        frequency = (self.counts[:width] + 1.0) / (self.counts[:width].sum() + width)
        self.counts *= 0.999
        self.counts[label] += 1.0
        p = (1.0 - noise) * np.concatenate([expert, stacker]) + noise * frequency
        answer = self.weight[awake] @ p[awake] / self.weight[awake].sum()
        if width < 2 or label >= width:
            return answer
        drawn = noise[:, 0] * frequency[label] / p[:, label]
        told, told_stackers = np.split(1.0 - drawn, [len(scores)])
        self.drawn = np.where(awake, 0.99 * self.drawn + drawn, self.drawn)
        self.labels = np.where(awake, 0.99 * self.labels + 1.0, self.labels)
        miss = np.einsum("sk,ek->se", stacker - np.eye(width)[label], u) * self.beta
        miss *= told_stackers[:, None]
        self.square = 0.999 * self.square + miss**2
        self.a = self.a - self.steps[:, None] * miss / np.sqrt(self.square + 1e-8)
        mean = (expert * u).sum(axis=1)
        spread = (expert * u**2).sum(axis=1) - mean**2
        curvature = 0.999 * self.curvature + told * spread
        beta = self.beta - told * (mean - u[:, label]) / curvature
        woken = awake[: len(scores)]
        self.curvature = np.where(woken, curvature, self.curvature)
        self.beta = np.where(woken, np.clip(beta, -1e3, 1e3), self.beta)
        likelihood = np.maximum(p[:, label], 1e-4)
        self.weight = self.weight.copy()
        part = self.weight[awake] * likelihood[awake]
        self.weight[awake] = part * self.weight[awake].sum() / part.sum()
        self.weight = 0.998 * self.weight + 0.002 * self.prior
        return answer


def relevance(features, W):
    """Squared weights of the columns that use a coordinate, those of two by half each."""
    d, m = features.W.shape
    found = (W[1 : 1 + d] ** 2).sum(axis=1) / d
    for j in range(m):
        used = np.flatnonzero(features.W[:, j])
        if len(used) <= 2:
            waves = W[[1 + d + j, 1 + d + m + j]]
            found[used] += (waves**2).sum() / m / len(used)
    return (found / found.max()).astype(np.float32)


class Bank:
    def __init__(self, settings, features, n_classes):
        ridge = [
            Kalman(features.columns(one.span), n_classes, one.horizon, one.ridge, loss)
            for one in settings.ridge
            for loss in one.losses
        ]
        gradient = [
            Logistic(features.columns(one.span), n_classes, one.step) for one in settings.gradient
        ]
        self.experts = ridge + gradient
        self.neighbours = [
            Neighbours(settings.neighbours, len(features.W), n_classes) for _ in "12"
        ]
        self.bayes = [
            NaiveBayes(len(features.W), n_classes, horizon) for horizon in settings.naive_bayes
        ]
        self.features, self.samples = features, 0
        experts = len(self.experts) + 2 * len(settings.neighbours) + len(self.bayes)
        alike = [
            *([one.span for one in settings.ridge for _ in one.losses]),
            *([f"{one.span}, by gradients" for one in settings.gradient]),
            *(["neighbours"] * (2 * len(settings.neighbours))),
            *(["Bayes"] * len(self.bayes)),
        ]
        self.prior = [alike.count(one) ** -0.5 * (0.1 if one == "Bayes" else 1.0) for one in alike]
        self.combination = Combination(experts, settings.stackers, self.prior)
        self.known, self.n_classes = 0, n_classes

    def learn(self, phi, label, external=()):
        one_hot = np.eye(self.n_classes)[label]
        scores = [one.learn(phi[: len(one.W)], one_hot) for one in self.experts]
        scores += [one for each in self.neighbours for one in each.learn(phi, one_hot)]
        scores += [one.learn(phi, one_hot) for one in self.bayes]
        self.samples += 1
        if self.samples % 32 == 0:
            self.neighbours[1].weight = relevance(self.features, self.experts[0].W)
        scores = [s[: self.known] for s in scores] + list(external)
        answer = np.zeros(self.n_classes)
        if self.known:
            answer[: self.known] = self.combination.learn(scores, label)
        else:
            self.combination.counts[label] += 1.0
        self.known = max(self.known, label + 1)
        return answer

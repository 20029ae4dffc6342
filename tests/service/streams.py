"""Small streams for tests of the service."""

import numpy as np

from service.samples import Label, Samples


def two_classes(n: int, seed: int = 0, features: int = 4) -> Samples:
    """A noisy, not linearly separable stream with labels "no" and "yes"."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, features))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.2 * random.standard_normal(n)
    labels: list[Label] = ["yes" if value > 0 else "no" for value in score]
    return Samples(X, labels)


def three_classes(n: int, seed: int = 0) -> Samples:
    """Three overlapping clusters with integer labels; the third comes late."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 3, n)
    codes[: n // 3] %= 2
    X = random.standard_normal((n, 3)) + 2.5 * np.eye(3)[codes]
    labels: list[Label] = [int(code) * 10 for code in codes]
    return Samples(X, labels)


def part(samples: Samples, start: int, stop: int) -> Samples:
    """A run of samples."""
    return Samples(samples.X[start:stop], samples.labels[start:stop])


def body(samples: Samples) -> dict[str, object]:
    """The JSON body that posts them."""
    return {"x": samples.X.tolist(), "y": samples.labels}

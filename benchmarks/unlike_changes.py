"""Streams for `benchmarks.unlike` that change: units, concepts, classes, noise."""

from collections.abc import Callable

import numpy as np

from benchmarks.unlike_streams import Random, Unlike, flipped, sides


def jumping_units(random: Random) -> Unlike:
    """Twice every feature gets another unit, two to ten times larger or smaller."""
    X = random.normal(size=(6000, 6))
    y = flipped(random, sides(random, np.c_[X, X[:, :1] * X[:, 1:2]]), 0.05)
    X += 3.0 * random.normal(size=6)
    for start in (2000, 4000):
        factor = random.uniform(2.0, 10.0, 6)
        X[start:] *= np.where(random.random(6) < 0.5, factor, 1.0 / factor)
    return Unlike(X, y)


def long_regimes(random: Random) -> Unlike:
    """Three classes, each for hundreds of samples, which features tell only now and then."""
    n, centres = 8000, 0.5 * random.normal(size=(3, 6))
    lengths = random.integers(100, 1500, 80)
    y = np.repeat(np.cumsum(random.integers(1, 3, 80)) % 3, lengths)[:n]
    return Unlike(centres[y] + random.normal(size=(n, 6)), y)


def changing_noise(random: Random) -> Unlike:
    """A plane that turns slowly, and noise that one feature makes larger."""
    n = 8000
    X = random.normal(size=(n, 6))
    start, end = random.normal(size=(2, 6))
    share = np.linspace(0.0, 1.0, n)[:, None]
    value = (X * ((1.0 - share) * start + share * end)).sum(axis=1) + np.sin(2.0 * X[:, 1])
    return Unlike(X, value + 0.2 * np.exp(1.2 * X[:, 0]) * random.normal(size=n), True)


def walking_classes(random: Random) -> Unlike:
    """Fifty classes of unequal size, whose centres walk."""
    n, share = 8000, 1.0 / np.arange(1, 51)
    y = random.choice(50, n, p=share / share.sum())
    walk = np.cumsum(0.02 * random.normal(size=(n // 10, 50, 8)), axis=0)
    centres = 2.0 * random.normal(size=(50, 8))[y] + walk[np.arange(n) // 10, y]
    return Unlike(centres + random.normal(size=(n, 8)), y)


def sessions(random: Random) -> Unlike:
    """Six concepts in sessions of 50 to 250 samples, and a feature that hints at which it is."""
    n = 9000
    X = random.normal(size=(n, 6))
    lengths = random.integers(50, 250, 200)
    concept = np.repeat(random.integers(0, 6, 200), lengths)[:n]
    concepts = [sides(random, np.c_[X[:, :5], X[:, 0] * X[:, 1]]) for _ in range(6)]
    X[:, 5] = random.permutation(6)[concept] + 0.7 * X[:, 5]
    return Unlike(X, flipped(random, np.choose(concept, concepts), 0.05))


def late_and_dying(random: Random) -> Unlike:
    """What matters most is measured from a third of the stream on; another stays at its last."""
    n = 6000
    X = random.normal(size=(n, 6))
    y = sides(random, X * np.array([3.0, 2.0, 1.0, 1.0, 1.0, 1.0]))
    X[:2000, 0] = np.nan
    X[4000:, 1] = X[4000, 1]
    return Unlike(X, flipped(random, y, 0.05))


def rare_and_moving(random: Random) -> Unlike:
    """One sample in a hundred is of the second class, around a point that wanders."""
    n = 10_000
    X = random.normal(size=(n, 6))
    y = (random.random(n) < 0.01).astype(np.int64)
    angle = np.linspace(0.0, np.pi, n)
    path = 2.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X[y == 1] *= 0.5
    X[y == 1, :2] += path[y == 1]
    return Unlike(X, y, unbalanced=True)


def trending(random: Random) -> Unlike:
    """All features rise by ten deviations, and the border between the classes with them."""
    n = 6000
    X = random.normal(size=(n, 5))
    y = flipped(random, sides(random, X), 0.05)
    return Unlike(X + np.linspace(0.0, 10.0, n)[:, None] * random.normal(size=5), y)


STREAMS: dict[str, Callable[[Random], Unlike]] = {
    made.__name__: made
    for made in (
        jumping_units,
        long_regimes,
        changing_noise,
        walking_classes,
        sessions,
        late_and_dying,
        rare_and_moving,
        trending,
    )
}

"""Streams for `benchmarks.unlike`, each with a trait that others lack."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Random: TypeAlias = np.random.Generator


class Unlike(NamedTuple):
    """rows: (n, d) float64, or dicts of numbers and texts. y: labels from 0, or targets.

    unbalanced: whether accuracy says little.
    """

    rows: Any
    y: NDArray[Any]
    regression: bool = False
    unbalanced: bool = False


def sides(random: Random, X: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return on which side of a random plane each row is, 0 or 1."""
    return (X @ random.normal(size=X.shape[1]) > 0.0).astype(np.int64)


def flipped(random: Random, y: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return the labels 0 and 1, a share of them wrong."""
    return np.where(random.random(len(y)) < share, 1 - y, y)


def rare(random: Random) -> Unlike:
    """Return one sample in 500 is of the second class, around a point."""
    X = random.normal(size=(10_000, 8))
    y = (random.random(10_000) < 0.002).astype(np.int64)
    X[y == 1] = 1.5 + 0.6 * X[y == 1]
    return Unlike(X, y, unbalanced=True)


def wrong_labels(random: Random) -> Unlike:
    """Three labels in ten are wrong."""
    X = random.normal(size=(6000, 10))
    return Unlike(X, flipped(random, sides(random, X), 0.3))


def many_words(random: Random) -> Unlike:
    """Two columns of texts, of 400 and 40 values with an effect each, and two numbers."""
    n, effects = 6000, (random.normal(size=400), random.normal(size=40))
    codes = [random.integers(0, len(effect), n) for effect in effects]
    X = random.normal(size=(n, 2))
    value = sum(effect[code] for effect, code in zip(effects, codes, strict=True)) + X[:, 0]
    rows = [
        {"user": f"u{a}", "place": f"p{b}", "u": u, "v": v}
        for a, b, (u, v) in zip(*(code.tolist() for code in codes), X.tolist(), strict=True)
    ]
    return Unlike(rows, (value + 0.3 * random.normal(size=n) > 0.0).astype(np.int64))


def seasons(random: Random) -> Unlike:
    """Return a load with a day, a week, a trend and weather; the hour and the day are given."""
    n = 6000
    time = np.arange(n)
    hour, day = time % 24, time // 24 % 7
    warmth = 10.0 * np.sin(2.0 * np.pi * time / 8760) + 3.0 * random.normal(size=n)
    load = 50.0 + 20.0 * np.sin(2.0 * np.pi * (hour - 6) / 24) - 15.0 * (day >= 5)
    load += 0.3 * np.square(warmth) / 10.0 + 0.003 * time + 3.0 * random.normal(size=n)
    return Unlike(np.stack([hour, day, warmth], axis=1).astype(np.float64), load, True)


def heavy_tails(random: Random) -> Unlike:
    """Features have Cauchy's distribution."""
    X = random.standard_cauchy(size=(6000, 5))
    return Unlike(X, flipped(random, sides(random, np.arctan(X)), 0.05))


def heavy_targets(random: Random) -> Unlike:
    """Targets have errors of Student's distribution with 1.5 degrees of freedom."""
    X = random.normal(size=(6000, 5))
    y = 3.0 * X[:, 0] + np.square(X[:, 1]) + random.standard_t(1.5, 6000)
    return Unlike(X, y, True)


def other_units(random: Random) -> Unlike:
    """Midway every feature gets another unit and another zero."""
    X = random.normal(size=(6000, 6))
    y = flipped(random, sides(random, np.c_[X, X[:, :1] * X[:, 1:2]]), 0.05)
    X[3000:] = X[3000:] * 10.0 ** random.uniform(-3.0, 3.0, 6) + 10.0 * random.normal(size=6)
    return Unlike(X, y)


def recurring(random: Random) -> Unlike:
    """Three concepts, a thousand samples each, three times."""
    X = random.normal(size=(9000, 5))
    concepts = [sides(random, np.c_[X, X[:, 0] * X[:, 1]]) for _ in range(3)]
    y = np.choose(np.arange(9000) // 1000 % 3, concepts)
    return Unlike(X, flipped(random, y, 0.05))


def new_classes(random: Random) -> Unlike:
    """Forty classes, another one each 150 samples."""
    n, centres = 8000, 1.6 * random.normal(size=(40, 10))
    y = np.minimum((random.random(n) * (1 + np.arange(n) // 150)).astype(np.int64), 39)
    return Unlike(centres[y] + random.normal(size=(n, 10)), y)


def useless(random: Random) -> Unlike:
    """Sixty features: constant ones, copies, noise, and four that matter."""
    X = random.normal(size=(5000, 60))
    X[:, 20:35], X[:, 35:40] = 7.0, X[:, :5]
    y = sides(random, np.c_[X[:, :4], X[:, 0] * X[:, 1]])
    return Unlike(X, flipped(random, y, 0.05))


def wide_sparse(random: Random) -> Unlike:
    """Texts as counts of 20,000 words, of which a row has thirty and a few tell the class."""
    weight = random.normal(size=20_000) * (random.random(20_000) < 0.1)
    share = 1.0 / np.arange(1, 20_001)
    found = random.choice(20_000, size=(4000, 30), p=share / share.sum())
    rows = [{f"w{word}": 1.0 for word in set(row)} for row in found.tolist()]
    value = weight[found].sum(axis=1)
    return Unlike(rows, (value > np.median(value)).astype(np.int64))


def tiny(random: Random) -> Unlike:
    """Two hundred samples of three classes."""
    centres, y = 1.5 * random.normal(size=(3, 4)), random.integers(0, 3, 200)
    return Unlike(centres[y] + random.normal(size=(200, 4)), y)


def stationary(random: Random) -> Unlike:
    """Forty thousand samples of a noisy plane, which never moves."""
    X = random.normal(size=(40_000, 8))
    return Unlike(X, flipped(random, sides(random, X), 0.1))


def parity(random: Random) -> Unlike:
    """Return the parity of three switches among ten."""
    X = random.integers(0, 2, size=(6000, 10)).astype(np.float64)
    return Unlike(X, flipped(random, X[:, :3].sum(axis=1).astype(np.int64) % 2, 0.05))


def missing(random: Random) -> Unlike:
    """Three numbers in ten are missing."""
    X = random.normal(size=(6000, 8))
    y = flipped(random, sides(random, X), 0.05)
    X[random.random(X.shape) < 0.3] = np.nan
    return Unlike(X, y)


def rules(random: Random) -> Unlike:
    """Return a tree of depth five, whose edges are parallel to the axes."""
    X = random.random((8000, 6))
    place = np.zeros(8000, np.int64)
    for _ in range(5):
        feature, edge = random.integers(0, 6, 32), random.uniform(0.2, 0.8, 32)
        at = place % 32
        place = 2 * place + (X[np.arange(8000), feature[at]] > edge[at])
    return Unlike(X, random.integers(0, 2, 32)[place % 32])


STREAMS: dict[str, Callable[[Random], Unlike]] = {
    made.__name__: made
    for made in (
        rare, wrong_labels, many_words, seasons, heavy_tails, heavy_targets, other_units,
        recurring, new_classes, useless, wide_sparse, tiny, stationary, parity, missing,
        rules,
    )
}  # fmt: skip

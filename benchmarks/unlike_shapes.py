"""Streams for `benchmarks.unlike`: borders and targets of many shapes, long rows, short streams."""

from collections.abc import Callable

import numpy as np

from benchmarks.unlike_streams import Random, Unlike, flipped, sides


def boxes(random: Random) -> Unlike:
    """Six boxes in three of eight features, parallel to the axes."""
    X = random.random((8000, 8))
    inside = np.zeros(8000, np.bool_)
    for low in random.uniform(0.0, 0.6, (6, 3)):
        inside |= ((X[:, :3] > low) & (X[:, :3] < low + 0.4)).all(axis=1)
    return Unlike(X, flipped(random, inside.astype(np.int64), 0.05))


def quadrants(random: Random) -> Unlike:
    """Return the sign of the product of two numbers among ten, and of a third one."""
    X = random.normal(size=(8000, 10))
    y = (X[:, 0] * X[:, 1] * X[:, 2] > 0.0).astype(np.int64)
    return Unlike(X, flipped(random, y, 0.05))


def spreads(random: Random) -> Unlike:
    """Two classes of the same mean, whose twenty features spread differently."""
    y = random.integers(0, 2, 6000)
    spread = np.exp(0.3 * random.normal(size=(2, 20)))
    return Unlike(random.normal(size=(6000, 20)) * spread[y], y)


def bits(random: Random) -> Unlike:
    """Five classes of eighty bits, each independent of the others."""
    y, share = random.integers(0, 5, 6000), random.beta(2.0, 2.0, (5, 80))
    share = 0.75 * share.mean(axis=0) + 0.25 * share
    return Unlike((random.random((6000, 80)) < share[y]).astype(np.float64), y)


def long_rows(random: Random) -> Unlike:
    """Two hundred features, of which three matter, two of them together."""
    X = random.normal(size=(6000, 200))
    y = (X[:, 0] + X[:, 1] + 1.5 * X[:, 0] * X[:, 2] > 0.0).astype(np.int64)
    return Unlike(X, flipped(random, y, 0.05))


def dense_plane(random: Random) -> Unlike:
    """A plane in 150 features, all of which matter a little."""
    X = random.normal(size=(6000, 150)) @ (0.3 * random.normal(size=(150, 150)) + np.eye(150))
    return Unlike(X, flipped(random, sides(random, X), 0.05))


def coded(random: Random) -> Unlike:
    """Three columns of integers that are codes: 12, 30 and 60 of them, each with an effect."""
    sizes = (12, 30, 60)
    codes = [random.integers(0, size, 8000) for size in sizes]
    value = sum(random.normal(size=size)[code] for size, code in zip(sizes, codes, strict=True))
    value = value + 0.3 * random.normal(size=8000)
    return Unlike(np.stack(codes, axis=1).astype(np.float64), (value > 0.0).astype(np.int64))


def coded_targets(random: Random) -> Unlike:
    """Targets of such integers, and of a number."""
    sizes = (12, 30, 60)
    codes = [random.integers(0, size, 8000) for size in sizes]
    x = random.normal(size=8000)
    y = sum(random.normal(size=size)[code] for size, code in zip(sizes, codes, strict=True)) + x
    X = np.column_stack([*codes, x])
    return Unlike(X, y + 0.3 * random.normal(size=8000), True)


def mostly_missing(random: Random) -> Unlike:
    """Four numbers in five are missing, more often where they are large."""
    X = random.normal(size=(8000, 12))
    y = sides(random, X)
    X[random.random(X.shape) < 0.8 + 0.15 * np.sign(X)] = np.nan
    return Unlike(X, flipped(random, y, 0.05))


def one_in_a_hundred(random: Random) -> Unlike:
    """One sample in a hundred is on the far side of a plane."""
    X = random.normal(size=(12_000, 6))
    value = X @ random.normal(size=6) + 0.2 * random.normal(size=12_000)
    return Unlike(X, (value > np.quantile(value, 0.99)).astype(np.int64), unbalanced=True)


def swinging(random: Random) -> Unlike:
    """A border that swings to and fro, once in 2,000 samples."""
    n = 8000
    X = random.normal(size=(n, 4))
    angle = 1.2 * np.sin(2.0 * np.pi * np.arange(n) / 2000)
    y = (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0.0).astype(np.int64)
    return Unlike(X, flipped(random, y, 0.05))


def come_and_go(random: Random) -> Unlike:
    """Twelve classes, of which four are there at a time, each of two clusters."""
    n = 8000
    centres = 1.5 * random.normal(size=(12, 2, 8))
    y = (np.arange(n) // 700 + random.integers(0, 4, n)) % 12
    return Unlike(centres[y, random.integers(0, 2, n)] + random.normal(size=(n, 8)), y)


def walking_rows(random: Random) -> Unlike:
    """Features are slow walks, and the label is of a curve in them."""
    X = np.zeros((8000, 5))
    for i in range(1, 8000):
        X[i] = 0.98 * X[i - 1] + 0.2 * random.normal(size=5)
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] > 0.0).astype(np.int64)
    return Unlike(X, flipped(random, y, 0.1))


def few_hundred(random: Random) -> Unlike:
    """Five hundred samples of fifteen features, and a plane."""
    X = random.normal(size=(500, 15))
    return Unlike(X, flipped(random, sides(random, X), 0.05))


def few_targets(random: Random) -> Unlike:
    """Three hundred targets, linear but for one curve."""
    X = random.normal(size=(300, 8))
    y = X @ random.normal(size=8) + np.sin(2.0 * X[:, 0]) + 0.3 * random.normal(size=300)
    return Unlike(X, y, True)


def high_level(random: Random) -> Unlike:
    """Targets of a few units around a thousand million."""
    X = random.normal(size=(6000, 6))
    y = X @ random.normal(size=6) + X[:, 0] * X[:, 1] + 0.3 * random.normal(size=6000)
    return Unlike(X, 1e9 + y, True)


def levels(random: Random) -> Unlike:
    """Targets whose level jumps each 1,500 samples by some deviations."""
    X = random.normal(size=(9000, 6))
    level = 5.0 * np.cumsum(random.normal(size=6))[np.arange(9000) // 1500]
    y = X @ random.normal(size=6) + np.abs(X[:, 0]) + level
    return Unlike(X, y + 0.3 * random.normal(size=9000), True)


def products(random: Random) -> Unlike:
    """Targets are products and ratios of features with long tails."""
    X = np.exp(0.7 * random.normal(size=(8000, 5)))
    y = X[:, 0] * X[:, 1] + X[:, 2] / X[:, 3]
    return Unlike(X, y * np.exp(0.1 * random.normal(size=8000)), True)


def stairs(random: Random) -> Unlike:
    """Targets that jump where one of three features, among eight, passes a step."""
    X = random.random((8000, 8))
    stairs = [np.floor(X[:, j] * 6).astype(np.int64) for j in range(3)]
    y = sum(random.normal(size=6)[stair] for stair in stairs)
    y = y + random.normal(size=(6, 6))[stairs[0], stairs[1]]
    return Unlike(X, y + 0.2 * random.normal(size=8000), True)


def outlying_targets(random: Random) -> Unlike:
    """One target in fifty is wrong by a hundred deviations."""
    X = random.normal(size=(6000, 6))
    y = X @ random.normal(size=6) + np.sin(3.0 * X[:, 0]) + 0.2 * random.normal(size=6000)
    wrong = random.random(6000) < 0.02
    return Unlike(X, y + 200.0 * wrong * random.normal(size=6000), True)


STREAMS: dict[str, Callable[[Random], Unlike]] = {
    made.__name__: made
    for made in (
        boxes, quadrants, spreads, bits, long_rows, dense_plane, coded, coded_targets,
        mostly_missing, one_in_a_hundred, swinging, come_and_go, walking_rows, few_hundred,
        few_targets, high_level, levels, products, stairs, outlying_targets,
    )
}  # fmt: skip

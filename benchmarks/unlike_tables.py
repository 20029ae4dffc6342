"""Streams for `benchmarks.unlike` of cells of many kinds: texts, amounts, counts, ratios."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.unlike_streams import Random, Unlike, flipped, sides


def mixed_cells(random: Random) -> Unlike:
    """Rows by name of numbers, texts, booleans and a clock, of which a cell in eight is missing."""
    n = 6000
    age, income = random.integers(18, 90, n), np.exp(random.normal(10.0, 1.0, n))
    plan, city = random.integers(0, 5, n), random.integers(0, 30, n)
    member, spent = random.random(n) < 0.3, np.exp(random.normal(3.0, 2.0, n))
    value = (age - 50) / 20 + random.normal(size=5)[plan] + random.normal(size=30)[city]
    value += 2.0 * (member & (income > 20_000)) + 0.5 * np.log(spent) - 2.0
    cells: dict[str, list[Any]] = {
        "age": age.tolist(),
        "income": income.round(2).tolist(),
        "plan": [f"plan {one}" for one in plan],
        "city": [f"city {one}" for one in city],
        "member": member.tolist(),
        "spent": spent.round(2).tolist(),
        "at": (1_780_000_000 + np.cumsum(random.integers(1, 600, n))).tolist(),
    }
    kept = random.random((n, len(cells))) > 0.125
    rows = [
        {name: cells[name][i] for name, there in zip(cells, kept[i], strict=True) if there}
        for i in range(n)
    ]
    return Unlike(rows, (value + 0.5 * random.normal(size=n) > 0.0).astype(np.int64))


def only_texts(random: Random) -> Unlike:
    """Targets of four texts alone, of 4, 20, 60 and 200 values, two of which act together."""
    n, sizes = 6000, (4, 20, 60, 200)
    codes = [random.integers(0, size, n) for size in sizes]
    y = sum(random.normal(size=size)[code] for size, code in zip(sizes, codes, strict=True))
    y = y + 2.0 * random.normal(size=(4, 20))[codes[0], codes[1]]
    names = ("shop", "kind", "place", "user")
    rows = [
        {name: f"{name}{code}" for name, code in zip(names, row, strict=True)}
        for row in zip(*(code.tolist() for code in codes), strict=True)
    ]
    return Unlike(rows, 10.0 * y + 3.0 * random.normal(size=n), True)


def counts(random: Random) -> Unlike:
    """Three classes of counts by Poisson's distribution, half of which are set to zero."""
    n, rates = 6000, np.exp(0.6 * random.normal(size=(3, 12)) + 1.0)
    y = random.integers(0, 3, n)
    X = random.poisson(rates[y]) * (random.random((n, 12)) < 0.5)
    return Unlike(X.astype(np.float64), y)


def counted_targets(random: Random) -> Unlike:
    """Targets are counts by Poisson's distribution, a third of them zero for no reason."""
    n = 6000
    X = random.normal(size=(n, 6))
    rate = np.exp(1.0 + X @ (0.5 * random.normal(size=6)))
    y = random.poisson(np.minimum(rate, 1e4)) * (random.random(n) > 0.33)
    return Unlike(X, y.astype(np.float64), True)


def ratios(random: Random) -> Unlike:
    """Amounts with long tails; what tells the class is the ratio of two of them."""
    X = np.exp(1.5 * random.normal(size=(6000, 6)) + 3.0 * random.normal(size=6))
    logs = np.log(X) - np.log(X).mean(axis=0)
    y = (logs[:, 0] - logs[:, 1] + 0.5 * logs[:, 2] > 0.0).astype(np.int64)
    return Unlike(X, flipped(random, y, 0.05))


def hidden_ball(random: Random) -> Unlike:
    """Forty features, of which three tell whether a row is inside a ball."""
    X = random.normal(size=(8000, 40))
    inside = np.square(X[:, :3]).sum(axis=1) < 2.37
    return Unlike(X, flipped(random, inside.astype(np.int64), 0.05))


def switches(random: Random) -> Unlike:
    """Thirty switches, mostly off, and classes that depend on pairs of them."""
    n = 6000
    X = (random.random((n, 30)) < random.uniform(0.02, 0.5, 30)).astype(np.float64)
    pairs = np.stack([X[:, a] * X[:, b] for a, b in random.integers(0, 30, (15, 2))], axis=1)
    return Unlike(X, flipped(random, sides(random, np.c_[X, 2.0 * pairs] - 0.2), 0.05))


STREAMS: dict[str, Callable[[Random], Unlike]] = {
    made.__name__: made
    for made in (
        mixed_cells,
        only_texts,
        counts,
        counted_targets,
        ratios,
        hidden_ball,
        switches,
    )
}

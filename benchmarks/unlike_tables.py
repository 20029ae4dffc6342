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
        {name: cells[name][i] for name, is_kept in zip(cells, kept[i], strict=True) if is_kept}
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


def preferences(random: Random) -> Unlike:
    """Whether one of 300 users likes one of 100 items, by three traits of each and the country."""
    n, users, items, countries = 8000, 300, 100, 12
    user, item = random.integers(0, users, n), random.integers(0, items, n)
    country = random.integers(0, countries, users)[user]
    value = np.einsum(
        "nt,nt->n", random.normal(size=(users, 3))[user], random.normal(size=(items, 3))[item]
    )
    value += random.normal(size=items)[item] + random.normal(size=(countries, items))[country, item]
    texts = {"user": user, "item": item, "country": country}
    return Unlike(_named(texts), (value + 0.5 * random.normal(size=n) > 0.0).astype(np.int64))


def idle_texts(random: Random) -> Unlike:
    """Three texts of up to 1,000 values that tell nothing, and four numbers that tell the class."""
    n = 6000
    X = random.normal(size=(n, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=n) > 0.0).astype(np.int64)
    texts = {name: random.integers(0, size, n) for name, size in (("a", 5), ("b", 50), ("c", 1000))}
    return Unlike(_named(texts, X), y)


def many_texts(random: Random) -> Unlike:
    """One of 100,000 texts in each row, which tells nothing, beside two that tell the class."""
    n = 20_000
    texts = {
        name: random.integers(0, size, n)
        for name, size in (("id", 100_000), ("shop", 40), ("kind", 10))
    }
    X = random.normal(size=(n, 1))
    value = random.normal(size=(40, 10))[texts["shop"], texts["kind"]] + X[:, 0]
    return Unlike(_named(texts, X), (value + 0.3 * random.normal(size=n) > 0.0).astype(np.int64))


def moving_texts(random: Random) -> Unlike:
    """What two texts of twenty values say together is something else after each 3,000 rows."""
    n, each = 9000, 3000
    a, b = (random.integers(0, 20, n) for _ in range(2))
    meaning = random.normal(size=(n // each, 20, 20))
    value = meaning[np.arange(n) // each, a, b] + 0.3 * random.normal(size=n)
    return Unlike(_named({"a": a, "b": b}), (value > 0.0).astype(np.int64))


def _named(texts: dict[str, Any], X: Any = None) -> list[dict[str, Any]]:
    """Rows of texts, each a column's name and one of (n,) numbers, and of numbers X (n, d)."""
    numbers = np.empty((len(next(iter(texts.values()))), 0)) if X is None else X
    return [
        {name: f"{name} {value}" for name, value in zip(texts, row, strict=True)}
        | {f"x{j}": number for j, number in enumerate(numbers)}
        for row, numbers in zip(
            zip(*(column.tolist() for column in texts.values()), strict=True),
            numbers.tolist(),
            strict=True,
        )
    ]


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
        mixed_cells, only_texts, preferences, idle_texts, many_texts, moving_texts, counts,
        counted_targets, ratios, hidden_ball, switches,
    )
}  # fmt: skip

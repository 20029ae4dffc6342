"""The rule for changes of units alone: where it errs, and how soon it sees what is there.

    python -m benchmarks.units [--data FOLDER]

Columns whose moments begin again because of the rule, in streams whose units stay: those of
`benchmarks.unlike`, columns in phases, and with FOLDER the papers' sets. Then columns that are
multiplied by a factor after 2,000 of 4,000 values: how many begin again within 600, and the median
delay. Values come in blocks of 8.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import unlike_changes, unlike_shapes, unlike_streams
from benchmarks.unlike_streams import Random
from wolfstream.solver.prepare.scale import COMPRESSED, no_moments, standardise
from wolfstream.solver.prepare.units import no_differences

BLOCK, N, CHANGE, SOON = 8, 8000, 2000, 600
FACTORS = (1.5, 2.0, 3.0, 5.0, 10.0, 1000.0, 0.5, 0.2, 0.1, 0.001)
# Streams of `benchmarks.unlike` whose units do change.
_CHANGING = ("jumping_units", "other_units")
# Of a real set.
_MOST_ROWS, _MOST_COLUMNS = 20_000, 40
Rows = NDArray[np.float64]


def beginnings(X: Rows, *, rule: bool) -> list[tuple[int, int]]:
    """Return after how many rows which column began again."""
    moments = no_moments(X.shape[1])
    differences = no_differences(X.shape[1]) if rule else None
    before, begun = moments.weight.copy(), list[tuple[int, int]]()
    for start in range(0, len(X), BLOCK):
        standardise(moments, X[start : start + BLOCK], COMPRESSED, differences)
        columns = np.flatnonzero(moments.weight < before)
        begun += [(start + BLOCK, int(j)) for j in columns]
        before = moments.weight.copy()
    return begun


def alternating(random: Random, length: int) -> Rows:
    """A spread that is one or three times as large."""
    spread = np.repeat(random.choice([1.0, 3.0], N // length + 1), length)[:N]
    return np.asarray(spread[:, None] * random.normal(size=(N, 3)))


def by_class(random: Random) -> Rows:
    """Rows come class by class, each of another level and spread."""
    code = np.repeat(random.integers(0, 5, N), random.integers(50, 300, N))[:N]
    level, spread = random.normal(0.0, 3.0, (5, 3)), np.exp(random.normal(size=(5, 3)))
    return random.normal(level[code], spread[code])


def by_field(random: Random, length: int) -> Rows:
    """One field of a chequered board after another, and each fifth time all of them."""
    start = np.arange(N) // length
    field = random.integers(0, 8, (N // length + 1, 2))[start]
    inside = field + random.uniform(size=(N, 2))
    return np.where((start % 5 == 4)[:, None], random.uniform(0.0, 8.0, (N, 2)), inside)


def gases(random: Random) -> Rows:
    """Sixteen sensors of six gases at a concentration, one after another, which drift."""
    code = np.repeat(random.integers(0, 6, N), random.integers(20, 200, N))[:N]
    doses = np.exp(np.repeat(random.normal(size=N), random.integers(5, 80, N))[:N])
    answer = np.exp(0.7 * random.normal(size=(6, 16)))[code] * doses[:, None] ** 0.6
    drift = 1.0 + 0.4 * np.linspace(0.0, 1.0, N)[:, None] * random.normal(size=16)
    X = drift * (1.0 + answer) * np.exp(0.08 * random.standard_t(3, (N, 16)))
    return np.asarray(np.minimum(X, 60.0) * 10.0 ** random.uniform(-1.0, 4.0, 16))


def bursts(random: Random) -> Rows:
    """Ten times as large for a while, again and again."""
    loud = np.sin(np.arange(N) / 200.0) > 0.9
    return np.asarray(random.normal(size=(N, 2)) * (1.0 + 9.0 * loud)[:, None])


PHASES: dict[str, Callable[[Random], Rows]] = {
    "spread of 1 or 3, 300 rows each": lambda random: alternating(random, 300),
    "spread of 1 or 3, 2,000 rows each": lambda random: alternating(random, 2000),
    "class by class": by_class,
    "board, 250 rows a field": lambda random: by_field(random, 250),
    "board, 1,000 rows a field": lambda random: by_field(random, 1000),
    "gases": gases,
    "bursts": bursts,
    "walks of logarithms": lambda random: np.exp(
        np.cumsum(0.02 * random.normal(size=(N, 3)), axis=0)
    ),
}


def steady(data: Path | None) -> Iterator[tuple[str, Rows]]:
    """Yield streams whose units stay."""
    for name in [] if data is None else sorted(data.glob("*.npz")):
        with np.load(name) as arrays:
            if "X" in arrays:
                yield name.stem, np.asarray(arrays["X"][:_MOST_ROWS, :_MOST_COLUMNS], np.float64)
    for streams in (unlike_streams.STREAMS, unlike_changes.STREAMS, unlike_shapes.STREAMS):
        for title, made in streams.items():
            rows = made(np.random.default_rng(1)).rows
            if title not in _CHANGING and isinstance(rows, np.ndarray):
                yield title, np.asarray(rows, np.float64)[:, :_MOST_COLUMNS]
    for title, phases in PHASES.items():
        yield title, phases(np.random.default_rng(1))


def calm(random: Random) -> Rows:
    """Columns of many kinds, (4000, 9)."""
    n = 2 * CHANGE
    walk = np.zeros(n)
    for i in range(1, n):
        walk[i] = 0.9 * walk[i - 1] + random.normal()
    day = 15.0 + 5.0 * np.sin(2.0 * np.pi * np.arange(n) / 200) + random.normal(size=n)
    normal = random.normal(size=(n, 3)) + np.array([0.0, 3.0, 20.0])
    others = [np.exp(random.normal(size=n)), random.uniform(size=n), random.standard_t(3, n)]
    return np.column_stack([normal, *others, random.poisson(4, n), 20.0 + walk, day])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    data = parser.parse_args().data
    count, streams, total = 0, 0, 0
    print("| stream whose units stay | columns | new beginnings |\n|---|---:|---:|")
    for title, X in steady(data):
        more = len(beginnings(X, rule=True)) - len(beginnings(X, rule=False))
        count, streams, total = count + 1, streams + (more > 0), total + more
        if more:
            print(f"| {title} | {X.shape[1]} | {more} |", flush=True)
    print(f"| in all, {streams} of {count} streams | | {total} |")
    print("\n| factor | columns that begin again | median delay | without the rule |")
    print("|---:|---:|---:|---:|")
    for factor in FACTORS:
        seen, delays, without = 0, list[int](), 0
        for seed in range(3):
            X = calm(np.random.default_rng(seed))
            X[CHANGE:] *= factor
            for rule in (True, False):
                first = dict[int, int]()
                for row, j in beginnings(X[: CHANGE + SOON], rule=rule):
                    if row > CHANGE:
                        first.setdefault(j, row - CHANGE)
                if rule:
                    delays += first.values()
                else:
                    without += len(first)
            seen += X.shape[1]
        delay = f"{np.median(delays):.0f}" if delays else ""
        print(f"| {factor:g} | {len(delays)} of {seen} | {delay} | {without} |", flush=True)


if __name__ == "__main__":
    main()

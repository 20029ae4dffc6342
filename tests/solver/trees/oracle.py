"""A tree's splits, searched for by brute force from the formulas of `growing`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.trees.growing import (
    CATEGORY_RIDGE,
    CATEGORY_SMOOTH,
    LEAST_ROWS,
    RIDGE,
    Tree,
)


def gain(g: NDArray[Any], w: NDArray[Any], right: NDArray[np.bool_], ridge: float) -> float:
    """How much less the squares of gradients (n, c) are around means of both sides; -1 if small."""
    parts = [(g[side].sum(axis=0), w[side].sum()) for side in (right, ~right)]
    if min(weight for _, weight in parts) < LEAST_ROWS:
        return -1.0
    whole = float(np.square(g.sum(axis=0)).sum() / (w.sum() + ridge))
    return sum(float(np.square(total).sum() / (weight + ridge)) for total, weight in parts) - whole


def candidates(bins: NDArray[np.uint8], g: NDArray[Any], w: NDArray[Any], category: bool) -> Any:
    """Which bins may go to the right."""
    there = [b for b in np.unique(bins).tolist() if b]
    if category:
        means = {}
        for b in there:
            total = g[bins == b].sum(axis=0)
            means[b] = total / (w[bins == b].sum() + CATEGORY_SMOOTH), total
        spread = sum(np.abs(mean * total) for mean, total in means.values())
        channel = int(np.argmax(spread)) if there else 0
        there.sort(key=lambda b: means[b][0][channel])
    missing = [0] if (bins == 0).any() else []
    for at in range(1, len(there)):
        yield [*there[at:], *missing]
        if missing:
            yield there[at:]
    if missing and there:
        yield missing


def best_split(
    rows: NDArray[np.uint8], categories: NDArray[np.bool_], g: NDArray[Any], w: NDArray[Any]
) -> tuple[float, int, frozenset[int]]:
    """The largest gain, and the column and the bins that go to the right for it."""
    best = (0.0, -1, frozenset[int]())
    for j, category in enumerate(categories):
        ridge = CATEGORY_RIDGE if category else RIDGE
        for right in candidates(rows[:, j], g, w, bool(category)):
            of_split = gain(g, w, np.isin(rows[:, j], right), ridge)
            if of_split > best[0] * (1.0 + 1e-9):
                best = of_split, j, frozenset(right)
    return best


def leaves(tree: Tree, rows: NDArray[np.uint8]) -> NDArray[Any]:
    """The leaf of each row, by the definition of a tree."""
    reached = []
    for bins in rows.tolist():
        q = 0
        while q >= 0:
            q = int(tree.child[q, int(tree.right[q]) >> bins[tree.feature[q]] & 1])
        reached.append(-1 - q)
    return np.array(reached)

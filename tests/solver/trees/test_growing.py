"""Trees split where a search by brute force does."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.solver.trees.oracle import best_split, gain, leaves
from wolfstream.solver.compiled import compiled
from wolfstream.solver.trees.boosting import DEPTH_OF_CLASSES, DEPTH_OF_NUMBERS
from wolfstream.solver.trees.growing import (
    CATEGORY_RIDGE,
    GRADIENT,
    LEAST_ROWS,
    LEAVES,
    NODES,
    RIDGE,
    WEIGHT,
    Tree,
    grow,
    leaf_of,
    tree_work,
)

RANDOM = np.random.default_rng(0)


@compiled
def grow_one(rows, categories, words, order, depth, work, tree):
    """Call `grow`, which only compiled code can call."""
    grow(rows, categories, words, order, depth, work, tree)


def grown(
    rows: NDArray[np.uint8],
    categories: NDArray[np.bool_],
    g: NDArray[Any],
    w: NDArray[Any],
    depth: int = DEPTH_OF_NUMBERS,
) -> tuple[Tree, NDArray[Any]]:
    """A tree, and the leaf of each row as it was grown. g: (n, c) between -1 and 1."""
    words = np.round(g * GRADIENT).astype(np.int64) << 26
    words[:, 0] += np.maximum((w * WEIGHT).astype(np.int64), 1)
    tree = Tree(
        np.zeros(NODES, np.int32), np.zeros(NODES, np.uint64), np.zeros((NODES, 2), np.int8)
    )
    order = np.arange(len(rows), dtype=np.int32)
    work = tree_work(len(rows), rows.shape[1], g.shape[1])
    grow_one(rows, categories, words, order, depth, work, tree)
    leaf = np.full(len(rows), -1)
    for q in range(LEAVES):
        leaf[order[work.begin[q] : work.end[q]]] = q
    return tree, leaf


def bins_on_the_right(tree: Tree, node: int) -> frozenset[int]:
    return frozenset(b for b in range(64) if int(tree.right[node]) >> b & 1)


def problem(seed: int, channels: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_], Any, Any]:
    random = np.random.default_rng(seed)
    n = int(random.integers(60, 400))
    rows = random.integers(0 if seed % 2 else 1, 64, (n, 4)).astype(np.uint8)
    rows[:, 1] = random.integers(1, 3, n)
    categories = np.array([False, False, True, seed % 3 == 0])
    rows[:, 2] = random.integers(0, 6, n)
    g = np.tanh(random.normal(size=(n, channels)) + 0.5 * (rows[:, :1] > 30) - (rows[:, 2:3] == 3))
    w = np.round(random.uniform(0.3, 2.0, n), 2) if seed % 4 == 0 else np.ones(n)
    return rows, categories, np.round(g * GRADIENT) / GRADIENT, np.floor(w * WEIGHT) / WEIGHT


def gain_of(tree: Tree, node: int, rows: Any, categories: Any, g: Any, w: Any) -> float:
    """The gain of a node's split of these rows."""
    j = int(tree.feature[node])
    right = np.isin(rows[:, j], list(bins_on_the_right(tree, node)))
    return gain(g, w, right, CATEGORY_RIDGE if categories[j] else RIDGE)


@pytest.mark.parametrize("most", [DEPTH_OF_NUMBERS, DEPTH_OF_CLASSES])
@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("seed", range(40))
def test_each_split_gains_most_of_all_leaves(seed: int, channels: int, most: int) -> None:
    rows, categories, g, w = problem(seed, channels)
    tree, _ = grown(rows, categories, g, w, most)
    open_leaves = [(0, np.ones(len(rows), np.bool_))]  # how many splits are above, and rows
    for node in range(NODES):
        best = [
            best_split(rows[here], categories, g[here], w[here])[0] if depth < most else 0.0
            for depth, here in open_leaves
        ]
        if not tree.right[node]:
            assert max(best) < 1e-5
            break
        at = int(np.argmax(best))
        depth, here = open_leaves[at]
        of_split = gain_of(tree, node, rows[here], categories, g[here], w[here])
        assert of_split == pytest.approx(best[at], rel=1e-9)
        right = np.isin(rows[:, tree.feature[node]], list(bins_on_the_right(tree, node)))
        open_leaves[at] = depth + 1, here & ~right
        open_leaves.append((depth + 1, here & right))


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_in_the_leaves_that_they_come_to(seed: int) -> None:
    rows, categories, g, w = problem(seed, 1)
    tree, leaf = grown(rows, categories, g, w)
    assert np.array_equal(leaf, leaves(tree, rows))
    assert [leaf_of(*tree, row) for row in rows] == leaf.tolist()


def test_no_row_meets_too_many_splits() -> None:
    rows = np.arange(1, 61, dtype=np.uint8).repeat(20)[:, None]
    values = rows.astype(np.float64)
    g = (-1.0) ** values * 0.8 ** (60.0 - values)  # each split is best at the end
    assert depth_and_leaves(rows, g, DEPTH_OF_NUMBERS) == (DEPTH_OF_NUMBERS, DEPTH_OF_NUMBERS + 1)
    assert depth_and_leaves(rows, g, DEPTH_OF_CLASSES) == (LEAVES - 1, LEAVES)


def depth_and_leaves(rows: NDArray[np.uint8], g: NDArray[Any], most: int) -> tuple[int, int]:
    """The most splits that a row meets in a tree, and how many leaves it has."""
    tree, leaf = grown(rows, np.array([False]), g, np.ones(len(rows)), most)
    depth = np.ones(NODES, np.int64)
    for node, child in enumerate(tree.child.tolist()):
        for later in child:
            if later > 0:
                depth[later] = depth[node] + 1
    return int(depth.max()), len(np.unique(leaf))


def test_leaves_have_enough_weight() -> None:
    rows, categories, g, _ = problem(1, 1)
    w = np.full(len(rows), 0.5)
    _, leaf = grown(rows, categories, g, w)
    assert min(w[leaf == q].sum() for q in np.unique(leaf)) >= LEAST_ROWS


def test_equal_gradients_make_no_split() -> None:
    rows, categories, g, w = problem(3, 1)
    for value in (0.0, 0.5):
        tree, _ = grown(rows, categories, np.full_like(g, value), w)
        assert not tree.right.any()


def test_missing_values_go_to_their_side() -> None:
    n = 400
    rows = RANDOM.integers(1, 3, (n, 1)).astype(np.uint8)
    rows[::4] = 0
    for like in (1, 2):
        g = np.where((rows == 2) | ((rows == 0) & (like == 2)), 0.5, -0.5)
        tree, _ = grown(rows, np.array([False]), g, np.ones(n))
        assert bins_on_the_right(tree, 0) & {0, 1, 2} == ({2, 0} if like == 2 else {2})


def test_missing_values_alone_make_a_split() -> None:
    rows = np.ones((100, 1), np.uint8)
    rows[::2] = 0
    g = np.where(rows == 0, 0.5, -0.5)
    tree, _ = grown(rows, np.array([False]), g, np.ones(100))
    assert bins_on_the_right(tree, 0) & {0, 1} == {0}


def test_new_codes_go_with_the_heavier_side() -> None:
    rows = np.repeat(np.array([1, 2, 3], np.uint8), [200, 50, 50])[:, None]
    g = np.where(rows == 1, -0.5, 0.5)
    tree, _ = grown(rows, np.array([True]), g, np.ones(300))
    right = bins_on_the_right(tree, 0)
    assert right & {1, 2, 3} == {2, 3}
    assert 40 not in right
    assert 0 not in right


@pytest.mark.parametrize("seed", range(60))
def test_values_below_those_of_a_leaf_go_with_its_smallest(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = int(random.integers(2, 30))
    rows = random.integers(first, random.integers(first + 3, 64), (116, 1)).astype(np.uint8)
    rows[random.random(116) < 0.2] = 0
    g = np.where(rows == 0, 0.5, -0.5) + 0.4 * random.random((116, 1))
    w = np.floor(random.uniform(0.3, 2.0, 116) * WEIGHT) / WEIGHT
    tree, _ = grown(rows, np.array([False]), g, w)
    assert len({b in bins_on_the_right(tree, 0) for b in range(1, rows[rows > 0].min() + 1)}) == 1

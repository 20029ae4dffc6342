"""One tree of DEPTH levels on the gradients of rows, level by level.

A node with the rows I is split where this is largest, G = sum of I's gradients, W of weights:

    gain = |G_l|^2 / (W_l + RIDGE) + |G_r|^2 / (W_r + RIDGE) - |G|^2 / (W + RIDGE)

that is the fit of a tree to gradients by least squares (Friedman 2001), |.| over all outputs: they
share one tree. Numbers are split between two bins; those that lack the value go to the better side.
Categories are ordered by their mean gradient and split between two of that order (Fisher 1958; Ke
and others 2017), with more ridge. Bins that no row of the node has go with the heavier side.

Gradients and weights are whole numbers here, both of them in one word, so that a row costs one
addition a column, and that sums are exact: of two children, the sums of the one with more rows are
its parent's without the other's (Ke and others 2017).

A tree is complete: node k has the children 2k + 1 and 2k + 2. One that is not split has no bins
that go to the right.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner
from wolfstream.solver.trees.binning import BINS

DEPTH = 5
NODES, LEAVES = (1 << DEPTH) - 1, 1 << DEPTH
# The mean weight of a row is 1: a leaf has at least as many rows of it.
LEAST_ROWS = 15.0
RIDGE = 1.0
# Of splits of categories, and what their means are drawn to zero by.
CATEGORY_RIDGE, CATEGORY_SMOOTH = 10.0, 10.0
# Rows that words have room for, with gradients of at most GRADIENT and weights of mean WEIGHT.
MOST_ROWS = 1 << 14
GRADIENT, WEIGHT = 1 << 22, 1 << 10
_SHIFT = 26
_WEIGHTS = (1 << _SHIFT) - 1
# Gradients of one row of a thousandth are worth no split.
_LEAST_GAIN = 1e-6 * GRADIENT * GRADIENT

Words = NDArray[np.int64]


class Tree(NamedTuple):
    """feature: (NODES,) column that a node asks for, any if it is not split.

    right: (NODES,) the bins that go to the right, bit b of them bin b; 0 if it is not split.
    """

    feature: NDArray[np.int32]
    right: NDArray[np.uint64]


class Growing(NamedTuple):
    """Reused memory for trees on n rows with c channels.

    order, other: (n,) rows, those of a node one after another; those of the leaves in the end are
    in `other`, as DEPTH is odd. begin: (LEAVES + 1,) where the rows
    of each node of a level begin. sums, former: (LEAVES / 2, d, BINS, c) words of the nodes of a
    level, and of the level before. left, total: (c,). rank, bin: (BINS,). best: (1,) gain.
    """

    order: NDArray[np.int32]
    other: NDArray[np.int32]
    begin: NDArray[np.int64]
    sums: Words
    former: Words
    left: Float64Array
    total: Float64Array
    rank: Float64Array
    bin: NDArray[np.int64]
    best: Float64Array


def room_to_grow(n: int, d: int, channels: int) -> Growing:
    """Return memory for trees on n rows of d columns."""
    return Growing(
        order=np.empty(n, np.int32),
        other=np.empty(n, np.int32),
        begin=np.empty(LEAVES + 1, np.int64),
        sums=np.empty((LEAVES // 2, d, BINS, channels), np.int64),
        former=np.empty((LEAVES // 2, d, BINS, channels), np.int64),
        left=np.empty(channels),
        total=np.empty(channels),
        rank=np.empty(BINS),
        bin=np.empty(BINS, np.int64),
        best=np.empty(1),
    )


@inner
def word_of(gradient: float, weight: float) -> np.int64:
    """Return a word of a gradient between -1 and 1 and a weight; the weight counts as not 0."""
    units = np.int64(weight * WEIGHT)
    word = np.int64(np.rint(gradient * GRADIENT)) << _SHIFT
    return np.int64(word + (units if units else 1))


@inner
def grow(
    rows: NDArray[np.uint8],
    categories: NDArray[np.bool_],
    words: Words,
    chosen: NDArray[np.int32],
    work: Growing,
    tree: Tree,
) -> None:
    """Write a tree of the chosen rows.

    rows: (n, d) bins. words: (n, c) of gradients, those of the first channel with weights.
    """
    order, other, begin = chosen, work.other, work.begin
    begin[0], begin[1] = 0, len(chosen)
    sums, former = work.sums, work.former
    for level in range(DEPTH):
        nodes, first = 1 << level, (1 << level) - 1
        sums, former = former, sums
        for q in range(nodes):
            _sum(rows, words, order, q, level, begin, tree, sums, former)
        for q in range(nodes):
            tree.feature[first + q] = 0
            tree.right[first + q] = np.uint64(0)
            work.best[0] = _LEAST_GAIN
            if _may_split(q, level, work, tree):
                for j in range(len(categories)):
                    _split(sums[q, j], categories[j], j, first + q, work, tree)
        for q in range(nodes - 1, -1, -1):  # backwards, as ranges become two each
            _part(rows, order, other, q, first + q, begin, tree)
        begin[0] = 0
        order, other = other, work.order if level % 2 == 0 else work.other


@inner
def _may_split(q: int, level: int, work: Growing, tree: Tree) -> bool:
    """Return whether a node has rows, and its parent was split."""
    if work.begin[q + 1] == work.begin[q]:
        return False
    return level == 0 or tree.right[(1 << (level - 1)) - 1 + (q >> 1)] != 0


@inner
def _sum(
    rows: NDArray[np.uint8],
    words: Words,
    order: NDArray[np.int32],
    q: int,
    level: int,
    begin: NDArray[np.int64],
    tree: Tree,
    sums: Words,
    former: Words,
) -> None:
    """Write the sums of a node, and those of its sibling if it has fewer rows than that."""
    start, stop = begin[q], begin[q + 1]
    if level > 0:
        twin = q ^ 1
        size, twin_size = stop - start, begin[twin + 1] - begin[twin]
        split = tree.right[(1 << (level - 1)) - 1 + (q >> 1)] != 0
        if not split or size > twin_size or (size == twin_size and q & 1):
            return
    here = sums[q]
    d, c = here.shape[0], here.shape[2]
    for j in range(d):
        for b in range(BINS):
            for k in range(c):
                here[j, b, k] = 0
    if c == 1:
        for i in range(start, stop):
            row = rows[order[i]]
            word = words[order[i], 0]
            for j in range(d):
                here[j, row[j], 0] += word
    else:
        for i in range(start, stop):
            row = rows[order[i]]
            word = words[order[i]]
            for j in range(d):
                b = row[j]
                for k in range(c):
                    here[j, b, k] += word[k]
    if level > 0:
        sibling, parent = sums[q ^ 1], former[q >> 1]
        for j in range(d):
            for b in range(BINS):
                for k in range(c):
                    sibling[j, b, k] = parent[j, b, k] - here[j, b, k]


@inner
def _part(
    rows: NDArray[np.uint8],
    order: NDArray[np.int32],
    other: NDArray[np.int32],
    q: int,
    node: int,
    begin: NDArray[np.int64],
    tree: Tree,
) -> None:
    """Write a node's rows to `other` in the order of its children."""
    start, stop = begin[q], begin[q + 1]
    feature, mask = tree.feature[node], tree.right[node]
    left, right = start, stop - 1
    for i in range(start, stop):
        # Both places are written, as no branch can be foretold here: the next row overwrites one.
        row = order[i]
        to_right = np.int64((mask >> np.uint64(rows[row, feature])) & np.uint64(1))
        other[left] = row
        other[right] = row
        left += 1 - to_right
        right -= to_right
    begin[2 * q + 2], begin[2 * q + 1] = stop, left


@inner
def _split(sums: Words, category: bool, feature: int, node: int, work: Growing, tree: Tree) -> None:
    """Split a node by a column if that is better than its best split so far.

    sums: (BINS, c) of its rows in each bin.
    """
    c, left, total = sums.shape[1], work.left, work.total
    used, weight = 0, 0.0
    for k in range(c):
        total[k] = 0.0
    for b in range(BINS):
        units = sums[b, 0] & _WEIGHTS
        if units:
            weight += units / WEIGHT
            for k in range(c):
                total[k] += sums[b, k] >> _SHIFT
            if b:
                work.bin[used] = b
                used += 1
    ridge = CATEGORY_RIDGE if category else RIDGE
    if category:
        _order_bins(sums, used, work)
    parent = 0.0
    for k in range(c):
        parent += total[k] * total[k]
    parent /= weight + ridge
    missing = (sums[0, 0] & _WEIGHTS) > 0
    for side in range(2 if missing else 1):  # missing values go to the right, then to the left
        w = (sums[0, 0] & _WEIGHTS) / WEIGHT if side else 0.0
        for k in range(c):
            left[k] = sums[0, k] >> _SHIFT if side else 0.0
        # With missing values there is one more border: between them and all others.
        for place in range(used if missing and side == 0 else used - 1):
            b = work.bin[place]
            w += (sums[b, 0] & _WEIGHTS) / WEIGHT
            left_square, right_square = 0.0, 0.0
            for k in range(c):
                left[k] += sums[b, k] >> _SHIFT
                rest = total[k] - left[k]
                left_square += left[k] * left[k]
                right_square += rest * rest
            if w < LEAST_ROWS or weight - w < LEAST_ROWS:
                continue
            gain = left_square / (w + ridge) + right_square / (weight - w + ridge) - parent
            if gain > work.best[0]:
                work.best[0] = gain
                tree.feature[node] = feature
                tree.right[node] = _mask(sums, category, used, place, side, 2.0 * w < weight, work)


@inner
def _order_bins(sums: Words, used: int, work: Growing) -> None:
    """Order the bins of a category by their mean of the gradient that differs most among them."""
    c = sums.shape[1]
    widest, channel = -1.0, 0
    for k in range(c):
        spread = 0.0
        for place in range(used):
            spread += abs(_mean(sums, work.bin[place], k) * (sums[work.bin[place], k] >> _SHIFT))
        if spread > widest:
            widest, channel = spread, k
    for place in range(used):
        b = work.bin[place]
        mean, at = _mean(sums, b, channel), place
        while at > 0 and work.rank[at - 1] > mean:
            work.rank[at], work.bin[at] = work.rank[at - 1], work.bin[at - 1]
            at -= 1
        work.rank[at], work.bin[at] = mean, b


@inner
def _mean(sums: Words, b: int, k: int) -> float:
    weight = (sums[b, 0] & _WEIGHTS) / WEIGHT
    return float((sums[b, k] >> _SHIFT) / (weight + CATEGORY_SMOOTH))


@inner
def _mask(
    sums: Words, category: bool, used: int, place: int, side: int, heavier: bool, work: Growing
) -> np.uint64:
    """Return the bins right of a border: those after work.bin[place].

    side: 1 if missing values go to the left. heavier: whether the right side is.
    """
    right = np.uint64(0)
    if category:
        for later in range(place + 1, used):
            right |= np.uint64(1) << np.uint64(work.bin[later])
        for b in range(1, BINS):
            if heavier and sums[b, 0] & _WEIGHTS == 0:
                right |= np.uint64(1) << np.uint64(b)
    else:
        for b in range(work.bin[place] + 1, BINS):
            right |= np.uint64(1) << np.uint64(b)
    missing = sums[0, 0] & _WEIGHTS > 0
    if side == 0 and (missing or heavier):
        right |= np.uint64(1)
    return right


@inner
def leaf_of(feature: NDArray[np.int32], right: NDArray[np.uint64], bins: NDArray[np.uint8]) -> int:
    """Return the leaf that a row with these bins (d,) comes to."""
    q = 0
    for _ in range(DEPTH):
        q = 2 * q + 1 + int((right[q] >> np.uint64(bins[feature[q]])) & np.uint64(1))
    return q - NODES


@compiled
def grow_one(
    rows: NDArray[np.uint8],
    categories: NDArray[np.bool_],
    words: Words,
    chosen: NDArray[np.int32],
    work: Growing,
    tree: Tree,
) -> None:
    """As of `grow`, for callers from Python."""
    grow(rows, categories, words, chosen, work, tree)

"""One tree on the gradients of rows, grown leaf by leaf: the split that gains most comes first.

A leaf with the rows I is split where this is largest, G = sum of I's gradients, W of weights:

    gain = |G_l|^2 / (W_l + RIDGE) + |G_r|^2 / (W_r + RIDGE) - |G|^2 / (W + RIDGE)

that is the fit of a tree to gradients by least squares (Friedman 2001), |.| over all outputs: they
share one tree. Numbers are split between two bins; those that lack the value go to the better side.
Categories are ordered by their mean gradient and split between two of that order (Fisher 1958; Ke
and others 2017), with more ridge. Bins that no row of the leaf has go with the heavier side.

Gradients and weights are whole numbers here, both of them in one word, so that a row costs one
addition a column, and that sums are exact: of two new leaves, the sums of the one with more rows
are those of the leaf that was split without the other's (Ke and others 2017).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner
from wolfstream.solver.trees.binning import BINS

LEAVES = 32
NODES = LEAVES - 1
# How many splits a row meets at most.
DEPTH = 8
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
    """A node is a split. Rows begin at node 0; node i leads to later nodes, or to leaves.

    feature: (NODES,) the column that a node asks for.
    right: (NODES,) the bins that go to the right, bit b of them bin b.
    child: (NODES, 2) the node to the left and to the right; ~q where that is leaf q.
    """

    feature: NDArray[np.int32]
    right: NDArray[np.uint64]
    child: NDArray[np.int8]


class Growing(NamedTuple):
    """Reused memory for trees on n rows of d columns, with c channels.

    other: (n,) rows, while they are parted.
    begin, end: (LEAVES,) where the rows of each leaf stand among those that a tree is grown on.
    above: (LEAVES, 3) of each leaf the node that leads to it, the side, and how many do.
    sums: (LEAVES, d, BINS, c) words of the rows of each leaf.
    gain, feature, right: (LEAVES,) the best split of each leaf; none gains _LEAST_GAIN or less.
    left, total: (c,). rank, bin: (BINS,).
    """

    other: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    above: NDArray[np.int64]
    sums: Words
    gain: Float64Array
    feature: NDArray[np.int32]
    right: NDArray[np.uint64]
    left: Float64Array
    total: Float64Array
    rank: Float64Array
    bin: NDArray[np.int64]


def new_tree() -> Tree:
    """Return room for a tree."""
    return Tree(
        np.zeros(NODES, np.int32), np.zeros(NODES, np.uint64), np.zeros((NODES, 2), np.int8)
    )


def room_to_grow(n: int, d: int, channels: int) -> Growing:
    """Return memory for trees on n rows of d columns."""
    return Growing(
        other=np.empty(n, np.int32),
        begin=np.empty(LEAVES, np.int64),
        end=np.empty(LEAVES, np.int64),
        above=np.empty((LEAVES, 3), np.int64),
        sums=np.empty((LEAVES, d, BINS, channels), np.int64),
        gain=np.empty(LEAVES),
        feature=np.empty(LEAVES, np.int32),
        right=np.empty(LEAVES, np.uint64),
        left=np.empty(channels),
        total=np.empty(channels),
        rank=np.empty(BINS),
        bin=np.empty(BINS, np.int64),
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
    order: NDArray[np.int32],
    work: Growing,
    tree: Tree,
) -> None:
    """Write a tree of some rows.

    rows: (n, d) bins. words: (n, c) of gradients, those of the first channel with weights. order:
    the rows that the tree is grown on; in the end those of a leaf stand one after another.
    """
    begin, end, above = work.begin, work.end, work.above
    for node in range(NODES):
        tree.feature[node], tree.right[node] = 0, np.uint64(0)
        tree.child[node, 0] = tree.child[node, 1] = ~0
    for q in range(LEAVES):
        begin[q] = end[q] = 0
    end[0] = len(order)
    above[0, 2] = 0
    _sum(rows, words, order[: end[0]], work.sums[0])
    _find_split(categories, 0, work)
    for node in range(NODES):
        q = _best_leaf(node + 1, work)
        if work.gain[q] <= _LEAST_GAIN:
            return
        new = node + 1
        tree.feature[node], tree.right[node] = work.feature[q], work.right[q]
        tree.child[node, 0], tree.child[node, 1] = ~q, ~new
        if node > 0:
            tree.child[above[q, 0], above[q, 1]] = node
        depth = above[q, 2] + 1
        above[q, 0], above[q, 1], above[q, 2] = node, 0, depth
        above[new, 0], above[new, 1], above[new, 2] = node, 1, depth
        stop = end[q]
        end[q] = begin[new] = _part(rows, order, work.other, begin[q], stop, tree, node)
        end[new] = stop
        if new + 1 == LEAVES:
            return
        work.gain[q] = work.gain[new] = _LEAST_GAIN
        if depth < DEPTH:
            _sum_both(rows, words, order, q, new, work)
            _find_split(categories, q, work)
            _find_split(categories, new, work)


@inner
def _best_leaf(leaves: int, work: Growing) -> int:
    """Return the first leaf whose split gains most."""
    best = 0
    for q in range(1, leaves):
        if work.gain[q] > work.gain[best]:
            best = q
    return best


@inner
def _find_split(categories: NDArray[np.bool_], q: int, work: Growing) -> None:
    work.gain[q] = _LEAST_GAIN
    for j in range(len(categories)):
        _split(work.sums[q, j], categories[j], j, q, work)


@inner
def _sum(rows: NDArray[np.uint8], words: Words, order: NDArray[np.int32], sums: Words) -> None:
    """Write the sums (d, BINS, c) of some rows."""
    d, c = sums.shape[0], sums.shape[2]
    for j in range(d):
        for b in range(BINS):
            for k in range(c):
                sums[j, b, k] = 0
    if c == 1:
        for i in range(len(order)):
            row = rows[order[i]]
            word = words[order[i], 0]
            for j in range(d):
                sums[j, row[j], 0] += word
    else:
        for i in range(len(order)):
            row = rows[order[i]]
            word = words[order[i]]
            for j in range(d):
                b = row[j]
                for k in range(c):
                    sums[j, b, k] += word[k]


@inner
def _sum_both(
    rows: NDArray[np.uint8],
    words: Words,
    order: NDArray[np.int32],
    q: int,
    new: int,
    work: Growing,
) -> None:
    """Write the sums of both parts of a leaf, over those of the whole."""
    begin, end, whole, other = work.begin, work.end, work.sums[q], work.sums[new]
    fewer_left = end[q] - begin[q] < end[new] - begin[new]
    fewer = q if fewer_left else new
    _sum(rows, words, order[begin[fewer] : end[fewer]], other)
    d, c = whole.shape[0], whole.shape[2]
    for j in range(d):
        for b in range(BINS):
            for k in range(c):
                rest = whole[j, b, k] - other[j, b, k]
                if fewer_left:
                    whole[j, b, k], other[j, b, k] = other[j, b, k], rest
                else:
                    whole[j, b, k] = rest


@inner
def _part(
    rows: NDArray[np.uint8],
    order: NDArray[np.int32],
    other: NDArray[np.int32],
    start: int,
    stop: int,
    tree: Tree,
    node: int,
) -> int:
    """Order some rows by the side of a split that they go to; return where the right ones begin."""
    feature, mask = tree.feature[node], tree.right[node]
    left, right = start, stop - 1
    for i in range(start, stop):
        # Both places are written, as no branch can be foretold here: the next row overwrites one.
        row = order[i]
        to_right = np.int64((mask >> np.uint64(rows[row, feature])) & np.uint64(1))
        other[left] = row
        other[right] = row
        left += int(1 - to_right)
        right -= int(to_right)
    for i in range(start, stop):
        order[i] = other[i]
    return left


@inner
def _split(sums: Words, category: bool, feature: int, q: int, work: Growing) -> None:
    """Note the best split of a leaf by a column if it is better than those that were noted.

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
            if gain > work.gain[q]:
                work.gain[q], work.feature[q] = gain, feature
                work.right[q] = _mask(sums, category, used, place, side, 2.0 * w < weight, work)


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
def leaf_of(
    feature: NDArray[np.int32],
    right: NDArray[np.uint64],
    child: NDArray[np.int8],
    bins: NDArray[np.uint8],
) -> int:
    """Return the leaf that a row with these bins (d,) comes to."""
    q = 0
    while q >= 0:
        q = int(child[q, int((right[q] >> np.uint64(bins[feature[q]])) & np.uint64(1))])
    return ~q


@compiled
def grow_one(
    rows: NDArray[np.uint8],
    categories: NDArray[np.bool_],
    words: Words,
    order: NDArray[np.int32],
    work: Growing,
    tree: Tree,
) -> None:
    """As of `grow`, for callers from Python."""
    grow(rows, categories, words, order, work, tree)

"""Grows one tree on the gradients of rows, leaf by leaf: the split of the largest gain comes first.

With G the sum of gradients and W that of weights over the rows of a leaf, the gain of a split is

    gain = |G_l|^2 / (W_l + RIDGE) + |G_r|^2 / (W_r + RIDGE) - |G|^2 / (W + RIDGE)

This fits the tree to the gradients by least squares (Friedman 2001); |.| is over all outputs, which
share the tree. Numbers are split between two bins, and missing values go to the better side.
Categories are ordered by their mean gradient and split in this order (Fisher 1958; Ke and others
2017), with a larger ridge. Bins without rows of the leaf go to the heavier side.

The gradient and the weight of a row are integers in one word, so that a row costs one addition for
each column, and sums are exact: of two new leaves, the sums of the one with more rows are those of
the split leaf less those of the other (Ke and others 2017).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner
from wolfstream.solver.trees.binning import BINS

LEAVES = 32
NODES = LEAVES - 1
# The least weight of a leaf; the mean weight of a row is 1.
LEAST_ROWS = 15.0
RIDGE = 1.0
# The ridge of splits of categories, and that of their mean gradients.
CATEGORY_RIDGE, CATEGORY_SMOOTH = 10.0, 10.0
# Sums of MOST_ROWS words do not overflow: gradients are at most GRADIENT, mean weights WEIGHT.
MOST_ROWS = 1 << 14
GRADIENT, WEIGHT = 1 << 22, 1 << 10
_SHIFT = 26
_WEIGHTS = (1 << _SHIFT) - 1
# The gain of one row whose gradient is a thousandth of the largest.
_LEAST_GAIN = 1e-6 * GRADIENT * GRADIENT

Words = NDArray[np.int64]


class Tree(NamedTuple):
    """A binary tree. Node 0 is the root; children have larger numbers, or are leaves."""

    feature: NDArray[np.int32]  # (NODES,) the column that a node splits
    right: NDArray[np.uint64]  # (NODES,) bit b is set if bin b goes to the right
    child: NDArray[np.int8]  # (NODES, 2) left and right child: a node, or ~q of leaf q


class TreeWork(NamedTuple):
    """Reused memory for growing trees on n rows of d columns, with c channels."""

    other: NDArray[np.int32]  # (n,) rows, while they are partitioned
    begin: NDArray[np.int64]  # (LEAVES,) where the rows of a leaf begin among those of the tree
    end: NDArray[np.int64]  # (LEAVES,) where they end
    above: NDArray[np.int64]  # (LEAVES, 3) parent node of a leaf, its side of it, and its depth
    sums: Words  # (LEAVES, d, BINS, c) sums of the words of a leaf's rows
    gain: Float64Array  # (LEAVES,) of the best split of a leaf; _LEAST_GAIN if it has none
    feature: NDArray[np.int32]  # (LEAVES,) column of the best split
    right: NDArray[np.uint64]  # (LEAVES,) bins of the best split that go to the right
    total: Float64Array  # (c,) sums of the gradients of a leaf
    weight: Float64Array  # (BINS,) on the left of each border
    gains: Float64Array  # (BINS,) of each border, before that of the leaf is subtracted
    rights: Float64Array  # (BINS,) squares on the right of each border
    rank: Float64Array  # (BINS,)
    bin: NDArray[np.int64]  # (BINS,)


def tree_work(n: int, d: int, channels: int) -> TreeWork:
    """Return reused memory for trees on n rows of d columns."""
    return TreeWork(
        other=np.empty(n, np.int32),
        begin=np.empty(LEAVES, np.int64),
        end=np.empty(LEAVES, np.int64),
        above=np.empty((LEAVES, 3), np.int64),
        sums=np.empty((LEAVES, d, BINS, channels), np.int64),
        gain=np.empty(LEAVES),
        feature=np.empty(LEAVES, np.int32),
        right=np.empty(LEAVES, np.uint64),
        total=np.empty(channels),
        weight=np.empty(BINS),
        gains=np.empty(BINS),
        rights=np.empty(BINS),
        rank=np.empty(BINS),
        bin=np.empty(BINS, np.int64),
    )


@inner
def word_of(gradient: float, weight: float) -> np.int64:
    """Return a word of a gradient in [-1, 1] and a weight, which counts as at least 1 / WEIGHT."""
    units = np.int64(weight * WEIGHT)
    word = np.int64(np.rint(gradient * GRADIENT)) << _SHIFT
    return np.int64(word + (units if units else 1))


@inner
def grow(
    rows: NDArray[np.uint8],
    categories: NDArray[np.bool_],
    words: Words,
    order: NDArray[np.int32],
    depth: int,
    work: TreeWork,
    tree: Tree,
) -> None:
    """Grow a tree on some rows.

    rows: (n, d) bins.
    categories: (d,) which columns are codes.
    words: (n, c) gradients, and in the first channel weights.
    order: (m,) the rows that the tree is grown on; sorted by their leaves.
    depth: the most splits between the root and a leaf.
    work: gets where the rows of each leaf are in `order`.
    tree: gets the tree.
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
        splits = above[q, 2] + 1
        above[q, 0], above[q, 1], above[q, 2] = node, 0, splits
        above[new, 0], above[new, 1], above[new, 2] = node, 1, splits
        stop = end[q]
        end[q] = begin[new] = _partition(rows, order, work.other, begin[q], stop, tree, node)
        end[new] = stop
        if new + 1 == LEAVES:
            return
        work.gain[q] = work.gain[new] = _LEAST_GAIN
        if splits < depth:
            _sum_both(rows, words, order, q, new, work)
            _find_split(categories, q, work)
            _find_split(categories, new, work)


@inner
def _best_leaf(leaves: int, work: TreeWork) -> int:
    """Return the first leaf whose split has the largest gain."""
    best = 0
    for q in range(1, leaves):
        if work.gain[q] > work.gain[best]:
            best = q
    return best


@inner
def _find_split(categories: NDArray[np.bool_], q: int, work: TreeWork) -> None:
    """Record the best split of a leaf; none of a leaf that is too light to be split."""
    work.gain[q] = _LEAST_GAIN
    sums, total, units = work.sums[q], work.total, 0
    for b in range(BINS):
        units += sums[0, b, 0] & _WEIGHTS
    weight = units / WEIGHT
    if weight < 2.0 * LEAST_ROWS:
        return
    for k in range(sums.shape[2]):
        total[k] = 0.0
        for b in range(BINS):
            total[k] += sums[0, b, k] >> _SHIFT
    for j in range(len(categories)):
        _split(sums[j], categories[j], j, q, weight, work)


@inner
def _sum(rows: NDArray[np.uint8], words: Words, order: NDArray[np.int32], sums: Words) -> None:
    """Write the sums (d, BINS, c) of some rows."""
    d, c = sums.shape[0], sums.shape[2]
    for j in range(d):
        for b in range(BINS):
            for k in range(c):
                sums[j, b, k] = 0
    if c == 1:
        flat = sums.reshape(d * BINS)
        for i in range(len(order)):
            row = rows[order[i]]
            word = words[order[i], 0]
            for j in range(d):
                flat[j * BINS + row[j]] += word
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
    work: TreeWork,
) -> None:
    """Write the sums of two new leaves over those of the split leaf q."""
    begin, end, whole, other = work.begin, work.end, work.sums[q], work.sums[new]
    fewer_left = end[q] - begin[q] < end[new] - begin[new]
    fewer = q if fewer_left else new
    _sum(rows, words, order[begin[fewer] : end[fewer]], other)
    d, c = whole.shape[0], whole.shape[2]
    for j in range(d):
        for b in range(BINS):
            for k in range(c):
                rest = whole[j, b, k] - other[j, b, k]
                whole[j, b, k] = other[j, b, k] if fewer_left else rest
                other[j, b, k] = rest if fewer_left else other[j, b, k]


@inner
def _partition(
    rows: NDArray[np.uint8],
    order: NDArray[np.int32],
    other: NDArray[np.int32],
    start: int,
    stop: int,
    tree: Tree,
    node: int,
) -> int:
    """Order the rows order[start:stop] by their side of a split; return where the right one begins.

    Rows of the right side are reversed.
    """
    feature, mask = tree.feature[node], tree.right[node]
    left, right = start, stop - 1
    for i in range(start, stop):
        # Both entries are written, as a branch would be mispredicted; the next row overwrites one.
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
def _split(
    sums: Words, category: bool, feature: int, q: int, weight: float, work: TreeWork
) -> None:
    """Record the best split of a leaf by a column, if it is better than the recorded one.

    sums: (BINS, c) over the leaf's rows in each bin.
    category: whether the column has codes.
    feature: the column.
    q: the leaf.
    weight: of the leaf's rows.
    work: work.total are the sums of their gradients.
    """
    used = 0
    for b in range(1, BINS):
        work.bin[used] = b
        used += 1 if sums[b, 0] & _WEIGHTS else 0
    ridge = CATEGORY_RIDGE if category else RIDGE
    if category:
        _order_bins(sums, used, work)
    parent = 0.0
    for k in range(sums.shape[1]):
        parent += work.total[k] * work.total[k]
    parent /= weight + ridge
    missing = (sums[0, 0] & _WEIGHTS) > 0
    best, at, with_missing = work.gain[q], -1, 0
    for side in range(2 if missing else 1):  # missing values go to the right, then to the left
        # With missing values there is one more border: between these and all others.
        borders = used if missing and side == 0 else used - 1
        _write_gains(sums, borders, side, weight, ridge, work)
        for border in range(borders):
            w, gain = work.weight[border], work.gains[border] - parent
            if gain > best and w >= LEAST_ROWS and weight - w >= LEAST_ROWS:
                best, at, with_missing = gain, border, side
                heavier = 2.0 * w < weight
    if at >= 0:
        work.gain[q], work.feature[q] = best, feature
        work.right[q] = _mask(sums, category, used, at, with_missing, heavier, work)


@inner
def _write_gains(
    sums: Words, borders: int, side: int, weight: float, ridge: float, work: TreeWork
) -> None:
    """Write the weight on the left of each border, and the squares of both sides by their weights.

    The squares of one border after another are divided in a loop of their own, which compilers turn
    into vector instructions.

    sums, weight: see `_split`.
    borders: their number.
    side: 1 if missing values go to the left.
    ridge: of the column.
    """
    weights, gains, rights = work.weight, work.gains, work.rights
    units = sums[0, 0] & _WEIGHTS if side else 0
    for border in range(borders):
        units += sums[work.bin[border], 0] & _WEIGHTS
        weights[border] = units / WEIGHT
        gains[border] = rights[border] = 0.0
    for k in range(sums.shape[1]):
        left, total = sums[0, k] >> _SHIFT if side else 0, work.total[k]
        for border in range(borders):
            left += sums[work.bin[border], k] >> _SHIFT
            gains[border] += float(left) * float(left)
            rights[border] += (total - left) * (total - left)
    for border in range(borders):
        w = weights[border]
        gains[border] = gains[border] / (w + ridge) + rights[border] / (weight - w + ridge)


@inner
def _order_bins(sums: Words, used: int, work: TreeWork) -> None:
    """Order the bins of a category by their mean gradient in the channel where it varies most."""
    c = sums.shape[1]
    widest, channel = -1.0, 0
    for k in range(c):
        spread = 0.0
        for i in range(used):
            spread += abs(_mean(sums, work.bin[i], k) * (sums[work.bin[i], k] >> _SHIFT))
        if spread > widest:
            widest, channel = spread, k
    for i in range(used):
        b = work.bin[i]
        mean, at = _mean(sums, b, channel), i
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
    sums: Words, category: bool, used: int, border: int, side: int, heavier: bool, work: TreeWork
) -> np.uint64:
    """Return the bins that go to the right: those after work.bin[border].

    used: number of bins with rows of the leaf.
    side: 1 if missing values go to the left.
    heavier: whether the right side is heavier.
    """
    right = np.uint64(0)
    if category:
        for later in range(border + 1, used):
            right |= np.uint64(1) << np.uint64(work.bin[later])
        for b in range(1, BINS):
            if heavier and sums[b, 0] & _WEIGHTS == 0:
                right |= np.uint64(1) << np.uint64(b)
    else:
        for b in range(work.bin[border] + 1, BINS):
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
    """Return the leaf of a row.

    feature, right, child: see `Tree`.
    bins: (d,) of the row.
    """
    q = 0
    while q >= 0:
        q = int(child[q, int((right[q] >> np.uint64(bins[feature[q]])) & np.uint64(1))])
    return ~q

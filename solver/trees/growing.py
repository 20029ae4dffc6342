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
from wolfstream.solver.compiled import inner, larger, smaller
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
    total: Float64Array  # (c,) gradient of all rows of a leaf
    # (BINS,) of the bins `bin` up to each: the sum of words, and what follows from it
    prefix: Words
    weight: Float64Array
    left_square: Float64Array
    right_square: Float64Array
    gains: Float64Array
    rank: Float64Array  # (BINS,)
    bin: NDArray[np.int64]  # (BINS,)


def tree_work(n: int, d: int, channels: int) -> TreeWork:
    """Return reused memory for trees on n rows of d columns.

    channels: 1, or 4, which `_sum` has in registers.
    """
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
        prefix=np.empty(BINS, np.int64),
        weight=np.empty(BINS),
        left_square=np.empty(BINS),
        right_square=np.empty(BINS),
        gains=np.empty(BINS),
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
    words: (n, c) gradients, and in the first channel weights; c is 1 or 4.
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
    """Record the best split of a leaf."""
    work.gain[q] = _LEAST_GAIN
    # The total, which all columns have.
    units, c = 0, work.sums.shape[3]
    for k in range(c):
        word = 0
        for b in range(BINS if len(categories) else 0):
            word += work.sums[q, 0, b, k]
        work.total[k] = word >> _SHIFT
        if k == 0:
            units = word & _WEIGHTS
    if units < 2.0 * LEAST_ROWS * WEIGHT:
        return
    for j in range(len(categories)):
        _split(work.sums[q, j], categories[j], units / WEIGHT, j, q, work)


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
            first, second, third, fourth = word[0], word[1], word[2], word[3]
            for j in range(d):
                of_bin = sums[j, row[j]]
                of_bin[0] += first
                of_bin[1] += second
                of_bin[2] += third
                of_bin[3] += fourth


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
                if fewer_left:
                    whole[j, b, k], other[j, b, k] = other[j, b, k], rest
                else:
                    whole[j, b, k] = rest


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
    sums: Words, category: bool, weight: float, feature: int, q: int, work: TreeWork
) -> None:
    """Record the best split of a leaf by a column, if it is better than the recorded one.

    sums: (BINS, c) over the leaf's rows in each bin.
    category: whether the column has codes.
    weight: of all rows of the leaf.
    feature: the column.
    q: the leaf.
    """
    used = _ordered_bins(sums, category, work)
    missing = (sums[0, 0] & _WEIGHTS) > 0
    for side in range(2 if missing else 1):  # missing values go to the right, then to the left
        _write_gains(sums, CATEGORY_RIDGE if category else RIDGE, weight, used, side, work)
        best = work.gain[q]
        for border in range(used):
            best = larger(best, work.gains[border])
        if best > work.gain[q]:
            border = 0
            while work.gains[border] < best:
                border += 1
            heavier = 2.0 * work.weight[border] < weight
            work.gain[q], work.feature[q] = best, feature
            work.right[q] = _mask(sums, category, used, border, side, heavier, work)


@inner
def _write_gains(
    sums: Words, ridge: float, weight: float, used: int, side: int, work: TreeWork
) -> None:
    """Write the gain of a split after each of the bins work.bin[:used], 0 where it is not allowed.

    Bins are added one by one, as integers; all else runs in vector registers.

    sums, weight: see `_split`.
    side: 1 if missing values go to the left.
    """
    gains, left_weight, prefix = work.gains, work.weight, work.prefix
    left_square, right_square = work.left_square, work.right_square
    for i in range(used):
        left_square[i] = right_square[i] = 0.0
    parent = 0.0
    for k in range(sums.shape[1]):
        total = work.total[k]
        parent += total * total
        word = sums[0, k] if side else 0
        for i in range(used):
            word += sums[work.bin[i], k]
            prefix[i] = word
        for i in range(used):
            left = float(prefix[i] >> _SHIFT)
            right = total - left
            left_square[i] += left * left
            right_square[i] += right * right
        if k == 0:
            for i in range(used):
                left_weight[i] = (prefix[i] & _WEIGHTS) / WEIGHT
    parent /= weight + ridge
    for i in range(used):
        w = left_weight[i]
        gain = left_square[i] / (w + ridge) + right_square[i] / (weight - w + ridge) - parent
        gains[i] = gain if smaller(w, weight - w) >= LEAST_ROWS else 0.0


@inner
def _ordered_bins(sums: Words, category: bool, work: TreeWork) -> int:
    """Write to work.bin the bins between which a column may be split; return how many they are.

    Of numbers these are all bins, as the best split is the same; of categories those with rows of
    the leaf, by their mean gradient in the channel where it varies most.
    """
    if not category:
        for b in range(1, BINS):
            work.bin[b - 1] = b
        return BINS - 1
    used = 0
    for b in range(1, BINS):
        if sums[b, 0] & _WEIGHTS:
            work.bin[used] = b
            used += 1
    _order_bins(sums, used, work)
    return used


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

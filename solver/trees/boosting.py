"""Gradient boosting: each tree is grown on the gradients of a loss (Friedman 2001).

    regression    Huber's loss of e = F - y   gradient g = min(max(e, -b), b),  curvature g / e
    two classes   log loss of the log odds F  gradient p - y,  curvature p (1 - p)
    K classes     log loss of softmax(F)      gradients p_k - [y = k],  curvatures p_k (1 - p_k)

Huber's loss (1964) has squares of errors up to b, and lines beyond, so that outliers do not decide
where trees split and what leaves say:

    b = CORE mean |e|                                before the first round
    b <- max(CORE mean min(|e|, b), (1 - RATE) b)    before each other one

At the limit of b, a quarter of the errors may have any size. It falls no faster than errors that
trees explain: where most numbers are zero, the others are no outliers. With these curvatures leaves
take steps of iteratively reweighted least squares (Holland and Welsch 1977).

The value of an output in a leaf is a Newton step, -RATE G / (C + LEAF_RIDGE), where G and C are the
sums of gradients and curvatures (Chen and Guestrin 2016). One tree serves all outputs: it is grown
on all their gradients, or with many outputs on SKETCH random sums of these (Iosipoi and Vakhrushev
2022), so that the time of a round hardly grows with classes. Each round uses a random share of the
rows (Friedman 2002), drawn from a seed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger, smaller
from wolfstream.solver.trees.growing import (
    LEAVES,
    NODES,
    Tree,
    TreeWork,
    Words,
    grow,
    leaf_of,
    tree_work,
    word_of,
)

RATE = 0.1
LEAF_RIDGE = 1.0
SKETCH = 4
CORE = 4.0
# The most splits between the root and a leaf. A number far from the others is worth many splits
# beside it, one in another; gradients of classes are bounded, and borders may need long paths.
DEPTH_OF_NUMBERS, DEPTH_OF_CLASSES = 8, LEAVES - 1
_LEAST_CURVATURE = 1e-3


class Trees(NamedTuple):
    """Trees whose outputs are added; fields of a tree are those of `Tree`."""

    feature: NDArray[np.int32]  # (trees, NODES)
    right: NDArray[np.uint64]  # (trees, NODES)
    child: NDArray[np.int8]  # (trees, NODES, 2)
    leaf: Float64Array  # (trees, LEAVES, outputs)
    start: Float64Array  # (outputs,) added to the outputs of the trees


class Problem(NamedTuple):
    """The samples that trees are fitted to."""

    rows: NDArray[np.uint8]  # (n, d) bins
    categories: NDArray[np.bool_]  # (d,) which columns are codes
    y: Float64Array  # (n,) numbers, or class codes
    weight: Float64Array  # (n,) of mean 1
    base: Float64Array | None  # (n, outputs) what trees add to; None for the best constant
    classes: int  # 0 in regression


class Effort(NamedTuple):
    """The size of a fit."""

    rounds: int  # number of trees
    share: float = 1.0  # of the rows in each round
    seed: int = 0  # of the choice of rows, and of random sums of gradients


def outputs_of(classes: int) -> int:
    """Return the number of outputs of the trees; classes: 0 in regression."""
    return 1 if classes <= 2 else classes


class _Work(NamedTuple):
    """Reused memory for n rows."""

    F: Float64Array  # (n, outputs)
    slopes: Float64Array  # (n, outputs, 2) gradients and curvatures
    words: Words  # (n, channels)
    chosen: NDArray[np.int32]  # (n,) rows of the round
    signs: NDArray[np.uint64]  # (outputs,) signs of an output in the random sums, bit s for sum s


def fitted(problem: Problem, effort: Effort) -> Trees:
    """Return trees fitted to at most MOST_ROWS rows; equal arrays give equal bits."""
    outputs = outputs_of(problem.classes)
    n, d = problem.rows.shape
    channels = 1 if outputs == 1 else SKETCH
    start = np.zeros(outputs) if problem.base is not None else _constants(problem, outputs)
    trees = Trees(
        np.zeros((effort.rounds, NODES), np.int32),
        np.zeros((effort.rounds, NODES), np.uint64),
        np.zeros((effort.rounds, NODES, 2), np.int8),
        np.zeros((effort.rounds, LEAVES, outputs)),
        start,
    )
    work = _Work(
        np.repeat(start[None], n, axis=0) if problem.base is None else problem.base.copy(),
        np.empty((n, outputs, 2)),
        np.empty((n, channels), np.int64),
        np.empty(n, np.int32),
        np.empty(outputs, np.uint64),
    )
    # What gradients are at most; in regression except where trees have increased many residuals.
    bound = CORE * float((problem.weight * np.abs(work.F[:, 0] - problem.y)).mean())
    largest = problem.weight.max(initial=0.0) * (2.0 if problem.classes else bound)
    scale = 1.0 / largest if largest > 0.0 else 0.0
    targets = problem.y, problem.weight, problem.classes, bound, scale
    room = tree_work(n, d, channels)
    _boost(trees, problem.rows, problem.categories, *targets, *effort[1:], work, room)
    return trees


def _constants(problem: Problem, outputs: int) -> Float64Array:
    """Return the constant (outputs,) to begin with: the median, or the log odds of the classes."""
    total = problem.weight.sum()
    if problem.classes == 0:
        return np.array([_median(problem.y, problem.weight)])
    counts = np.bincount(problem.y.astype(np.int64), problem.weight, problem.classes) + 1.0
    logs = np.log(counts / (total + problem.classes))
    return np.asarray(logs[1:] - logs[:1] if outputs == 1 else logs)


def _median(y: Float64Array, weight: Float64Array) -> float:
    """Return the middle between the least and the greatest number that halves the weight."""
    order, half, last = y.argsort(kind="stable"), 0.5 * weight.sum(), len(y) - 1
    y, weight = y[order], weight[order]
    least = y[min(int(weight.cumsum().searchsorted(half)), last)]
    greatest = y[max(last - int(weight[::-1].cumsum().searchsorted(half)), 0)]
    return float(least + greatest) / 2.0


@compiled
def _boost(
    trees: Trees,
    rows: NDArray[np.uint8],
    categories: NDArray[np.bool_],
    y: Float64Array,
    weight: Float64Array,
    classes: int,
    bound: float,
    scale: float,
    share: float,
    seed: int,
    work: _Work,
    growing: TreeWork,
) -> None:
    depth = DEPTH_OF_CLASSES if classes else DEPTH_OF_NUMBERS
    for r in range(len(trees.feature)):
        count, sizes = 0, 0.0
        for k in range(len(work.signs)):
            work.signs[k] = _bits(seed, r, k)
        for i in range(len(y)):
            _write_slopes(work.F[i], work.slopes[i], y[i], weight[i], classes, bound)
            sizes += weight[i] * smaller(abs(work.F[i, 0] - y[i]), bound)
            _write_words(work.slopes[i], work.words[i], weight[i], scale, work.signs)
            if share >= 1.0 or _uniform(seed, r, i) < share:
                work.chosen[count] = i
                count += 1
        bound = larger(CORE * sizes / len(y), (1.0 - RATE) * bound)
        tree, leaf = Tree(trees.feature[r], trees.right[r], trees.child[r]), trees.leaf[r]
        grow(rows, categories, work.words, work.chosen[:count], depth, growing, tree)
        _write_leaves(leaf, work, growing)
        if count == len(y):
            _add_leaves(leaf, work, growing)
            continue
        for i in range(len(y)):
            q = leaf_of(tree.feature, tree.right, tree.child, rows[i])
            for k in range(leaf.shape[1]):
                work.F[i, k] += leaf[q, k]


@inner
def _write_leaves(leaf: Float64Array, work: _Work, growing: TreeWork) -> None:
    for q in range(LEAVES):
        for k in range(leaf.shape[1]):
            slope, curve = 0.0, LEAF_RIDGE
            for at in range(growing.begin[q], growing.end[q]):
                slope += work.slopes[work.chosen[at], k, 0]
                curve += work.slopes[work.chosen[at], k, 1]
            leaf[q, k] = -RATE * slope / curve


@inner
def _add_leaves(leaf: Float64Array, work: _Work, growing: TreeWork) -> None:
    """Add a tree's values to all rows, which have been sorted into its leaves."""
    for q in range(LEAVES):
        for at in range(growing.begin[q], growing.end[q]):
            for k in range(leaf.shape[1]):
                work.F[work.chosen[at], k] += leaf[q, k]


@inner
def _write_slopes(
    F: Float64Array, slopes: Float64Array, y: float, weight: float, classes: int, bound: float
) -> None:
    """Write the gradients and curvatures (outputs, 2) of a row. bound: b, in regression."""
    if classes == 0:
        e = F[0] - y
        w = weight if abs(e) <= bound else weight * bound / abs(e)
        slopes[0, 0], slopes[0, 1] = w * e, w
    elif classes <= 2:
        p = 1.0 / (1.0 + np.exp(-F[0]))
        slopes[0, 0] = weight * (p - y)
        slopes[0, 1] = weight * larger(p * (1.0 - p), _LEAST_CURVATURE)
    else:
        most, total = F[0], 0.0
        for k in range(classes):
            most = larger(most, F[k])
        for k in range(classes):
            slopes[k, 0] = np.exp(F[k] - most)
            total += slopes[k, 0]
        for k in range(classes):
            p = slopes[k, 0] / total
            slopes[k, 0] = weight * (p - (1.0 if y == k else 0.0))
            slopes[k, 1] = weight * larger(p * (1.0 - p), _LEAST_CURVATURE)


@inner
def _write_words(
    slopes: Float64Array, words: Words, weight: float, scale: float, signs: NDArray[np.uint64]
) -> None:
    """Write the words that a tree is grown on: gradients or random sums of them, and the weight."""
    for s in range(len(words)):
        gradient = 0.0
        if len(slopes) <= len(words):
            gradient = slopes[s, 0] if s < len(slopes) else 0.0
        else:
            for k in range(len(slopes)):
                plus = (signs[k] >> np.uint64(s)) & np.uint64(1)
                gradient += slopes[k, 0] if plus else -slopes[k, 0]
        words[s] = word_of(smaller(larger(scale * gradient, -1.0), 1.0), weight)


@inner
def _bits(seed: int, r: int, i: int) -> np.uint64:
    """Return 64 random bits that three numbers determine (SplitMix64; Steele et al. 2014)."""
    z = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(r)
    z = z * np.uint64(0xD1342543DE82EF95) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def _uniform(seed: int, r: int, i: int) -> float:
    return float(_bits(seed, r, i) >> np.uint64(11)) * 2.0**-53

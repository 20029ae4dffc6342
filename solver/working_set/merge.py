"""Merging the working sets that learned parts of a stream into one.

The merged set starts with the support vectors of all, and with the mean of their weights. Then it
takes MSFW's corrective steps on its samples until its duality gap is small. The gap is over the
union: it bounds the distance from the optimum on these samples (P1 Lemma 4.1), as a set's gap
always does, and says nothing about samples that none of the sets has kept.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.pairs import pairs_of
from wolfstream.solver.rows.matrix import Matrix, concatenate_rows, take_rows
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.store import FREE
from wolfstream.solver.working_set.view import dual_coefficients

# The gap of each pair of classes, relative to its objective, at which corrective passes end.
GAP = 0.01
# With contradictory labels a set converges slowly.
MOST_PASSES = 30


class Support(NamedTuple):
    """The n support vectors of a set."""

    # (n, d).
    X: Matrix
    # (n,) class numbers.
    codes: NDArray[np.int64]
    # (n,) sample weights.
    weight: Float64Array
    # (pairs, n) >= 0, in the order of `frank_wolfe.pairs.pairs_of`.
    alpha: Float64Array


def support_of(learner: WorkingSet) -> Support:
    """Return the support vectors of a set that has learned at least one sample."""
    store = learner.store
    slots, coefficients = dual_coefficients(learner.view())
    alpha, weight = np.abs(coefficients), 1.0 / store.inverse_weight[slots]
    return Support(take_rows(store.rows.exact, slots), store.code[slots], weight, alpha)


def renumbered(support: Support, class_codes: NDArray[np.int64], classes: int) -> Support:
    """Return the same support vectors with other class numbers.

    class_codes: the new number of each class so far.
    classes: how many classes there are in the new numbering.
    """
    number = {pair: i for i, pair in enumerate(pairs_of(max(2, classes)))}
    alpha = np.zeros((len(number), len(support.codes)))
    for (a, b), row in zip(pairs_of(len(class_codes)), support.alpha, strict=False):
        new = sorted((int(class_codes[a]), int(class_codes[b])))
        alpha[number[new[0], new[1]]] = row
    return support._replace(codes=class_codes[support.codes], alpha=alpha)


def unite(learner: WorkingSet, each: Sequence[Support], classes: int) -> None:
    """Put the support vectors of all into a set without samples, at weights with a small gap.

    Where they are more than the set may hold, it begins with an even selection, because those with
    the largest weights are those that no set explains. Then it learns the others, and evicts as it
    always does.

    learner: the set, which is changed.
    each: support vectors with weights for all pairs of the classes.
    classes: the number of classes.
    """
    joined = _joined(each)
    count = len(joined.codes)
    room = count if learner.max_size is None else min(count, learner.max_size)
    first = np.arange(room) * count // room
    X, codes, weight, alpha = joined
    at_first = _on_simplex(alpha[:, first], codes[first])
    learner.adopt(take_rows(X, first), codes[first], at_first, weight[first])
    learner.meet_classes(classes)
    entered = np.full(count, FREE, np.int64)
    entered[first] = np.arange(room)
    others = np.flatnonzero(entered == FREE)
    entered[others] = learner.absorb(
        take_rows(X, others), codes[others], weight=weight[others]
    ).entered
    for _ in range(MOST_PASSES):
        if not relative_gap(learner) > GAP:  # nor if it is unknown
            break
        stored = np.flatnonzero(learner.store.slots_of_entered(entered) != FREE)
        learner.absorb(take_rows(X, stored), codes[stored], entered[stored], weight[stored])


def _joined(each: Sequence[Support]) -> Support:
    """Return the support vectors of all, interleaved evenly; each set's weights count the same."""
    share = [(np.arange(len(support.codes)) + 0.5) / max(len(support.codes), 1) for support in each]
    order = np.argsort(np.concatenate(share), kind="stable")
    return Support(
        take_rows(concatenate_rows([support.X for support in each]), order),
        np.concatenate([support.codes for support in each])[order],
        np.concatenate([support.weight for support in each])[order],
        np.concatenate([support.alpha for support in each], axis=1)[:, order],
    )


def relative_gap(learner: WorkingSet) -> float:
    """Return the largest gap of a pair of classes, relative to its objective; NaN if unknown."""
    gaps = [0.0]
    for problem in learner.problems:
        n, q = int(problem.size[0]), float(problem.q[0])
        if q > 0.0:
            gap = max(float(problem.gradient[:n].max()) + 2.0 * q, 0.0)
            gaps.append(np.nan if problem.indefinite[0] else gap / q)
    return float(np.max(gaps))


def _on_simplex(alpha: Float64Array, codes: NDArray[np.int64]) -> Float64Array:
    """Scale the weights of each pair to a sum of one; uniform if no set has both classes."""
    pairs = pairs_of(max(2, 1 + int(codes.max())))
    shares = np.empty((len(pairs), len(codes)))
    for i, pair in enumerate(pairs):
        in_pair = np.isin(codes, pair).astype(np.float64)
        row = alpha[i] if alpha[i].any() else in_pair
        shares[i] = row / max(row.sum(), 1e-300)
    return shares

"""All experts of a bank that see rows, and the order of their scores.

First come ridge learners, each with all its losses, gradient learners, neighbours and naive Bayes,
which learn in one compiled call (`_learn`); then those that take rows in calls of their own, in the
order of `BESIDE`.
"""

import math
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.diagonal import DIAGONAL, DiagonalWeights
from wolfstream.solver.adaptive.experts import Experts, Form, Kind, Shape
from wolfstream.solver.adaptive.features import FeatureMap, relevance, shares
from wolfstream.solver.adaptive.gradient import (
    NO_GRADIENT,
    GradientArrays,
    GradientLearners,
    learn_gradient,
)
from wolfstream.solver.adaptive.naive_bayes import (
    NO_BAYES,
    BayesArrays,
    NaiveBayes,
    learn_bayes,
    quadratic,
)
from wolfstream.solver.adaptive.neighbours import (
    Memory,
    Neighbours,
    NeighboursArrays,
    NeighboursView,
    Search,
    learn_neighbours,
    no_neighbours,
    row_scores,
    search_for,
)
from wolfstream.solver.adaptive.ridge import (
    FEW,
    NO_RIDGE,
    RidgeArrays,
    RidgeLearners,
    learn_ridge,
)
from wolfstream.solver.adaptive.settings import Settings
from wolfstream.solver.adaptive.texts import TEXTS, TextsView
from wolfstream.solver.adaptive.weights import dot
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner
from wolfstream.solver.packed_arrays import PackedTuple, Words, pack, unpack
from wolfstream.solver.rows.matrix import SparseRows

# The kinds that take rows in calls of their own, in the order of scores and of the last fields of
# `LearnersView`. Texts are last, as a bank that gets texts late appends their experts.
BESIDE: tuple[Kind, ...] = (DIAGONAL, TEXTS)

# Compiled code takes empty arrays in place of learners that a bank does not have.
_NO_NEIGHBOURS = no_neighbours(0)
_NO_MEMORY = NeighboursArrays(*_NO_NEIGHBOURS[:3], search_for(*_NO_NEIGHBOURS[:2]))


class LearnersView(NamedTuple):
    """An immutable copy that scores rows; None of experts that the bank does not have."""

    weights: Float64Array  # W of all linear learners on shared features, one group after another
    shapes: NDArray[np.int64]  # (groups, 4) the shape of each W, as in `weights`
    neighbours: NeighboursView | None
    bayes: Float64Array | None  # W of naive Bayes
    # The remaining fields are views of the kinds in `BESIDE`, by their names.
    diagonal: DiagonalWeights | None = None
    texts: TextsView | None = None

    @property
    def groups(self) -> list[Float64Array]:
        """W of each group."""
        stops = np.cumsum(self.shapes.prod(axis=1))
        parts = np.split(self.weights, stops[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    @property
    def bayes_place(self) -> slice:
        """The place of naive Bayes among the experts: the last before the kinds in `BESIDE`."""
        first = int((self.shapes[:, 0] * self.shapes[:, 1]).sum())
        first += 0 if self.neighbours is None else 2 * len(self.neighbours.counts)
        return slice(first, first + (0 if self.bayes is None else len(self.bayes)))

    @property
    def beside(self) -> list[tuple[Kind, Any, slice]]:
        """The kinds of `BESIDE` that the bank has, each with its view and place among experts."""
        beside, start = list[tuple[Kind, Any, slice]](), -1
        for kind, view in zip(BESIDE, self[4:], strict=True):
            if view is not None:
                start = self.bayes_place.stop if start < 0 else start
                stop = start + kind.count(view)
                beside.append((kind, view, slice(start, stop)))
                start = stop
        return beside


class LearnerArrays(NamedTuple):
    """The arrays of learners on shared features, in the order of scores; empty if there are none.

    There are two groups of ridge learners and two of gradient learners, one for each span.
    """

    ridge: tuple[RidgeArrays, RidgeArrays]
    gradient: tuple[GradientArrays, GradientArrays]
    near: NeighboursArrays
    bayes: BayesArrays
    regression: bool


def _family(kind: Mapping[str, Any]) -> tuple[str, str]:
    """Return which experts one is like: its learner, and the features that it sees."""
    return kind["learner"], kind.get("features", "")


class Learners:
    """The experts of a bank that see rows; at least one is a ridge or gradient learner.

    Classification has K one-hot targets and one more for a class that never comes; regression has
    one target.

    settings: the experts.
    features: the shared features.
    wide: whether rows are wide (`inputs`).
    texts: how many text columns rows have.
    regression: whether targets are numbers.
    each: all groups of experts, in the order of scores.
    kinds: the parameters of each expert.
    prior: the weight of each expert before any sample; those that differ in a setting alone err
        together, so that nine of them do not weigh nine times as much as one.
    lookups: how many slots are looked up for a row.
    """

    def __init__(
        self,
        settings: Settings,
        features: FeatureMap,
        *,
        wide: bool,
        texts: int,
        regression: bool,
    ) -> None:
        self._shares = shares(features)
        ridge = groupby(settings.ridge, lambda setting: (setting.span, setting.losses))
        self.ridge = [
            RidgeLearners(f"ridge{e}", list(group), features.columns(span))
            for e, ((span, _), group) in enumerate(ridge)
        ]
        gradient = groupby(settings.gradient, lambda setting: setting.span)
        self.gradient = [
            GradientLearners(
                f"gradient{e}", span, [setting.step for setting in group], features.columns(span)
            )
            for e, (span, group) in enumerate(gradient)
        ]
        columns = features.columns("linear") - 1
        self.neighbours: Neighbours | None = None
        if settings.neighbours:
            self.neighbours = Neighbours(settings.neighbours, columns, regression=regression)
        bayes = () if wide else settings.naive_bayes
        self.bayes = NaiveBayes(bayes, columns) if bayes else None
        shape = Shape(settings, features, wide, texts, regression)
        beside = [(kind, kind.new(shape)) for kind in BESIDE]
        others = (self.neighbours, self.bayes, *(experts for _, experts in beside))
        every = (*self.ridge, *self.gradient, *others)
        self.each: list[Experts] = [experts for experts in every if experts is not None]
        self.kinds = [kind for experts in self.each for kind in experts.kinds]
        alike = Counter(map(_family, self.kinds))
        self.prior = [
            experts.prior / math.sqrt(alike[_family(kind)])
            for experts in self.each
            for kind in experts.kinds
        ]
        self.lookups = sum(experts.lookups for experts in self.each)
        self.count = len(self.kinds)
        self._beside = [
            (kind, experts, self.place_of(experts))
            for kind, experts in beside
            if experts is not None
        ]
        self._groups: tuple[RidgeLearners | GradientLearners, ...] = (*self.ridge, *self.gradient)
        self._regression, self._packed = regression, PackedTuple(_ARRAYS, _pack)

    def place_of(self, experts: Experts) -> slice:
        """Return the place of a group of `each` among the experts.

        Raises ValueError for another group.
        """
        start = 0
        for other in self.each:
            stop = start + len(other.kinds)
            if other is experts:
                return slice(start, stop)
            start = stop
        raise ValueError("the bank has no such experts")

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes."""
        for experts in self.each:
            experts.meet(classes)

    def absorb(
        self,
        Phi: Float64Array,
        sparse: SparseRows | None,
        codes: Float64Array | None,
        Y: Float64Array,
        weight: Float64Array,
        scores: Float64Array,
    ) -> None:
        """Write the scores of rows, each before its target is learned.

        Phi: (n, D) shared features.
        sparse: the rows themselves if they are wide.
        codes: (n, texts) if rows have texts.
        Y: (n, K) targets, including the class that never comes.
        weight: (n,) weights of the rows.
        scores: (n, at least the number of experts, K) of which the first are written.
        """
        few, n = len(Y) <= FEW, len(Y)
        for learner in self.ridge:
            learner.reserve(n)
        if self.neighbours is not None:
            self.neighbours.reserve(n)
        pending = self.ridge[0].pending if self.ridge else 0
        for learner in () if few else self.ridge:
            learner.multiply(Phi)
        rows = 0 if self.bayes is None else self.bayes.rows
        words = self._packed.words(self._parts(), self._arrays)
        _learn(words, Phi, few, pending, rows, Y, weight, scores)
        for learner in self.ridge:
            learner.pending += n
        if self.bayes is not None:
            self.bayes.rows += n
        forms: dict[Form, Any] = {"features": Phi, "sparse": sparse, "codes": codes}
        for kind, experts, place in self._beside:
            rows_seen = forms[kind.sees]
            if rows_seen is not None:
                scores[:, place] = experts.absorb(rows_seen, Y, weight)

    def _parts(self) -> tuple[Any, ...]:
        """Return objects of which one is replaced whenever an array of `_arrays` is."""
        near, bayes = self.neighbours, self.bayes
        return (
            *[learner.W for learner in self._groups],
            *[array for learner in self.ridge for array in (learner.P, learner.gains)],
            *(() if near is None else (near.memory, near.weight)),
            *(() if bayes is None else (bayes.sums, bayes.W)),
        )

    def _arrays(self) -> LearnerArrays:
        ridge = [learner.arrays for learner in self.ridge]
        gradient = [learner.arrays for learner in self.gradient]
        return LearnerArrays(
            (ridge[0] if ridge else NO_RIDGE, ridge[1] if len(ridge) > 1 else NO_RIDGE),
            (
                gradient[0] if gradient else NO_GRADIENT,
                gradient[1] if len(gradient) > 1 else NO_GRADIENT,
            ),
            _NO_MEMORY if self.neighbours is None else self.neighbours.arrays,
            NO_BAYES if self.bayes is None else self.bayes.arrays,
            self._regression,
        )

    def end_chunk(self, samples: int) -> None:
        """Update what changes once a chunk; samples: how many the stream has had."""
        for experts in self.each:
            experts.end_chunk(samples)
        if self.neighbours is not None and self.ridge:
            first = next(learner for learner in self.ridge if learner.span == "all")
            self.neighbours.weigh(relevance(self._shares, first.W[0, 0]))

    def rescale(self, factor: float, shift: float) -> None:
        """Make every expert predict factor s + shift where it predicted s."""
        for experts in self.each:
            experts.rescale(factor, shift)

    @property
    def targets(self) -> int:
        """K, including the class that never comes in classification."""
        return int(self._groups[0].W.shape[2])

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return sum(experts.nbytes for experts in self.each)

    def growth(self, samples: int, rows: int) -> int:
        """Return the most bytes that further rows add; see `Experts.growth`."""
        return sum(experts.growth(samples, rows) for experts in self.each)

    @property
    def work(self) -> int:
        """Multiplications of learning one more dense row, without cosines and exponentials."""
        return sum(experts.work for experts in self.each)

    def view(self) -> LearnersView:
        """Return an immutable copy that scores rows."""
        return LearnersView(
            np.concatenate([group.W.ravel() for group in self._groups]),
            np.array([group.W.shape for group in self._groups], np.int64),
            None if self.neighbours is None else self.neighbours.view(self.targets),
            None if self.bayes is None else self.bayes.W.copy(),
            **{kind.name: experts.view() for kind, experts, _ in self._beside},
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays: dict[str, NDArray[Any]] = {}
        for experts in self.each:
            arrays |= experts.state()
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        for experts in self.each:
            experts.restore(state)


def score(
    view: LearnersView,
    Phi: Float64Array,
    sparse: SparseRows | None,
    codes: Float64Array | None,
    scores: Float64Array,
) -> None:
    """Write the scores of rows, each as if it came next; a row gets the same bits alone.

    view: of the experts.
    Phi, sparse, codes: the rows, as `Learners.absorb` takes them.
    scores: (n, at least the number of experts, K) of which the first are written. K may leave out
        the class that never comes.
    """
    learners = row_learners(view)
    _score(Phi, learners, search_for(learners.memory, learners.counts), scores)
    forms: dict[Form, Any] = {"features": Phi, "sparse": sparse, "codes": codes}
    for kind, experts, place in view.beside:
        rows_seen = forms[kind.sees]
        if rows_seen is not None:
            scores[:, place] = kind.scores(experts, rows_seen)[:, :, : scores.shape[2]]


class RowLearners(NamedTuple):
    """The learners on shared features; fields are those of `LearnersView` and `NeighboursView`."""

    weights: Float64Array
    shapes: NDArray[np.int64]
    memory: Memory
    counts: NDArray[np.int64]
    relevance: NDArray[np.float32]
    regression: bool
    bayes: Float64Array


def row_learners(view: LearnersView) -> RowLearners:
    """Return the learners on shared features of a view, empty arrays if there are none."""
    near = view.neighbours or _NO_NEIGHBOURS
    bayes = NO_BAYES.W if view.bayes is None else view.bayes
    return RowLearners(view.weights, view.shapes, *near[:4], bayes)


@compiled
def _score(Phi: Float64Array, learners: RowLearners, search: Search, scores: Float64Array) -> None:
    for i in range(len(Phi)):
        score_row(learners, Phi[i], search, scores[i])


@inner
def score_row(
    learners: RowLearners, phi: Float64Array, search: Search, scores: Float64Array
) -> None:
    """Write the scores of a row.

    learners: those on shared features.
    phi: (D,) shared features of the row.
    search: reused memory.
    scores: (at least the number of learners, K).
    """
    shapes, weights = learners.shapes, learners.weights
    counts, bayes = learners.counts, learners.bayes
    e, place, targets = 0, 0, scores.shape[1]
    for g in range(len(shapes)):
        every, width = shapes[g, 2], shapes[g, 3]
        for _ in range(shapes[g, 0] * shapes[g, 1]):
            for k in range(targets):
                first = place + k * width
                scores[e, k] = dot(weights[first : first + width], phi[:width])
            place += every * width
            e += 1
    if len(counts):
        for c in range(len(search.z)):
            search.z[c] = phi[1 + c]
        near_scores = scores[e : e + 2 * len(counts)]
        weight, regression = learners.relevance, learners.regression
        row_scores(learners.memory, counts, weight, regression, search, near_scores)
        e += 2 * len(counts)
    columns = bayes.shape[3] // 2
    z = phi[1 : 1 + columns]
    for h in range(len(bayes)):
        for k in range(targets):
            w = bayes[h, 0, k]
            scores[e, k] = w[0] + quadratic(z, w[1 : 1 + columns], w[1 + columns :])
        e += 1


# Most of numba carries no types.
_typeof: Any = numba.typeof
_ARRAYS = _typeof(
    LearnerArrays((NO_RIDGE,) * 2, (NO_GRADIENT,) * 2, _NO_MEMORY, NO_BAYES, regression=False)
)


@compiled
def _pack(words: Words, learners: LearnerArrays) -> None:
    pack(words, learners)


@compiled
def _learn(
    words: Words,
    Phi: Float64Array,
    few: bool,
    pending: int,
    rows: int,
    Y: Float64Array,
    weight: Float64Array,
    scores: Float64Array,
) -> None:
    """Write the scores of rows by learners on shared features, each before its target is learned.

    rows: how many rows naive Bayes has learned. Other arguments are those of `ridge.learn_ridge`.
    """
    learners, first = unpack(words, _ARRAYS), 0
    regression = learners.regression
    for ridge in learners.ridge:
        learn_ridge(ridge, Phi, few, pending, Y, weight, first, scores)
        first += ridge.W.shape[0] * ridge.W.shape[1]
    for gradient in learners.gradient:
        if len(gradient.steps):
            learn_gradient(gradient, regression, Phi, Y, weight, first, scores)
            first += len(gradient.steps)
    near, bayes = learners.near, learners.bayes
    if len(near.counts):
        learn_neighbours(near, regression, Phi, Y, weight, first, scores)
        first += 2 * len(near.counts)
    if len(bayes.W):
        learn_bayes(bayes, Phi, rows, Y, weight, first, scores)

"""All learners of a bank that see rows: their scores, in one order.

The order is that of the settings: ridge learners, each with all its losses, gradient learners,
neighbours, then diagonal ones where rows are wide, or naive Bayes where they are not, and those on
texts where rows have any.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.diagonal import DiagonalLearners, DiagonalWeights, diagonal_scores
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
    CHUNK,
    FEW,
    NO_RIDGE,
    RidgeArrays,
    RidgeLearners,
    learn_ridge,
)
from wolfstream.solver.adaptive.ridge_parts import RidgePart, endless_pairs
from wolfstream.solver.adaptive.settings import Settings
from wolfstream.solver.adaptive.texts import TextLearners, TextsView, text_scores
from wolfstream.solver.adaptive.weights import dot, for_classes
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner
from wolfstream.solver.held import Holder, Words, held, hold
from wolfstream.solver.rows.matrix import SparseRows

# What stands for learners that a bank has not.
_NO_NEIGHBOURS = no_neighbours(0)
_NO_MEMORY = NeighboursArrays(*_NO_NEIGHBOURS[:3], search_for(*_NO_NEIGHBOURS[:2]))


class LearnersView(NamedTuple):
    """What scores rows; nothing changes it.

    weights: of all linear learners on shared features, W of one group after another. shapes:
    (groups, 4) of each W, as in `weights`. bayes: W of naive Bayes.
    """

    weights: Float64Array
    shapes: NDArray[np.int64]
    neighbours: NeighboursView | None
    bayes: Float64Array | None
    diagonal: DiagonalWeights | None
    texts: TextsView | None

    @property
    def groups(self) -> list[Float64Array]:
        """W of each group."""
        stops = np.cumsum(self.shapes.prod(axis=1))
        parts = np.split(self.weights, stops[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]


class LearnerArrays(NamedTuple):
    """What the learners that see a row's shared features learn in, in the order of their scores.

    There are two groups of ridge and two of gradient learners; those that a bank has not are empty.
    """

    ridge: tuple[RidgeArrays, RidgeArrays]
    gradient: tuple[GradientArrays, GradientArrays]
    near: NeighboursArrays
    bayes: BayesArrays
    regression: bool


class Learners:
    """The learners of a bank, of which some learn by ridge or by gradient.

    Classification has K one-hot targets and one more, of a class that never comes; regression
    has one target.
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
        self.ridge = [
            RidgeLearners(list(group), features.columns(span))
            for (span, _), group in groupby(settings.ridge, lambda one: (one.span, one.losses))
        ]
        self.gradient = [
            GradientLearners(span, [one.step for one in group], features.columns(span))
            for span, group in groupby(settings.gradient, lambda one: one.span)
        ]
        columns = features.columns("linear") - 1
        self.neighbours: Neighbours | None = None
        if settings.neighbours:
            self.neighbours = Neighbours(settings.neighbours, columns, regression=regression)
        bayes = () if wide else settings.naive_bayes
        self.bayes = NaiveBayes(bayes, columns) if bayes else None
        self.diagonal = DiagonalLearners(settings.diagonal, regression=regression) if wide else None
        self.texts = TextLearners(settings.texts, texts, regression=regression) if texts else None
        kinds = [one["learner"] for one in settings.learners(wide=wide, texts=texts > 0)]
        self.count = len(kinds)
        first = kinds.index("naive_bayes") if bayes else self.count
        self.bayes_experts = slice(first, first + len(bayes))
        self._groups: tuple[RidgeLearners | GradientLearners, ...] = (*self.ridge, *self.gradient)
        self._regression, self._holder = regression, Holder(_ARRAYS, _hold)

    def meet(self, classes: int) -> None:
        """Make room for so many classes."""
        for group in self._groups:
            group.W = for_classes(group.W, classes)
        if self.bayes is not None:
            self.bayes.meet(classes)
        if self.diagonal is not None:
            self.diagonal.meet(classes)
        if self.texts is not None:
            self.texts.meet(classes)

    def absorb(
        self,
        Phi: Float64Array,
        sparse: SparseRows | None,
        codes: Float64Array | None,
        Y: Float64Array,
        weight: Float64Array,
        scores: Float64Array,
    ) -> None:
        """Write the scores of rows before each one's own target; then the rows are learned.

        Phi: (n, D). sparse: the rows where they are wide. codes: (n, texts), if they have any. Y:
        (n, K), the class that never comes included. weight: (n,) of the rows. scores: (n, experts,
        K), of which the learners are the first experts.
        """
        few, n = len(Y) <= FEW, len(Y)
        pending = self.ridge[0].pending if self.ridge else 0
        for learner in () if few else self.ridge:
            learner.multiply(Phi)
        rows = 0 if self.bayes is None else self.bayes.rows
        words = self._holder.words(self._parts(), self._arrays)
        first = _learn(words, Phi, few, pending, rows, Y, weight, scores)
        for learner in self.ridge:
            learner.pending += n
        if self.bayes is not None:
            self.bayes.rows += n
        if self.diagonal is not None and sparse is not None:
            learner_scores = self.diagonal.absorb(sparse, Y, weight)
            scores[:, first : first + len(learner_scores)] = learner_scores.transpose(1, 0, 2)
        if self.texts is not None and codes is not None:
            learner_scores = self.texts.absorb(codes, Y, weight)
            scores[:, self.count - learner_scores.shape[1] : self.count] = learner_scores

    def _parts(self) -> tuple[Any, ...]:
        """Return what is replaced where one of `_arrays` is."""
        near, bayes = self.neighbours, self.bayes
        return (
            *[learner.W for learner in self._groups],
            *[learner.P for learner in self.ridge],
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
        """Let the ridge learners forget, the stream being so many samples long."""
        for learner in self.ridge:
            learner.end_chunk(samples)
        if self.neighbours is not None and self.ridge:
            first = next(learner for learner in self.ridge if learner.span == "all")
            self.neighbours.weigh(relevance(self._shares, first.W[0, 0]))

    def rescale(self, factor: float, shift: float) -> None:
        """Have every learner answer factor s + shift where it answered s."""
        for group in self._groups:
            group.W = factor * group.W
            group.W[..., 0] += shift
        if self.neighbours is not None:
            self.neighbours.rescale(factor, shift)
        if self.diagonal is not None:
            self.diagonal.rescale(factor, shift)
        if self.texts is not None:
            self.texts.rescale(factor, shift)

    @property
    def targets(self) -> int:
        """K, of classification the class that never comes included."""
        return int(self._groups[0].W.shape[2])

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        n_bytes = sum(learner.nbytes for learner in self.ridge)
        n_bytes += sum(learner.W.nbytes for learner in self.gradient)
        n_bytes += 0 if self.neighbours is None else self.neighbours.nbytes
        n_bytes += 0 if self.bayes is None else self.bayes.nbytes
        n_bytes += 0 if self.diagonal is None else self.diagonal.nbytes
        return n_bytes + (0 if self.texts is None else self.texts.nbytes)

    @property
    def work(self) -> int:
        """Multiplications of learning one more dense row, without cosines and exponentials.

        A row's gain and its part of a chunk's update of P; a score and a step of each machine; two
        searches for neighbours; naive Bayes; a score and a step of each weight of a text.
        """
        columns = [(len(learner.P), learner.P.shape[1]) for learner in self.ridge]
        gains = sum(count * (2 * width * width + 2 * CHUNK * width) for count, width in columns)
        machines = sum(2 * group.W.size for group in self._groups)
        searches = 0 if self.neighbours is None else 4 * self.neighbours.memory.rows.size
        bayes = 0 if self.bayes is None else self.bayes.work
        texts = 0 if self.texts is None else self.texts.work
        return int(gains + machines + searches + bayes + texts)

    def view(self) -> LearnersView:
        """The weights of all learners as they are now."""
        W = [group.W for group in self._groups]
        return LearnersView(
            np.concatenate([weights.ravel() for weights in W]),
            np.array([weights.shape for weights in W], np.int64),
            None if self.neighbours is None else self.neighbours.view(self.targets),
            None if self.bayes is None else self.bayes.W.copy(),
            None if self.diagonal is None else self.diagonal.view(),
            None if self.texts is None else self.texts.view(),
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all learners as plain arrays."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, group in self._named():
            arrays |= group.state(name)
        arrays |= {} if self.neighbours is None else self.neighbours.state()
        arrays |= {} if self.bayes is None else self.bayes.state()
        arrays |= {} if self.diagonal is None else self.diagonal.state()
        return arrays | ({} if self.texts is None else self.texts.state())

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        for name, group in self._named():
            group.restore(name, state)
        if self.neighbours is not None:
            self.neighbours.restore(state)
        if self.bayes is not None:
            self.bayes.restore(state)
        if self.diagonal is not None:
            self.diagonal.restore(state)
        if self.texts is not None:
            self.texts.restore(state)

    def endless(self) -> list[tuple[RidgePart, RidgePart]]:
        """See `ridge_parts.endless_pairs`."""
        return endless_pairs(self.ridge)

    def _named(self) -> list[tuple[str, RidgeLearners | GradientLearners]]:
        ridge = [(f"ridge{e}", learner) for e, learner in enumerate(self.ridge)]
        return [*ridge, *((f"gradient{e}", learner) for e, learner in enumerate(self.gradient))]


def score(
    view: LearnersView,
    Phi: Float64Array,
    sparse: SparseRows | None,
    codes: Float64Array | None,
    scores: Float64Array,
) -> None:
    """Write the scores of rows as `Learners.absorb` takes them, nothing being learned.

    scores: (n, experts, K), of which the learners are the first experts; of classification K need
    not include the class that never comes. A row has the same bits alone and among others.
    """
    learners = row_learners(view)
    _score(Phi, learners, search_for(learners.memory, learners.counts), scores)
    stop = int((view.shapes[:, 0] * view.shapes[:, 1]).sum())
    stop += 2 * len(learners.counts) + len(learners.bayes)
    targets = scores.shape[2]
    if view.diagonal is not None and sparse is not None:
        learner_scores = diagonal_scores(view.diagonal, sparse).transpose(1, 0, 2)
        scores[:, stop : stop + learner_scores.shape[1]] = learner_scores[:, :, :targets]
        stop += learner_scores.shape[1]
    if view.texts is not None and codes is not None:
        learner_scores = text_scores(view.texts, codes)
        scores[:, stop : stop + learner_scores.shape[1]] = learner_scores[:, :, :targets]


class RowLearners(NamedTuple):
    """The learners of a view that see a row's shared features; fields as of their views."""

    weights: Float64Array
    shapes: NDArray[np.int64]
    memory: Memory
    counts: NDArray[np.int64]
    relevance: NDArray[np.float32]
    regression: bool
    bayes: Float64Array


def row_learners(view: LearnersView) -> RowLearners:
    """Return them, with arrays without elements in the place of those that there are not."""
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
    """Write the scores (learners, K) of a row with the shared features phi (D,)."""
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
def _hold(words: Words, learners: LearnerArrays) -> None:
    hold(words, learners)


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
) -> int:
    """Have all learners take rows; return the number of the first expert after them.

    rows: that naive Bayes has learned. Other arguments are as of `ridge.learn_ridge`.
    """
    learners, first = held(words, _ARRAYS), 0
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
    return first + len(bayes.W)

"""Predictions of a bank for classification: of samples before they are learned, and by a view."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import Combination, combined
from wolfstream.solver.adaptive.inputs import InputView, inputs_of
from wolfstream.solver.adaptive.learners import LearnersView, score
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, smaller
from wolfstream.solver.rows.matrix import Matrix, SparseRows

# The scores of two classes are -f/2 and f/2 of the decision f.
HALVES = np.array([-0.5, 0.5])


class ClassAnswers(NamedTuple):
    """Predictions for n rows."""

    prediction: NDArray[np.int64]  # (n,) class codes, -1 where no class was known
    probability: Float64Array  # (n, K), 0 for a class that was not known

    @property
    def decision(self) -> Float64Array:
        """Of two classes log(p_1 / p_0), (n,); else log p, (n, K). NaN where no class was known."""
        if (self.probability > 1e-300).all():
            every = np.log(self.probability)
            return every[:, 1] - every[:, 0] if every.shape[1] == 2 else every
        known = self.probability.sum(axis=1) > 0.0
        logs = np.log(np.maximum(self.probability, 1e-300))
        logs[self.probability == 0.0] = np.nan
        decision = logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs
        return np.where(known if decision.ndim == 1 else known[:, None], decision, np.nan)

    @property
    def scores(self) -> Float64Array:
        """The decisions as (n, K) scores: -f/2 and f/2 of two classes."""
        decision = self.decision
        return decision[:, None] * HALVES if decision.ndim == 1 else decision


def joined(parts: Sequence[ClassAnswers], classes: int) -> ClassAnswers:
    """Return consecutive predictions as one.

    parts: may know fewer classes.
    classes: K of the result.
    """
    prediction = np.concatenate([np.empty(0, np.int64), *(part.prediction for part in parts)])
    probability = np.zeros((len(prediction), classes))
    start = 0
    for _, p in parts:
        probability[start : start + len(p), : p.shape[1]] = p
        start += len(p)
    return ClassAnswers(prediction, probability)


class ClassView(NamedTuple):
    """An immutable view of a classifier for predictions by other threads."""

    inputs: InputView
    learners: LearnersView
    combination: Combination
    n_classes: int
    external: int  # number of external experts


def predict_classes(
    view: ClassView,
    X: Matrix,
    external: Float64Array | None = None,
    codes: Float64Array | None = None,
) -> ClassAnswers:
    """Predict rows, each as if it came next.

    view: of the classifier.
    X: n prepared rows.
    external: (n, experts, K) as in `AdaptiveClassifier.absorb`.
    codes: (n, texts) as there.

    Raises ValueError while no class is known.
    """
    if view.n_classes == 0:
        raise ValueError("a prediction needs a class")
    scores, awake = scores_of(view, *inputs_of(view.inputs, X), external, codes)
    probability = combined(view.combination, scores, awake, view.n_classes)
    return ClassAnswers(np.argmax(probability, axis=1), probability)


def scores_of(
    view: ClassView,
    Phi: Float64Array,
    sparse: SparseRows | None,
    external: Float64Array | None,
    codes: Float64Array | None,
) -> tuple[Float64Array, NDArray[np.bool_]]:
    """Return the scores (n, E, K) of all experts for rows, and which are awake, (n, E).

    Phi, sparse: the rows, as `inputs.inputs_of` returns them.
    external, codes: as in `predict_classes`.
    """
    scores = np.empty((len(Phi), len(view.combination.beta), view.n_classes))
    score(view.learners, Phi, sparse, codes, scores)
    return scores, take_external(external, view.external, view.n_classes, scores)


def take_external(
    external: Float64Array | None, count: int, classes: int, scores: Float64Array
) -> NDArray[np.bool_]:
    """Write the scores of external experts, and return which experts are awake, (n, E).

    An expert sleeps in rows where all its scores are NaN; elsewhere NaN becomes its least score.

    external: (n, count, K') with K' <= classes; None if no expert has scores.
    count: number of external experts.
    classes: how many classes of `scores` are written.
    scores: (n, E, K), whose last `count` experts are written.
    """
    awake = np.empty(scores.shape[:2], np.bool_)
    votes = np.empty((len(scores), count, 0)) if external is None else external
    _take(np.ascontiguousarray(votes), np.isfinite(votes), classes, scores, awake)
    return awake


@compiled
def _take(
    votes: Float64Array,
    finite: NDArray[np.bool_],
    classes: int,
    scores: Float64Array,
    awake: NDArray[np.bool_],
) -> None:
    """Compute `take_external`; finite: which votes are numbers."""
    n_own = scores.shape[1] - votes.shape[1]
    voted = smaller(votes.shape[2], classes)
    for i in range(len(scores)):
        for e in range(n_own):
            awake[i, e] = True
        for e in range(votes.shape[1]):
            least, awake[i, n_own + e] = np.inf, False
            for k in range(voted):
                if finite[i, e, k]:
                    least, awake[i, n_own + e] = smaller(least, votes[i, e, k]), True
            for k in range(classes):
                has_vote = k < voted and finite[i, e, k]
                filled = least if awake[i, n_own + e] else 0.0
                scores[i, n_own + e, k] = votes[i, e, k] if has_vote else filled

"""Adds what the labels before a row tell about it to a prediction (classification).

    table    T_jk, decayed count of class k after class j
    share    q_k, decayed share of class k: over a long horizon, and over the last few labels
    stay     s, decayed share of labels that repeat the label before
    experts  1  log p_k, the prediction without the labels before
             2  log p_k + log (T_jk + PRIOR q_k) / (T_j + PRIOR) / q_k,  j the label before
             3  log s for j, log (1 - s) / (K - 1) for other classes
             4  log q_k over the last few labels

Expert 2 is Bayes' rule if a row and the label before it are independent given its label; without
evidence it equals expert 1. `combination` combines them; its stackers begin as expert 1. Samples
count by their weights.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import (
    Combination,
    Combiner,
    combination_arrays,
    combination_from_arrays,
    combine_row,
    new_combination,
)
from wolfstream.solver.adaptive.gradients import score_gradient
from wolfstream.solver.adaptive.view import ClassAnswers
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, inner, larger

EXPERTS, STEPS = 4, (0.03, 0.1)
# In samples: of the table and the long share, of the short share, and of `stay`.
HORIZON, SHORT_HORIZON, STAY_HORIZON = 1000.0, 10.0, 300.0
PRIOR = 2.0
# Added to the count of each class in the long share, and in the short one.
_ONE_OF, _SHORT_ONE_OF = 0.5, 0.05
# Probabilities of the prediction count as at least this.
LEAST = 1e-4
_OTHERS = np.ones(EXPERTS - 1 + len(STEPS))
# What the weights of experts and stackers return to, and those before any label: the first few
# labels tell little of the next one.
_WEIGHTS, _FIRST_WEIGHTS = np.append(4.0, _OTHERS), np.append(64.0, _OTHERS)
_KEPT, _SHORT_KEPT, _STAY_KEPT = np.exp(-1.0 / np.array([HORIZON, SHORT_HORIZON, STAY_HORIZON]))
KINDS: tuple[dict[str, Any], ...] = (
    {"learner": "label before", "of": "answer"},
    {"learner": "last label"},
    {"learner": "last labels"},
    *({"learner": "stacker", "of": "labels before", "step": step} for step in STEPS),
)


class ClassPast(NamedTuple):
    """Statistics of the labels so far, in arrays that are updated in place."""

    table: Float64Array  # (K, K); the row is the label before
    share: Float64Array  # (2, K) decayed counts of classes, over the long and the short horizon
    stay: Float64Array  # (2,) decayed counts of labels that repeat the one before, and of all
    last: NDArray[np.int64]  # (1,) class code of the last label, -1 before any
    combination: Combination

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        arrays = self.table, self.share, self.stay, self.last, *self.combination
        return sum([array.nbytes for array in arrays])


class ClassPastView(NamedTuple):
    """An immutable view that predicts the next row."""

    # (EXPERTS - 1, K) what expert 2 adds to expert 1, and the scores of experts 3 and 4.
    said: Float64Array
    beta: Float64Array  # this and the following: fields of `Combination`
    a: Float64Array
    weight: Float64Array
    noise: Float64Array
    counts: Float64Array

    def answer(self, answers: ClassAnswers) -> ClassAnswers:
        """Return the predictions with the labels before for `answers` without them."""
        n, classes = answers.probability.shape
        probability, scores = np.zeros((n, classes)), np.empty((EXPERTS, classes))
        room, awake_all = np.empty((len(self.weight), classes)), np.ones(len(self.weight), np.bool_)
        _answer(*self, answers.probability, scores, room, awake_all, probability)
        return ClassAnswers(probability.argmax(axis=1), probability)

    def direction(self, answers: ClassAnswers, direction: Float64Array) -> Float64Array:
        """Return the gradient (K,) of sum_k direction_k log P_k in the log p_k.

        answers: p of one row without the labels before; P are the probabilities with them.
        direction: (K,).
        """
        p = answers.probability[0]
        scores = np.empty((EXPERTS, len(p)))
        _write_scores(p, self.said, len(p), scores)
        beta, a, noise, counts = self.beta, self.a, self.noise, self.counts
        whole = Combination(beta, beta, a, a, np.array(STEPS), self.weight, noise, noise, counts)
        d_scores = score_gradient(whole, scores, np.ones(EXPERTS, np.bool_), direction)
        gradient = np.where(p > LEAST, d_scores[0] + d_scores[1], 0.0)
        return np.asarray(gradient - gradient.mean())


def new_class_past() -> ClassPast:
    """Return the statistics before any label."""
    combination = new_combination(_FIRST_WEIGHTS, STEPS, noisy=False)
    combination.a[:] = 0.0
    combination.a[:, 0] = 1.0
    return ClassPast(
        table=np.zeros((0, 0)),
        share=np.zeros((2, 0)),
        stay=np.zeros(2),
        last=np.array([-1], np.int64),
        combination=combination,
    )


def with_classes(past: ClassPast, classes: int) -> ClassPast:
    """Return the statistics for `classes` classes, not fewer than before."""
    more = classes - len(past.table)
    table = np.pad(past.table, ((0, more), (0, more)))
    return past._replace(table=table, share=np.pad(past.share, ((0, 0), (0, more))))


def class_past_arrays(past: ClassPast) -> dict[str, NDArray[Any]]:
    """Return a copy, as named plain arrays."""
    arrays = {name: array.copy() for name, array in past._asdict().items() if name != "combination"}
    return arrays | combination_arrays("combination", past.combination)


def class_past_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> ClassPast:
    """Return a copy of what `class_past_arrays` returned."""
    table, share, stay = (np.array(arrays[name]) for name in ("table", "share", "stay"))
    combination = combination_from_arrays("combination", arrays)
    return ClassPast(table, share, stay, np.array(arrays["last"]), combination)


class ClassPasts:
    """Learns labels into a `ClassPast`, in reused memory."""

    def __init__(self) -> None:
        self._combiner = Combiner(_WEIGHTS)

    def learn(
        self,
        past: ClassPast,
        answers: ClassAnswers,
        y: NDArray[np.int64],
        known: NDArray[np.int64],
        weight: Float64Array,
    ) -> tuple[ClassAnswers, Float64Array]:
        """Predict rows with the labels before each, then learn its label.

        past: of all K classes; is updated.
        answers: the predictions without the labels before.
        y: (n,) class codes.
        known: (n,) how many classes were known before each row.
        weight: (n,) weights of the rows.

        Returns the predictions, and the log losses (n, experts and stackers), NaN where there is
        none.
        """
        n, classes = answers.probability.shape
        scores, awake = np.empty((n, EXPERTS, classes + 1)), np.empty((n, EXPERTS), np.bool_)
        _learn(*past[:4], answers.probability, y, known, weight, scores, awake)
        combine = self._combiner.combine
        probability, losses = combine(past.combination, scores, awake, y, known, weight)
        prediction = probability.argmax(axis=1)
        if known[0] == 0:
            prediction[known == 0] = -1
        return ClassAnswers(prediction, probability), losses


def view_of(past: ClassPast) -> ClassPastView | None:
    """Return an immutable view for the next row; None before any label."""
    if past.last[0] < 0:
        return None
    said = np.empty((EXPERTS - 1, len(past.table)))
    _say(past.table, past.share, past.stay, past.last, said)
    c = past.combination
    changing = c.beta.copy(), c.a.copy(), c.weight.copy()
    return ClassPastView(said, *changing, c.noise, c.counts.copy())


@compiled
def _learn(
    table: Float64Array,
    share: Float64Array,
    stay: Float64Array,
    last: NDArray[np.int64],
    probability: Float64Array,
    y: NDArray[np.int64],
    known: NDArray[np.int64],
    weight: Float64Array,
    scores: Float64Array,
    awake: NDArray[np.bool_],
) -> None:
    """Write the scores (n, EXPERTS, K + 1) of rows and who is awake; learn their labels."""
    for i in range(len(y)):
        said, before = scores[i, 1:], last[0]
        for e in range(EXPERTS):
            # Without a label before, only expert 1 has scores.
            awake[i, e] = e == 0 or before >= 0
        if before >= 0:
            _write_said(table[before], share, stay, before, known[i], said)
            _write_scores(probability[i], said, known[i], scores[i])
        else:
            for e in range(1, EXPERTS):
                for k in range(known[i]):
                    scores[i, e, k] = 0.0
            for k in range(known[i]):
                scores[i, 0, k] = np.log(larger(probability[i, k], LEAST))
        _learn_label(table, share, stay, before, y[i], weight[i])
        last[0] = y[i]


@compiled
def _say(
    table: Float64Array,
    share: Float64Array,
    stay: Float64Array,
    last: NDArray[np.int64],
    said: Float64Array,
) -> None:
    _write_said(table[last[0]], share, stay, last[0], said.shape[1], said)


@compiled
def _answer(
    said: Float64Array,
    beta: Float64Array,
    a: Float64Array,
    weight: Float64Array,
    noise: Float64Array,
    counts: Float64Array,
    probability: Float64Array,
    scores: Float64Array,
    room: Float64Array,
    awake_all: NDArray[np.bool_],
    aided: Float64Array,
) -> None:
    c = Combination(beta, beta, a, a, beta, weight, noise, noise, counts)
    awake = awake_all[:EXPERTS]
    for i in range(len(probability)):
        _write_scores(probability[i], said, scores.shape[1], scores)
        combine_row(c, scores, awake, scores.shape[1], room, awake_all, aided[i])


@inner
def _write_said(
    after: Float64Array,
    share: Float64Array,
    stay: Float64Array,
    before: int,
    classes: int,
    said: Float64Array,
) -> None:
    """Write `ClassPastView.said` after the label `before`, whose row of the table is `after`."""
    total, all_after, short_total = 0.0, 0.0, 0.0
    for k in range(classes):
        total += share[0, k] + _ONE_OF
        short_total += share[1, k] + _SHORT_ONE_OF
        all_after += after[k]
    s = (stay[0] + 1.0) / (stay[1] + 2.0)
    other = np.log((1.0 - s) / larger(classes - 1.0, 1.0))
    for k in range(classes):
        q = (share[0, k] + _ONE_OF) / total
        said[0, k] = np.log((after[k] + PRIOR * q) / ((all_after + PRIOR) * q))
        said[1, k] = np.log(s) if k == before else other
        said[2, k] = np.log((share[1, k] + _SHORT_ONE_OF) / short_total)


@inner
def _write_scores(p: Float64Array, said: Float64Array, classes: int, scores: Float64Array) -> None:
    """Write the experts' scores (EXPERTS, K); `said` may be `scores[1:]`."""
    for k in range(classes):
        scores[0, k] = np.log(larger(p[k], LEAST))
        scores[1, k] = scores[0, k] + said[0, k]
        scores[2, k] = said[1, k]
        scores[3, k] = said[2, k]


@inner
def _learn_label(
    table: Float64Array,
    share: Float64Array,
    stay: Float64Array,
    before: int,
    label: int,
    weight: float,
) -> None:
    if before >= 0:
        for k in range(len(table)):
            table[before, k] *= _KEPT
        table[before, label] += weight
        stay[0] = _STAY_KEPT * stay[0] + (weight if label == before else 0.0)
        stay[1] = _STAY_KEPT * stay[1] + weight
    for k in range(len(table)):
        share[0, k] *= _KEPT
        share[1, k] *= _SHORT_KEPT
    share[0, label] += weight
    share[1, label] += weight

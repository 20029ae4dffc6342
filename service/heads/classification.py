"""Classification head: known labels, a learner of their codes, and a prequential score."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wolfstream.service.errors import InvalidSamples, Untrained, refuse
from wolfstream.service.heads.class_scores import Hits, class_scores
from wolfstream.service.heads.learner_head import NOT_JUDGED, LearnerHead, LearnerHeadView
from wolfstream.service.heads.online_learner import ClassLearner, Relearn
from wolfstream.service.heads.protocol import Answers, Predictions
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.validation import Costs, Samples
from wolfstream.solver.adaptive.bank import BankLearnerView
from wolfstream.solver.arrays import Float64Array, to_lists
from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.calibration.costs import cheapest
from wolfstream.solver.labels import LabelKey, key_of, text_of
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.sample_weights import Weights, weights_of
from wolfstream.solver.stream.calibrated_classifier import (
    CalibratedClassifier,
    CalibratedClassifierView,
)
from wolfstream.solver.stream.chain import Chain, chained
from wolfstream.solver.stream.explanations import Contest
from wolfstream.solver.stream.reasons import MemberPulls
from wolfstream.solver.stream.votes import NO_INPUTS, HeadAnswer, HeadInputs

L = TypeVar("L", bound=ClassLearner)


@dataclass(frozen=True, eq=False)
class ClassificationView(LearnerHeadView):
    """An immutable view of the head."""

    head: CalibratedClassifierView
    score: Hits

    @property
    @override
    def lacks(self) -> str:
        return self.head.lacks

    @property
    def classes(self) -> tuple[Label, ...]:
        """The known labels, in the order in which they first came."""
        return self.head.classes

    @property
    @override
    def rare_classes(self) -> list[Label]:
        return [self.classes[code] for code in self.score.rare()]

    @property
    @override
    def label_counts(self) -> Sequence[int]:
        return self.score.met

    @property
    @override
    def scores(self) -> dict[str, Any]:
        confidence, prequential = self.head.confidence, self.score.to_dict()
        ranked = {"recent": confidence.recent_ranking_scores, "overall": confidence.ranking_scores}
        majority = {
            "recent": prequential["recent_majority_accuracy"],
            "overall": prequential["majority_accuracy"],
        }
        return {
            over: class_scores(self.classes, tally.confusion, majority[over], ranked[over])
            for over, tally in self.score.tallies().items()
        }

    @override
    def latest(self, n: int) -> list[tuple[Label, Label]]:
        return [(self.classes[guess], self.classes[code]) for guess, code in self.score.latest(n)]

    @property
    def source(self) -> dict[str, Any]:
        """The labels, in the order of the columns of `decision`."""
        return {"classes": list(self.classes)}

    def predict(self, X: Matrix, inputs: HeadInputs = NO_INPUTS) -> Predictions:
        """Return labels and decisions for finite rows. Raises Untrained, InvalidSamples."""
        if self.lacks:
            raise Untrained(f"the head {self.lacks}")
        return self._predictions(self.head.predict(X, inputs))

    def chained(self, chain: Chain, bank: BankLearnerView, rows: HeadRows) -> Predictions:
        """Return predictions for dense prepared rows, by the chain of a bank's head."""
        return self._predictions(chained(chain, self.head._replace(learner=bank), rows))

    def _predictions(self, head_answer: HeadAnswer) -> Predictions:
        classes = self.classes
        labels = [classes[code] for code in head_answer.prediction.tolist()]
        return Predictions(labels, to_lists(head_answer.decisions[0]), head_answer)

    @override
    def contests(self, head_answer: HeadAnswer) -> list[Contest]:
        return self.head.contests(head_answer)

    @override
    def pulls(self, x: Matrix, wanted: int, other: int) -> MemberPulls | None:
        return self.head.pulls(x, wanted, other)

    @override
    def probabilities(self, head_answer: HeadAnswer) -> dict[str, Any]:
        return {"probability": to_lists(self._probability(head_answer))}

    @override
    def covering(self, head_answer: HeadAnswer, confidence: float) -> dict[str, Any]:
        confidence_in_answer = self.head.confidence_of(head_answer)
        inside = confidence_in_answer.sets(self._probability(head_answer), confidence)
        return {
            "prediction_set": [[self.classes[k] for k in np.flatnonzero(row)] for row in inside]
        }

    @override
    def cheapest(self, head_answer: HeadAnswer, costs: Costs) -> dict[str, Any]:
        cost = _cost_matrix(costs, self.classes)
        codes, expected = cheapest(self._probability(head_answer), cost)
        return {
            "prediction": [self.classes[code] for code in codes.tolist()],
            "expected_cost": to_lists(expected),
        }

    def _probability(self, head_answer: HeadAnswer) -> Float64Array:
        probability = self.head.probabilities(head_answer)
        if probability is None:
            raise Untrained(NOT_JUDGED)
        return probability


class ClassificationHead(LearnerHead[L, CalibratedClassifier[L], Hits]):
    """A learner of class codes, the labels of the classes, and a prequential score.

    Args:
        learner: learns and predicts codes.
        log_scores: whether the learner's scores are logarithms of probabilities.
    """

    def __init__(self, learner: L, *, log_scores: bool = False) -> None:
        self.learner = learner
        self._head = CalibratedClassifier(learner, learner.voters, log_scores=log_scores)
        self._score = Hits()

    @property
    def classes(self) -> list[Label]:
        """The known labels, in the order in which they first came."""
        return self._head.classes

    def meet(self, labels: Iterable[Label]) -> list[int]:
        """Return the codes of labels; new labels get the next codes, in this order."""
        return self._head.meet(labels)

    def check(self, samples: Samples, drafted: set[LabelKey], most_classes: int) -> set[LabelKey]:
        """Refuse rows that the learner cannot learn, and too many labels; see `Head.check`."""
        self.learner.check(samples.X)
        keys = set(map(key_of, set(samples.y)))
        new = keys.difference(self._head.numbers) | drafted
        if len(new) + len(self.classes) > most_classes:
            raise InvalidSamples(
                f"more than {most_classes} different labels; if y is a number to be regressed, "
                'create the model with "task": "regression"'
            )
        return new

    def absorb(
        self,
        X: Matrix,
        y: list[Label],
        inputs: HeadInputs = NO_INPUTS,
        weight: Weights = None,
        earlier_predictions: Sequence[Any] | None = None,
    ) -> Answers:
        """Predict each sample, then learn it, in order; the same live and in replay.

        The log loss leaves out rows with `earlier_predictions`: their probabilities are unknown.
        """
        head_answer, codes = self._head.learn(X, y, inputs, weight)
        predicted = head_answer.prediction
        if earlier_predictions is None:
            self._score.count(codes, predicted, head_answer.probability)
        else:
            self._score.count(codes, self._codes_of(earlier_predictions))
        decision = [value for part in head_answer.decisions for value in _decisions(part)]
        classes = self.classes
        labels = [classes[code] if code >= 0 else None for code in predicted.tolist()]
        more = self.learner.columns(head_answer.parts)
        return Answers(labels, decision, head_answer, more.get("admitted"), more.get("step"))

    def _codes_of(self, predictions: Sequence[Any]) -> NDArray[np.int64]:
        """Return the codes of predictions; -1 for None and for an unknown label."""
        code_of = {key_of(label): code for code, label in enumerate(self.classes)}
        return np.array([code_of.get(key_of(label), -1) for label in predictions], np.int64)

    def passes(self, rows: HeadRows, y: list[Label], weight: Weights = None) -> "ClassPasses":
        """Return an object that learns these samples repeatedly."""
        return ClassPasses(self, rows, y, weight)

    @property
    def calibration(self) -> ClassCalibration:
        """The calibration, learned from predictions made before learning."""
        return self._head.calibration

    def view(self) -> ClassificationView:
        """Return an immutable view for predictions and descriptions."""
        view = self.learner.view()
        head = self._head.view(view)
        return ClassificationView(view, head, self._score.copy())

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain data and arrays from which `restore` continues bit for bit."""
        plain, arrays = super().state()
        return {"classes": list(self.classes), **plain}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.meet(plain["classes"])
        super().restore(plain, arrays)


class ClassPasses:
    """Passes over labelled rows; see `Passes`."""

    def __init__(
        self,
        head: ClassificationHead[Any],
        rows: HeadRows,
        labels: list[Label],
        weight: Weights = None,
    ) -> None:
        self.score = Hits()
        self._head, self._X, self._labels, self._weight = head, rows.X, labels, weight
        self._relearn: Relearn = head.learner.relearning(len(labels), rows.codes)
        self._new = len(labels)  # samples that no pass has learned yet
        self.standing: Callable[[], dict[str, Any]] = head.learner.standing

    def learn(self, part: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Learn the samples with these indices; return their codes and the predictions before."""
        codes = np.array(self._head.meet(self._labels[i] for i in part), np.int64)
        weight = weights_of(self._weight, part)
        answer = self._relearn(part, take_rows(self._X, part), codes, weight)
        if self._new > 0:
            self._new -= len(part)
            head_answer = HeadAnswer(tuple(self._head.classes), [answer])
            self._head.calibration.absorb(head_answer.scores, codes)
        return codes, answer.prediction


def _cost_matrix(costs: Costs, classes: Sequence[Label]) -> Float64Array:
    """Return (K, K) costs by code: by default 0 for a correct prediction and 1 for a mistake.

    Raises InvalidSamples for an unknown label.
    """
    code_of = {text_of(label): code for code, label in enumerate(classes)}
    cost = 1.0 - np.eye(len(classes))
    for true, row in costs.items():
        for predicted, value in row.items():
            for label in (true, predicted):
                if label not in code_of:
                    met = ", ".join(list(code_of)[:10])
                    refuse("/costs", f"{label[:40]!r} is no label that the model has met: {met}")
            cost[code_of[true], code_of[predicted]] = value
    return cost


def _decisions(decision: Float64Array) -> list[Any]:
    """Return decisions as plain data: None for NaN, lists without the classes that were unknown."""
    if decision.ndim == 1:
        return [None if value != value else value for value in decision.tolist()]
    rows = decision.tolist()
    return [[value for value in row if value == value] or None for row in rows]

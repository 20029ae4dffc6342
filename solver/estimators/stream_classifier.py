"""StreamClassifier: a server's default model in process, with scikit-learn's and River's APIs."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from wolfstream.solver.adaptive.class_weights import ClassWeight
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import class_codes, parameters
from wolfstream.solver.estimators.certainty import check_confidence
from wolfstream.solver.estimators.checks import check_choice, check_positive
from wolfstream.solver.estimators.stream import OneAtATime, StreamEstimator, gradient_of
from wolfstream.solver.estimators.stream_labels import numbered
from wolfstream.solver.stream.calibrated_classifier import CalibratedClassifierView
from wolfstream.solver.stream.explanations import Explanation
from wolfstream.solver.stream.merge import merge as merge_models
from wolfstream.solver.stream.merge import sibling
from wolfstream.solver.stream.model import BANK, PaperHead, StreamModel
from wolfstream.solver.stream.votes import HeadAnswer

# What a class has at least where probabilities become logarithms.
_LEAST = 1e-300


@parameters
class StreamClassifier(ClassifierMixin, OneAtATime, StreamEstimator):
    """Any number of classes, met as they come, with calibrated probabilities.

    `partial_fit` keeps the order of its samples, as a stream does; `fit` is one pass over them in
    their order, and drops anything learned before.

    head: the learner of the papers that learns beside the bank and votes in it: "working_set",
        as where a server is sent samples, whose cost grows with the set up to 5,000 samples; or
        "asset", whose cost is constant.
    class_weight: what a mistake about a label costs: a dict, 1 for labels that it lacks, or
        "balanced": n / (K n_k), of the n samples so far of K classes, n_k of them with this label.
        `predict` returns the label of the largest weight times probability, so that rare labels are
        predicted more often; probabilities stay as they are.
    missing, timestamps, temporal, seed: see `estimators.stream.StreamEstimator`, and learners_
        there.

    Attribute: classes_.
    """

    _task = "classification"
    _multiclass = True
    _kind_in_river = "Classifier"

    head: PaperHead = "working_set"
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn n rows with labels (n,), forgetting earlier ones.

        sample_weight: (n,) how much each sample counts.

        Raises ValueError for what cannot be learned.
        """
        self._check_parameters()
        self._forget()
        rows, y, weight = self._samples(X, y, sample_weight)
        self.classes_, codes = class_codes(y)
        self._declared = False
        self._learn_parts(rows, codes.tolist(), self.head, weight)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn n rows with labels (n,) in their order, on top of what was learned.

        classes: all labels that may come, which scikit-learn's own estimators ask for in the
            first call; any other label is refused from then on. Without it every call may bring
            new classes, as in the server: they follow those in `classes_`, in ascending order.
        sample_weight: (n,) how much each sample counts.

        Raises ValueError for rows or labels that cannot be learned; nothing is learned then.
        """
        self._check_parameters()
        first = not hasattr(self, "_model")
        rows, y, weight = self._samples(X, y, sample_weight)
        known = None if first else self.classes_
        declared = classes is not None if first else self._declared
        self.classes_, places = numbered(known, y, classes, declared)
        self._declared = declared
        self._learn(rows, places.tolist(), self.head, weight)
        return self

    @property
    def declared(self) -> bool:
        """Whether the first call declared all classes. Raises NotFittedError."""
        check_is_fitted(self)
        return self._declared

    def sibling(self) -> Self:
        """Return a classifier that has learned nothing, to learn other samples beside this one.

        It has the same columns and random features, which the first samples have settled: 128 of
        a table by name, or where head="asset". `wolfstream.merge` makes one classifier of both.

        Raises ValueError where these are not settled yet, or the model cannot be merged.
        """
        check_is_fitted(self)
        beside = type(self)(**self.get_params())
        features = self.csr_features
        return beside.resume(
            sibling(self._model), self.classes_, declared=self._declared, csr_features=features
        )

    def resume(
        self,
        model: StreamModel,
        classes: NDArray[Any],
        *,
        declared: bool = False,
        csr_features: int | None = None,
    ) -> Self:
        """Go on from a model of these parameters that has learned samples elsewhere.

        classes: labels, which the model knows by their places.
        declared: whether no others may come.
        csr_features: columns of the rows if they are scipy CSR; None if they are not.
        """
        self._resume(model, csr_features)
        self.classes_, self._declared = classes, declared
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels of n rows."""
        head_answer = self._head_answer(self._rows(X))
        return np.asarray(self.classes_[self._order()[head_answer.prediction]])

    def predict_proba(self, X: Any) -> Float64Array:
        """Return the probabilities (n, classes) of the classes in `classes_`."""
        return self._probability(self._head_answer(self._rows(X)))

    def predict_set(self, X: Any, confidence: float = 0.9) -> NDArray[np.bool_]:
        """Return which classes, (n, classes), are in prediction sets of this confidence.

        Raises ValueError for a confidence that is not between 0 and 1.
        """
        head_answer, asked = self._head_answer(self._rows(X)), check_confidence(confidence)
        head = self._model.view().heads[BANK]
        assert isinstance(head, CalibratedClassifierView)
        return head.confidence_of(head_answer).sets(self._probability(head_answer), asked)

    def explain(self, X: Any, most: int = 5) -> list[dict[str, Any]]:
        """Return why the label of each row is predicted, and not the likeliest other one.

        "for", "against": the two labels. "log_odds": log(p_for / p_against). "gradient": the
        features that move it most, each a dict of feature (name or place), category, gradient by
        its unit, and its deviation so far. "values", with texts or codes: those that matter most,
        each a dict of feature, value, and the log-odds without it. "members", with a working set:
        those that pull most "for" and "against" in its own decision, each a dict of sequence (the
        place of the sample in the stream, from 1), label, weight, kernel, and pull, which is weight
        times kernel.

        Raises ValueError for wide and sparse rows, which the bank hashes.
        """
        return [self._plain(one, most) for one in self._explained(X, most)]

    def _plain(self, explanation: Explanation, most: int) -> dict[str, Any]:
        labels, contest = self.classes_[self._order()].tolist(), explanation.contest
        assert contest is not None
        found = {
            "for": labels[contest.wanted],
            "against": labels[contest.other],
            "log_odds": contest.log_odds,
            "gradient": gradient_of(explanation, most),
        }
        if explanation.values is not None:
            found["values"] = [value._asdict() for value in explanation.values[:most]]
        if explanation.members is not None:
            found["members"] = explanation.members.strongest(labels, most)
        return found

    def decision_function(self, X: Any) -> Float64Array:
        """log(p_1 / p_0) of two classes, (n,), positive for classes_[1]; else log p, (n, classes).

        A class that was declared and never met has the least logarithm.
        """
        logs = np.log(np.maximum(self.predict_proba(X), _LEAST))
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of named values that counts w. Raises ValueError, TypeError."""
        self.partial_fit([x], [y], sample_weight=None if w == 1.0 else [w])

    def predict_one(self, x: Mapping[Any, Any]) -> Any:
        """Return the label of a row of named values; None before the first sample."""
        return self.predict([x]).tolist()[0] if hasattr(self, "_model") else None

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the probability of each class met so far; empty before the first sample."""
        if not hasattr(self, "_model"):
            return {}
        probability = self.predict_proba([x])[0]
        return dict(zip(self.classes_.tolist(), probability.tolist(), strict=True))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("head", self.head, ("working_set", "asset"))
        given = self.class_weight
        if isinstance(given, Mapping):
            for label, weight in given.items():
                check_positive(f"class_weight[{label!r}]", weight)
        elif given is not None:
            check_choice("class_weight", given, ("balanced",))

    def _class_weight(self) -> ClassWeight | None:
        given: Any = self.class_weight
        if not isinstance(given, Mapping):
            return given if given is None else "balanced"
        codes = {label: str(code) for code, label in enumerate(self.classes_.tolist())}
        return {codes[label]: float(weight) for label, weight in given.items() if label in codes}

    def _order(self) -> NDArray[np.int64]:
        """The place in `classes_` of each class of the model, which numbers them as they come."""
        return np.array(self._model.classes, np.int64)

    def _probability(self, head_answer: HeadAnswer) -> Float64Array:
        found = head_answer.probability
        assert found is not None
        probability = np.zeros((len(found), len(self.classes_)))
        probability[:, self._order()] = found
        return probability


def merge(models: Sequence[StreamClassifier]) -> StreamClassifier:
    """Return the classifier of all samples that a classifier and its `sibling`s have learned.

    They stay as they are, and may learn on and be merged again. Ridge learners are added, which
    is exact for a square loss without a horizon; first-order learners, temperatures and shares
    are averaged; the working set holds the support vectors of all at weights whose duality gap is
    at most a hundredth of the objective, if 30 passes suffice; ASSET is averaged (P3, conclusion).
    Probabilities and sets keep the calibration of the parts.

    Raises ValueError, with the reason, for models that cannot be merged: of other parameters, with
    temporal=True, or with names or categories of which not all know; and NotFittedError.
    """
    if not models:
        raise ValueError("there is no model to merge")
    classes = np.unique(np.concatenate([one.classes_ for one in models]))
    known = [one.classes_[np.array(one.model.classes, np.int64)] for one in models]
    labels = [np.searchsorted(classes, of_one).tolist() for of_one in known]
    merged = merge_models([one.model for one in models], labels)
    first = models[0]
    result = StreamClassifier(**first.get_params())
    return result.resume(merged, classes, declared=first.declared, csr_features=first.csr_features)

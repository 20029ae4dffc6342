"""Compares predictions with labels or targets: scores by class, errors of numbers."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.files.labelled import Label
from wolfstream.service.heads.class_scores import class_scores, kappa
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.ranking import Ranking, no_ranking, overall_scores, with_rows
from wolfstream.solver.labels import LabelKey, key_of


@dataclass
class Evaluation:
    """Counts of (label, prediction) pairs.

    Attributes:
        classes: the model's classes; [] if they are unknown.
        pairs: the count of each pair.
        ranking: counts of probabilities, from which ranking scores are computed.
        seconds: the time spent predicting, without reading.
    """

    classes: list[Label]
    pairs: Counter[tuple[Label, Label]] = field(default_factory=Counter)
    ranking: Ranking = field(default_factory=no_ranking)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        # key -> the first spelling of a label: 1, "1" and true are one class.
        self._spelling: dict[LabelKey, Label] = {key_of(label): label for label in self.classes}

    def count(
        self,
        labels: Sequence[Label],
        predicted: Sequence[Label],
        probability: Float64Array | None = None,
    ) -> None:
        """Count predictions; classes are spelled as the model spells them.

        Args:
            labels: the labels of n samples.
            predicted: the predicted labels.
            probability: probabilities of the model's classes, (n, K), if known.
        """
        guesses = [self._spelled(label) for label in predicted]
        truths = [self._spelled(label) for label in labels]
        self.pairs.update(zip(truths, guesses, strict=True))
        if probability is not None:
            code_of = self._codes()
            codes = np.array([code_of[label] for label in truths], np.int64)
            self.ranking = with_rows(self.ranking, probability, codes, 0)

    def _spelled(self, label: Label) -> Label:
        """Return a label in its first spelling."""
        return self._spelling.setdefault(key_of(label), label)

    def _codes(self) -> dict[Label, int]:
        return {label: code for code, label in enumerate(self.labels)}

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.pairs.total()

    @property
    def accuracy(self) -> float:
        """The share of correct predictions."""
        right = sum(count for (label, predicted), count in self.pairs.items() if label == predicted)
        return right / max(self.samples, 1)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None if all labels and predictions are of one class."""
        confusion = self.confusion()
        labels, predicted = (confusion.sum(axis=axis).tolist() for axis in (1, 0))
        return kappa(labels, predicted, int(confusion.trace()))

    def to_text(self) -> str:
        """Return the score in a few words."""
        agreement = "-" if self.kappa is None else f"{self.kappa:.4f}"
        return f"accuracy {self.accuracy:.2%}, kappa {agreement}"

    @property
    def labels(self) -> list[Label]:
        """The model's classes, followed by other labels and predictions."""
        others = (label for pair in self.pairs for label in pair)
        return list(dict.fromkeys([*self.classes, *others]))

    def confusion(self) -> NDArray[np.int64]:
        """Return (K, K) counts in the order of `labels`; rows are labels, columns predictions."""
        codes = self._codes()
        counts = np.zeros((len(codes), len(codes)), np.int64)
        for (label, predicted), count in self.pairs.items():
            counts[codes[label], codes[predicted]] += count
        return counts

    def scores(self) -> dict[str, Any]:
        """Return the scores of classes; `majority` is the share of the most frequent label."""
        confusion = self.confusion()
        most = int(confusion.sum(axis=1).max(initial=0))
        majority = most / self.samples if self.samples else None
        return class_scores(self.labels, confusion, majority, overall_scores(self.ranking))


@dataclass
class RegressionEvaluation:
    """Sums over errors and targets.

    Attributes:
        samples: the number of samples.
        absolute, square: the sums of absolute and of squared errors.
        centre, scatter: the mean of the targets, and the sum of their squared deviations. They are
            updated with each sample (Welford), so a large mean costs no precision.
        seconds: the time spent predicting, without reading.
    """

    samples: int = 0
    absolute: float = 0.0
    square: float = 0.0
    centre: float = 0.0
    scatter: float = 0.0
    seconds: float = 0.0

    def count(self, targets: Sequence[Any], predicted: Sequence[Any]) -> None:
        """Count the targets and predictions of n samples."""
        for y, value in zip(targets, predicted, strict=True):
            self.samples += 1
            error = value - y
            self.absolute += abs(error)
            self.square += error * error  # infinite where `error**2` would raise
            before = y - self.centre
            self.centre += before / self.samples
            self.scatter += before * (y - self.centre)

    @property
    def mae(self) -> float:
        """The mean absolute error."""
        return self.absolute / max(self.samples, 1)

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return math.sqrt(self.square / max(self.samples, 1))

    @property
    def r2(self) -> float | None:
        """1 - square / scatter; None if all targets are equal, or too large to be squared."""
        return 1.0 - self.square / self.scatter if 0.0 < self.scatter < math.inf else None

    def to_text(self) -> str:
        """Return the score in a few words."""
        r2 = "-" if self.r2 is None else f"{self.r2:.4f}"
        return f"MAE {self.mae:.6g}, RMSE {self.rmse:.6g}, R2 {r2}"

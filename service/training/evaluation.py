"""How predictions compare with labels: accuracy, kappa, classes, confusions; errors of numbers."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table
from rich.text import Text

from wolfstream.service.errors.visible_text import visible
from wolfstream.service.files.labelled import Label
from wolfstream.service.heads.hits import kappa

# A larger confusion matrix is no longer read, and no longer fits a screen.
_LARGEST_MATRIX = 20


@dataclass
class Evaluation:
    """Counts of (label, prediction) pairs. classes: those that the model knows.

    seconds: spent predicting, not reading.
    """

    classes: list[Label]
    pairs: Counter[tuple[Label, Label]] = field(default_factory=Counter)
    seconds: float = 0.0

    def count(self, labels: Sequence[Label], predicted: Sequence[Label]) -> None:
        """Take predictions into account."""
        self.pairs.update(zip(labels, predicted, strict=True))

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.pairs.total()

    @property
    def accuracy(self) -> float:
        """Share of right predictions."""
        right = sum(count for (label, predicted), count in self.pairs.items() if label == predicted)
        return right / max(self.samples, 1)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None if labels and predictions are all of one class."""
        given: Counter[Label] = Counter()
        claimed: Counter[Label] = Counter()
        for (label, predicted), count in self.pairs.items():
            given[label] += count
            claimed[predicted] += count
        met = given.keys() | claimed.keys()
        right = sum(self.pairs[label, label] for label in met)
        return kappa([given[k] for k in met], [claimed[k] for k in met], right)

    def to_text(self) -> str:
        """Return the score in a few words."""
        agreement = "-" if self.kappa is None else f"{self.kappa:.4f}"
        return f"accuracy {self.accuracy:.2%}, kappa {agreement}"

    @property
    def labels(self) -> list[Label]:
        """The model's classes, followed by the file's other labels."""
        return list(dict.fromkeys([*self.classes, *(label for label, _ in self.pairs)]))

    def of_class(self, label: Label) -> tuple[int, float | None, float | None]:
        """Return samples of a class, precision and recall; None if the divisor is zero."""
        right = self.pairs[label, label]
        count = sum(n for (given, _), n in self.pairs.items() if given == label)
        claimed = sum(n for (_, predicted), n in self.pairs.items() if predicted == label)
        return count, right / claimed if claimed else None, right / count if count else None


@dataclass
class RegressionEvaluation:
    """Sums over errors and over true values. seconds: as in `Evaluation`.

    centre, scatter: mean of the targets and sum of their squared distances from it, each
    sample at its time (Welford), so that a large mean costs no digits.
    """

    samples: int = 0
    absolute: float = 0.0
    square: float = 0.0
    centre: float = 0.0
    scatter: float = 0.0
    seconds: float = 0.0

    def count(self, targets: Sequence[Any], predicted: Sequence[Any]) -> None:
        """Take predictions, numbers like the targets, into account."""
        for y, value in zip(targets, predicted, strict=True):
            self.samples += 1
            self.absolute += abs(value - y)
            self.square += (value - y) ** 2
            before = y - self.centre
            self.centre += before / self.samples
            self.scatter += before * (y - self.centre)

    @property
    def mae(self) -> float:
        """Mean absolute error."""
        return self.absolute / max(self.samples, 1)

    @property
    def rmse(self) -> float:
        """Root of the mean squared error."""
        return math.sqrt(self.square / max(self.samples, 1))

    @property
    def r2(self) -> float | None:
        """1 - squared errors / squared distances from the mean; None if the latter are zero."""
        return 1.0 - self.square / self.scatter if self.scatter > 0.0 else None

    def to_text(self) -> str:
        """Return the score in a few words."""
        r2 = "-" if self.r2 is None else f"{self.r2:.4f}"
        return f"MAE {self.mae:.6g}, RMSE {self.rmse:.6g}, R2 {r2}"


def tables(result: Evaluation) -> list[Table]:
    """Precision, recall and count of each class; and the confusion matrix, if it is small."""
    labels = sorted(result.labels, key=lambda label: (isinstance(label, str), label))
    by_class = Table(box=None, pad_edge=False)
    by_class.add_column("class")
    for heading in ("precision", "recall", "samples"):
        by_class.add_column(heading, justify="right")
    for label in labels:
        count, precision, recall = result.of_class(label)
        known = "" if label in result.classes else " (unknown to the model)"
        numbers = _share(precision), _share(recall), f"{count:,}"
        by_class.add_row(_shown(label) + known, *numbers)
    if len(labels) > _LARGEST_MATRIX:
        return [by_class]
    matrix = Table(box=None, pad_edge=False)
    matrix.add_column("label \\ prediction")
    for label in labels:
        matrix.add_column(_shown(label), justify="right")
    for label in labels:
        counts = (result.pairs[label, predicted] for predicted in labels)
        matrix.add_row(_shown(label), *(f"{n:,}" if n else "." for n in counts))
    return [by_class, matrix]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


def _shown(label: Label) -> Text:
    """Return a label as it is, where a table would take [b] for markup."""
    return Text(visible(str(label)))

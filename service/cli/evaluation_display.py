"""The display of an evaluation: scores by class, and the confusion matrix."""

from typing import Any

from rich.table import Table
from rich.text import Text

from wolfstream.service.errors import visible
from wolfstream.service.files.labelled import Label
from wolfstream.service.offline.evaluation import Evaluation
from wolfstream.solver.labels import text_of

# A larger confusion matrix would not fit a screen.
_LARGEST_MATRIX = 20


def balance(scores: dict[str, Any]) -> str:
    """Return a line of scores that tell more than accuracy if one class dominates."""
    words = {
        "majority": "always the most frequent label",
        "balanced_accuracy": "balanced accuracy",
        "roc_auc": "ROC AUC",
        "average_precision": "average precision",
    }
    values = ((word, scores.get(name)) for name, word in words.items())
    return ", ".join(f"{word} {value:.2%}" for word, value in values if value is not None)


def tables(result: Evaluation) -> list[Table]:
    """Return a table of scores by class and, for few classes, the confusion matrix."""
    by_label = result.scores()["classes"]
    labels = sorted(result.labels, key=lambda label: (isinstance(label, str), label))
    by_class = Table(box=None, pad_edge=False)
    by_class.add_column("class")
    for heading in ("precision", "recall", "F1", "samples"):
        by_class.add_column(heading, justify="right")
    for label in labels:
        row = by_label[text_of(label)]
        note = "" if label in (result.classes or labels) else " (unknown to the model)"
        shares = (_share(row[name]) for name in ("precision", "recall", "f1"))
        by_class.add_row(_shown(label) + note, *shares, f"{row['support']:,}")
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
    """Return a label as `Text`: in a plain string, rich would read [b] as markup."""
    return Text(visible(str(label)))

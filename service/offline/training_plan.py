"""The plan of `wolfstream train`: its checks, and the spec of the model that it trains."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from wolfstream.service.errors import InvalidSamples
from wolfstream.service.heads.kernel import check_norms, estimated_gamma, square_norm_limit
from wolfstream.service.heads.kind import TrainingChoice
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.samples.labels import LONGEST_LABEL, Label
from wolfstream.service.samples.numbers import LARGEST_TARGET
from wolfstream.service.samples.raw_arrays import read_weight
from wolfstream.service.samples.tasks import Targets
from wolfstream.service.spec.heads import ALGORITHMS, HEADS, HeadName, TaskName, algorithms_of
from wolfstream.service.spec.kernel import KernelSpec
from wolfstream.service.spec.model import ModelSpec, read_spec
from wolfstream.solver.frank_wolfe.solve_dual import Settings
from wolfstream.solver.kernels import bandwidth
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.sample_weights import Weights

MOST_CLASSES = 100


class Data(NamedTuple):
    """All rows of a file, with their labels or targets.

    Attributes:
        X: rows; lists if there are texts or missing values.
        labels: labels or targets, (n,).
        first_index: the first feature index of an svmlight file; None for other files.
        names: the names of the columns, if known.
        weights: the weights of the samples; None if all are 1.
    """

    X: Matrix | list[list[Any]]
    labels: list[Any]
    first_index: int | None = None
    names: tuple[str, ...] | None = None
    weights: list[Any] | None = None


class Plan(NamedTuple):
    """What to train.

    Attributes:
        task: the model's task.
        algorithm: one of `spec.heads.ALGORITHMS`.
        kernel: the spec's kernel, without gamma.
        gamma: the kernel's gamma; None for P2's rule.
        options: the given options of `spec.heads.HEAD_OPTIONS`.
        class_weight: label as text -> weight; "balanced"; None for none.
        epochs: the number of passes of a stream.
        shuffle: whether each pass has a random order.
        seed: the seed of all random choices.
        batch: settings of a batch solver.
    """

    task: TaskName
    algorithm: str
    kernel: Mapping[str, Any]
    gamma: float | None
    options: Mapping[str, Any]
    class_weight: Mapping[str, float] | Literal["balanced"] | None
    epochs: int
    shuffle: bool
    seed: int
    batch: Settings

    @property
    def online(self) -> bool:
        """Whether samples are learned as a stream."""
        return ALGORITHMS[self.algorithm].way == "stream"

    @property
    def head(self) -> HeadName:
        """The head that learns, alone in its model."""
        return ALGORITHMS[self.algorithm].head


class CannotTrain(Exception):
    """The samples cannot be trained on as planned; the message says why."""


def _check_labels(labels: list[Any]) -> tuple[list[Label], Targets]:
    """Return the distinct labels, and y. Raises CannotTrain for labels that a server refuses."""
    classes = list(dict.fromkeys(labels))
    if any(isinstance(label, float) for label in classes):
        raise CannotTrain(
            "the labels are numbers with fractions: a target to be regressed, not a class; "
            "--task regression does that"
        )
    if len(classes) < 2:
        raise CannotTrain(f"there is only one class, {classes[0]!r}: two or more are needed")
    if len(classes) > MOST_CLASSES:
        raise CannotTrain(
            f"there are {len(classes):,} different labels, {MOST_CLASSES} are possible; "
            "is the label a number to be regressed (--task regression), or is it in another column?"
        )
    if any(isinstance(label, str) and len(label) > LONGEST_LABEL for label in classes):
        raise CannotTrain(f"a label is longer than {LONGEST_LABEL} characters")
    return classes, labels


def _check_targets(targets: list[Any]) -> tuple[list[Label], Targets]:
    """Return [], and y. Raises CannotTrain for targets that a server would refuse."""
    y = np.array(targets, np.float64)
    wrong = np.flatnonzero(~(np.abs(y) <= LARGEST_TARGET))
    if len(wrong):
        detail = f"y of sample {wrong[0] + 1:,} is {y[wrong[0]]:g}: beyond {LARGEST_TARGET:g}"
        raise CannotTrain(detail)
    return [], y


# task -> function that returns the distinct labels ([] for numbers), and y. Raises CannotTrain.
CHECKS: Mapping[TaskName, Callable[[list[Any]], tuple[list[Label], Targets]]] = {
    "classification": _check_labels,
    "regression": _check_targets,
}


def check_weights(weights: list[Any] | None, plan: Plan) -> Weights:
    """Return sample weights. Raises CannotTrain for weights that a server would refuse."""
    if weights is None:
        return None
    if not plan.online:
        raise CannotTrain(
            f"--weight is not used by --algorithm {plan.algorithm}: choose one that learns sample "
            f"by sample, {', '.join(algorithms_of('stream'))}"
        )
    try:
        return read_weight(weights, len(weights))
    except InvalidSamples as error:
        wrong = error.errors[0]
        raise CannotTrain(f"the weight of sample {wrong['row'] + 1:,} {wrong['detail']}") from None


def check_rows(X: Matrix, kernel: KernelSpec) -> None:
    """Raise CannotTrain for rows that a server would refuse as too large for the kernel."""
    try:
        check_norms(X, square_norm_limit(kernel))
    except InvalidSamples as error:
        wrong = error.errors[0]
        detail = f"row {wrong['row'] + 1} of the samples: {wrong['detail']}; scale the features"
        raise CannotTrain(detail) from None


def gamma_for(X: Matrix, plan: Plan) -> float | None:
    """Return the given gamma, or P2's rule for all rows; for a stream, for the first rows."""
    if plan.kernel["type"] == "linear" or plan.gamma is not None:
        return plan.gamma
    rows = take_rows(X, slice(0, bandwidth.SAMPLES)) if plan.online else X
    return estimated_gamma(plan.kernel["type"], rows)


def weights_for(
    labels: list[Label], classes: list[Label], requested: Mapping[str, float] | str | None
) -> dict[Label, float]:
    """Return class weights.

    Args:
        labels: the labels of all samples.
        classes: the distinct labels; [] for regression.
        requested: label as text -> weight; "balanced"; None for none.

    Raises CannotTrain for an unknown label, and for regression.
    """
    if requested and not classes:
        raise CannotTrain("--class-weight: a regression has no classes: leave it out")
    if isinstance(requested, Mapping):
        by_text = {str(label): label for label in classes}
        unknown = [text for text in requested if text not in by_text]
        if unknown:
            labels_text = ", ".join(by_text)[:200]
            raise CannotTrain(
                f"--class-weight: no sample has the label {unknown[0]!r}; there are: {labels_text}"
            )
        return {by_text[text]: weight for text, weight in requested.items()}
    if requested == "balanced":
        count = Counter(labels)
        return {label: len(labels) / (len(classes) * count[label]) for label in classes}
    return {}


def spec_for(
    plan: Plan, gamma: float | None, weights: Mapping[Label, float], samples: int
) -> ModelSpec:
    """Return the spec of the model, with every choice spelled out.

    Args:
        plan: what to train.
        gamma: the kernel's gamma.
        weights: the class weights.
        samples: the number of samples.

    Raises Invalid if a server would refuse the spec.
    """
    weighted = [{"label": label, "weight": weight} for label, weight in weights.items()]
    choice = TrainingChoice(plan.algorithm, plan.options, weighted, plan.batch.tol, samples)
    return read_spec(
        {
            "task": plan.task,
            "kernel": plan.kernel if gamma is None else {**plan.kernel, "gamma": gamma},
            "prepare": {} if KINDS[plan.head].prepared else None,
            **dict.fromkeys(HEADS),
            plan.head: KINDS[plan.head].spec_part(choice),
            "serve": plan.head,
            "seed": plan.seed,
        }
    )

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
from wolfstream.service.samples.tasks import Targets
from wolfstream.service.samples.weights import read_weight
from wolfstream.service.spec.heads import ALGORITHMS, HEADS, HeadName, TaskName, algorithms_of
from wolfstream.service.spec.kernel import KernelSpec
from wolfstream.service.spec.model import ModelSpec, read_spec
from wolfstream.solver.frank_wolfe.solve_dual import Settings
from wolfstream.solver.kernels import bandwidth
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.sample_weights import Weights

MOST_CLASSES = 100


class Data(NamedTuple):
    """All rows of a file, with their labels or numbers.

    Attributes:
        X: rows; lists if values are texts or missing.
        labels: labels or numbers, (n,).
        first_index: of an svmlight file; None for other files.
        names: of the columns, if they are known.
        weights: of the samples; None if all count 1.
    """

    X: Matrix | list[list[Any]]
    labels: list[Any]
    first_index: int | None = None
    names: tuple[str, ...] | None = None
    weights: list[Any] | None = None


class Plan(NamedTuple):
    """What to train.

    Attributes:
        task: of the model.
        algorithm: one of `spec.heads.ALGORITHMS`.
        kernel: of the spec, without gamma.
        gamma: of the kernel; None for P2's rule.
        options: those of `spec.heads.HEAD_OPTIONS` that have a value.
        class_weight: by a label's text; "balanced"; None for none.
        epochs, shuffle: of a stream.
        seed: of everything that is random.
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
        """Whether samples are learned one by one."""
        return ALGORITHMS[self.algorithm].way == "stream"

    @property
    def head(self) -> HeadName:
        """The head that learns, alone in its model."""
        return ALGORITHMS[self.algorithm].head


class CannotTrain(Exception):
    """No model can be trained on the samples as planned; the message says why."""


def _check_labels(labels: list[Any]) -> tuple[list[Label], Targets]:
    """Return the distinct labels, and all. Raises CannotTrain for what a server would refuse."""
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
    """Return no labels, and the numbers. Raises CannotTrain for what a server would refuse."""
    y = np.array(targets, np.float64)
    wrong = np.flatnonzero(~(np.abs(y) <= LARGEST_TARGET))
    if len(wrong):
        detail = f"y of sample {wrong[0] + 1:,} is {y[wrong[0]]:g}: beyond {LARGEST_TARGET:g}"
        raise CannotTrain(detail)
    return [], y


# task -> returns the distinct labels of all ([] of numbers), and y. Raises CannotTrain.
CHECKS: Mapping[TaskName, Callable[[list[Any]], tuple[list[Label], Targets]]] = {
    "classification": _check_labels,
    "regression": _check_targets,
}


def check_weights(weights: list[Any] | None, plan: Plan) -> Weights:
    """Return the weights of samples. Raises CannotTrain for what a server would refuse."""
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
    """Raise CannotTrain for rows that a server would refuse, because they exceed the kernel."""
    try:
        check_norms(X, square_norm_limit(kernel))
    except InvalidSamples as error:
        wrong = error.errors[0]
        detail = f"row {wrong['row'] + 1} of the samples: {wrong['detail']}; scale the features"
        raise CannotTrain(detail) from None


def gamma_for(X: Matrix, plan: Plan) -> float | None:
    """Return gamma: given, or by P2's rule from all rows; in a stream from the first ones."""
    if plan.kernel["type"] == "linear" or plan.gamma is not None:
        return plan.gamma
    rows = take_rows(X, slice(0, bandwidth.SAMPLES)) if plan.online else X
    return estimated_gamma(plan.kernel["type"], rows)


def weights_for(
    labels: list[Label], classes: list[Label], requested: Mapping[str, float] | str | None
) -> dict[Label, float]:
    """Return the weights of classes. Raises CannotTrain for an unknown label, and for numbers.

    Args:
        labels: of all samples.
        classes: the distinct labels; [] for numbers.
        requested: label as text -> weight; or "balanced"; or None.
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
        plan: of the training.
        gamma: of the kernel.
        weights: of classes.
        samples: their number.

    Raises Invalid if a server would refuse it.
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

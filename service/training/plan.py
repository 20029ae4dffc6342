"""The plan of `wolfstream train`, and the spec of the model that it trains."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from wolfstream.service.errors import InvalidSamples
from wolfstream.service.heads.kernel import check_norms, estimated_gamma, square_norm_limit
from wolfstream.service.heads.kind import Asked
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.samples.targets import LARGEST_TARGET, LONGEST_LABEL, Label
from wolfstream.service.spec.heads import ALGORITHMS, HEADS, HeadName, Task
from wolfstream.service.spec.kernel import KernelSpec
from wolfstream.service.spec.model import ModelSpec, read_spec
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.solve_dual import Settings
from wolfstream.solver.kernels import bandwidth
from wolfstream.solver.rows.matrix import Matrix, take_rows

MOST_CLASSES = 100


class Data(NamedTuple):
    """All rows with their labels or numbers. first_index: of an svmlight file's, else None.

    X: lists where values are texts or missing. names: of the columns, if they are known.
    """

    X: Matrix | list[list[Any]]
    labels: list[Any]
    first_index: int | None = None
    names: tuple[str, ...] | None = None


class Plan(NamedTuple):
    """What to train. kernel: the spec's, without gamma; gamma: None for P2's rule.

    options: those of the head's part of the spec (`spec.heads.HEAD_OPTIONS`) that have a value.
    class_weight: by a label's text. epochs, shuffle: of a stream. batch: of a batch solver.
    """

    task: Task
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


def check_labels(labels: list[Any]) -> list[Label]:
    """Return the different labels. Raises CannotTrain for what the service does not take."""
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
    return classes


def check_targets(targets: list[Any]) -> Float64Array:
    """Return the numbers to be regressed. Raises CannotTrain for what the service does not take."""
    y = np.array(targets, np.float64)
    wrong = np.flatnonzero(~(np.abs(y) <= LARGEST_TARGET))
    if len(wrong):
        detail = f"y of sample {wrong[0] + 1:,} is {y[wrong[0]]:g}: beyond {LARGEST_TARGET:g}"
        raise CannotTrain(detail)
    return y


def check_rows(X: Matrix, kernel: KernelSpec) -> None:
    """Raise CannotTrain for rows that the service would refuse: too large for the kernel."""
    try:
        check_norms(X, square_norm_limit(kernel))
    except InvalidSamples as error:
        wrong = error.errors[0]
        detail = f"row {wrong['row'] + 1} of the samples: {wrong['detail']}; scale the features"
        raise CannotTrain(detail) from None


def gamma_for(X: Matrix, plan: Plan) -> float | None:
    """P2's rule: over all rows, in a stream over the first ones, where the service settles it."""
    if plan.kernel["type"] == "linear" or plan.gamma is not None:
        return plan.gamma
    rows = take_rows(X, slice(0, bandwidth.SAMPLES)) if plan.online else X
    return estimated_gamma(plan.kernel["type"], rows)


def weights_for(
    labels: list[Label], classes: list[Label], asked: Mapping[str, float] | str | None
) -> dict[Label, float]:
    """Weights by label. Raises CannotTrain for a label that does not occur, and for numbers."""
    if asked and not classes:
        raise CannotTrain("--class-weight: a regression has no classes: leave it out")
    if isinstance(asked, Mapping):
        by_text = {str(label): label for label in classes}
        unknown = [text for text in asked if text not in by_text]
        if unknown:
            known = ", ".join(by_text)[:200]
            raise CannotTrain(f"--class-weight: no sample has the label {unknown[0]!r}: {known}")
        return {by_text[text]: weight for text, weight in asked.items()}
    if asked == "balanced":
        count = Counter(labels)
        return {label: len(labels) / (len(classes) * count[label]) for label in classes}
    return {}


def spec_for(
    plan: Plan, gamma: float | None, weights: Mapping[Label, float], samples: int
) -> ModelSpec:
    """Return the spec for so many samples, every choice a number in it.

    Raises Invalid if the service would refuse it.
    """
    weighted = [{"label": label, "weight": weight} for label, weight in weights.items()]
    asked = Asked(plan.algorithm, plan.options, weighted, plan.batch.tol, samples)
    return read_spec(
        {
            "task": plan.task,
            "kernel": plan.kernel if gamma is None else {**plan.kernel, "gamma": gamma},
            "prepare": {} if KINDS[plan.head].prepared else None,
            **dict.fromkeys(HEADS),
            plan.head: KINDS[plan.head].spec_part(asked),
            "serve": plan.head,
            "seed": plan.seed,
        }
    )

"""What `wolfstream train` is to do: the plan, and the model's spec that follows from it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from service.learner import LARGEST_POLYNOMIAL_PRODUCT
from service.semiparametric_spec import LARGEST_WINDOW
from service.spec import HeadName, ModelSpec, Task, read_spec
from service.targets import LARGEST_TARGET, Label
from solver import bandwidth
from solver.bandwidth import gamma_from_rows
from solver.kernels import LARGEST_VALUE, Kernel, largest_square_norm
from solver.rows import Float64Array, Matrix, square_norms, take_rows
from solver.solve_dual import Settings

SETS = ("msfw", "sfw")
ASSET = ("asset", "asset*")
SEMIPARAMETRIC = "semiparametric"
MOST_CLASSES = 100
DEFAULT_MAX_SIZE = 5000
_DEFAULT_WINDOW = 2000
_LONGEST_LABEL = 256


class Data(NamedTuple):
    """All rows with their labels or numbers. first_index: of an svmlight file's, else None."""

    X: Matrix
    labels: list[Any]
    first_index: int | None = None


class Plan(NamedTuple):
    """What to train. kernel: the spec's, without gamma; gamma: None for P2's rule.

    asset, semiparametric: what was asked for of the spec's part.
    max_size: None for 5,000, or twice a batch solution's support vectors if that is more.
    class_weight: by a label's text. epochs, shuffle: of a stream. batch: of a batch solver.
    """

    task: Task
    algorithm: str
    kernel: Mapping[str, Any]
    gamma: float | None
    C: float
    corrective_steps: int
    max_size: int | None
    class_weight: Mapping[str, float] | Literal["balanced"] | None
    epochs: int
    shuffle: bool
    seed: int
    asset: Mapping[str, Any]
    semiparametric: Mapping[str, Any]
    batch: Settings

    @property
    def online(self) -> bool:
        """Whether samples are learned one by one."""
        return self.algorithm in SETS + ASSET

    @property
    def head(self) -> HeadName:
        """The head that learns, alone in its model."""
        if self.algorithm == SEMIPARAMETRIC:
            return "semiparametric"
        return "asset" if self.algorithm in ASSET else "working_set"


class CannotTrain(Exception):
    """The samples and the plan do not make a model; the message says why."""


def check_labels(labels: list[Any]) -> list[Label]:
    """The different labels. Raises CannotTrain for what the service does not take."""
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
    if any(isinstance(label, str) and len(label) > _LONGEST_LABEL for label in classes):
        raise CannotTrain(f"a label is longer than {_LONGEST_LABEL} characters")
    return classes


def check_targets(targets: list[Any]) -> Float64Array:
    """The numbers to be regressed. Raises CannotTrain for what the service does not take."""
    y = np.array(targets, np.float64)
    wrong = np.flatnonzero(~(np.abs(y) <= LARGEST_TARGET))
    if len(wrong):
        detail = f"y of sample {wrong[0] + 1:,} is {y[wrong[0]]:g}: beyond {LARGEST_TARGET:g}"
        raise CannotTrain(detail)
    return y


def check_norms(X: Matrix, kernel: Kernel) -> None:
    """Raise CannotTrain for rows that the service would refuse: too large for the kernel."""
    limit = min(largest_square_norm(kernel), LARGEST_VALUE)
    with np.errstate(over="ignore"):
        wrong = np.flatnonzero(~(square_norms(X) <= limit))
    if len(wrong):
        raise CannotTrain(
            f"row {wrong[0] + 1} of the samples: its norm exceeds {limit**0.5:.3g}, the most this "
            "kernel can hold; scale the features"
        )


def gamma_for(X: Matrix, plan: Plan) -> float | None:
    """P2's rule: over all rows, in a stream over the first ones, where the service settles it."""
    if plan.kernel["type"] == "linear" or plan.gamma is not None:
        return plan.gamma
    rows = take_rows(X, slice(0, bandwidth.SAMPLES)) if plan.online else X
    gamma = gamma_from_rows(rows)
    if plan.kernel["type"] == "polynomial":
        largest = float(square_norms(rows).max())
        gamma = min(gamma, LARGEST_POLYNOMIAL_PRODUCT / largest) if largest > 0.0 else gamma
    return gamma


def weights_for(
    labels: list[Label], classes: list[Label], asked: Mapping[str, float] | str | None
) -> dict[Label, float]:
    """Weights by label. Raises CannotTrain for a label that does not occur."""
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
    """The spec for so many samples, every choice a number in it.

    Raises Invalid where the service would refuse it.
    """
    own = {} if gamma is None else {"gamma": gamma}
    working_set, asset, semiparametric = None, None, None
    if plan.head == "semiparametric":
        window = min(max(samples, _DEFAULT_WINDOW), LARGEST_WINDOW)
        semiparametric = {"C": plan.C, "tol": plan.batch.tol, "window": window}
        semiparametric |= plan.semiparametric
    elif plan.head == "asset":
        asset = {"algorithm": plan.algorithm, **plan.asset}
    else:
        working_set = {
            "algorithm": plan.algorithm if plan.online else "msfw",
            "C": plan.C,
            "corrective_steps": plan.corrective_steps,
            "max_size": plan.max_size or DEFAULT_MAX_SIZE,
            "class_weight": [
                {"label": label, "weight": weight} for label, weight in weights.items()
            ],
        }
    return read_spec(
        {
            "task": plan.task,
            "kernel": {**plan.kernel, **own},
            "working_set": working_set,
            "asset": asset,
            "semiparametric": semiparametric,
            "seed": plan.seed,
        }
    )

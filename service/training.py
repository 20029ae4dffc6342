"""Train a model from samples in memory: as a stream, or by a batch solver; a state comes out.

A stream goes through the same `WorkingSet.absorb` as in the server. A batch solver's support
vectors and weights are adopted by a working set, which can then go on learning.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidSamples
from service.head import LARGEST_POLYNOMIAL_PRODUCT, Head
from service.model import Model
from service.samples import Label
from service.snapshots import State
from service.spec import LARGEST_SET, ModelSpec, read_spec
from solver import bandwidth
from solver.bandwidth import gamma_from_rows
from solver.batch import Progress
from solver.frank_wolfe import METHODS
from solver.one_versus_one import PairSolution, Settings, solve_pairs, support_of
from solver.rows import Matrix, SparseRows, n_rows, square_norms, take_rows

ONLINE = ("msfw", "sfw")
ALGORITHMS = (*ONLINE, *METHODS)
MOST_CLASSES = 100
DEFAULT_MAX_SIZE = 5000
# Samples between two looks at the progress; the set itself works in blocks of 256.
_PART = 1024
_LONGEST_LABEL = 256


class Data(NamedTuple):
    """All rows with their labels. first_index: of an svmlight file's features, else None."""

    X: Matrix
    labels: list[Any]
    first_index: int | None = None


class Plan(NamedTuple):
    """What to train. kernel: the spec's, without gamma; gamma: None for P2's rule.

    max_size: None for 5,000, or twice a batch solution's support vectors if that is more.
    class_weight: by a label's text. epochs, shuffle: of a stream. batch: of a batch solver.
    """

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
    batch: Settings

    @property
    def online(self) -> bool:
        """Whether samples are learned one by one."""
        return self.algorithm in ONLINE


class Learned(NamedTuple):
    """How far a stream has come: samples of all passes, and over the set objective and gap."""

    samples: int
    total: int
    objective: float
    gap: float
    right: float | None


Observe = Callable[[Learned | Progress], bool | None]


class CannotTrain(Exception):
    """The samples and the plan do not make a model; the message says why."""


def train(data: Data, plan: Plan, observe: Observe) -> tuple[State, dict[str, Any]]:
    """Train, and give the state that `write_state` takes with a report in plain data.

    observe: told now and then; where it returns True, training ends with what it has.
    Raises CannotTrain, and Invalid for a spec that the service would refuse.
    """
    classes = _check_labels(data.labels)
    gamma = _gamma(data.X, plan)
    weights = _weights(data.labels, classes, plan.class_weight)
    spec = _spec(plan, gamma, weights, plan.max_size or DEFAULT_MAX_SIZE)
    model = Model(0, "", spec)
    try:
        model.heads["working_set"].check(data.X)
    except InvalidSamples as error:
        first = error.errors[0]
        raise CannotTrain(f"row {first['row'] + 1} of the samples: {first['detail']}") from None
    if plan.online:
        report = _stream(model.heads["working_set"], data, plan, observe)
    else:
        model, report = _batch(spec, data, plan, observe)
    width = _width(data.X)
    model.sequence, model.dimension = report["samples"], width
    model.publish()
    plain, arrays = model.state()
    if isinstance(data.X, SparseRows):
        first_index = data.first_index or 0
        plain["names"] = [str(first_index + i) for i in range(width)]
    stats = model.published.heads["working_set"].stats
    plain["trained"] = {
        "version": version("wolfstream"),
        "algorithm": plan.algorithm,
        "rows": "sparse" if isinstance(data.X, SparseRows) else "dense",
        "first_index": data.first_index,
        "features": width,
        "classes": len(classes),
        "size": stats["size"],
        "support_vectors": stats["support_vectors"],
        **report,
    }
    return State(plain, arrays), plain["trained"]


def _check_labels(labels: list[Any]) -> list[Label]:
    """The different labels. Raises CannotTrain for what the service does not take."""
    classes = list(dict.fromkeys(labels))
    if any(isinstance(label, float) for label in classes):
        raise CannotTrain(
            "the labels are numbers with fractions: a target to be regressed, not a class"
        )
    if len(classes) < 2:
        raise CannotTrain(f"there is only one class, {classes[0]!r}: two or more are needed")
    if len(classes) > MOST_CLASSES:
        raise CannotTrain(
            f"there are {len(classes):,} different labels, {MOST_CLASSES} are possible; "
            "is the label a number to be regressed, or is it in another column?"
        )
    if any(isinstance(label, str) and len(label) > _LONGEST_LABEL for label in classes):
        raise CannotTrain(f"a label is longer than {_LONGEST_LABEL} characters")
    return classes


def _width(X: Matrix) -> int:
    return X.width if isinstance(X, SparseRows) else int(X.shape[1])


def _gamma(X: Matrix, plan: Plan) -> float | None:
    """P2's rule: over all rows, in a stream over the first ones, where the service settles it."""
    if plan.kernel["type"] == "linear" or plan.gamma is not None:
        return plan.gamma
    rows = take_rows(X, slice(0, bandwidth.SAMPLES)) if plan.online else X
    gamma = gamma_from_rows(rows)
    if plan.kernel["type"] == "polynomial":
        largest = float(square_norms(rows).max())
        gamma = min(gamma, LARGEST_POLYNOMIAL_PRODUCT / largest) if largest > 0.0 else gamma
    return gamma


def _weights(
    labels: list[Label], classes: list[Label], asked: Mapping[str, float] | str | None
) -> dict[Label, float]:
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


def _spec(
    plan: Plan, gamma: float | None, weights: Mapping[Label, float], max_size: int
) -> ModelSpec:
    own = {} if gamma is None else {"gamma": gamma}
    return read_spec(
        {
            "kernel": {**plan.kernel, **own},
            "working_set": {
                "algorithm": plan.algorithm if plan.online else "msfw",
                "C": plan.C,
                "corrective_steps": plan.corrective_steps,
                "max_size": max_size,
                "class_weight": [
                    {"label": label, "weight": weight} for label, weight in weights.items()
                ],
            },
            "asset": None,
            "seed": plan.seed,
        }
    )


def _stream(head: Head, data: Data, plan: Plan, observe: Observe) -> dict[str, Any]:
    """Pass after pass; a later pass does not store a sample again that is still in the set."""
    n = n_rows(data.X)
    random = np.random.default_rng(plan.seed)
    entered = np.full(n, -1, np.int64)
    judged = right = learned = 0
    stopped = False
    for epoch in range(plan.epochs):
        order = random.permutation(n) if plan.shuffle else np.arange(n)
        for start in range(0, n, _PART):
            part = order[start : start + _PART]
            codes = np.array(head.meet(data.labels[i] for i in part), np.int64)
            answers = head.working_set.absorb(take_rows(data.X, part), codes, entered[part])
            entered[part] = answers.entered
            learned += len(part)
            if epoch == 0:
                said = answers.prediction >= 0
                judged += int(said.sum())
                right += int((answers.prediction == codes)[said].sum())
            share = right / judged if judged else None
            stopped = bool(observe(Learned(learned, n * plan.epochs, *_stands(head), share)))
            if stopped:
                break
        if stopped:
            break
    objective, gap = _stands(head)
    return {
        "samples": min(learned, n),
        "learned": learned,
        "objective": objective,
        "gap": gap,
        "gap_over": "the set",
        "prequential": right / judged if judged else None,
        "complete": not stopped,
    }


def _stands(head: Head) -> tuple[float, float]:
    stats = head.view().stats
    return stats["objective"], stats["gap"]


def _batch(
    spec: ModelSpec, data: Data, plan: Plan, observe: Observe
) -> tuple[Model, dict[str, Any]]:
    """Solve all pairs; a model whose working set has adopted the solutions."""
    first = Model(0, "", spec).heads["working_set"]
    codes = np.array(first.meet(data.labels), np.int64)
    ridge = [first.working_set.ridge_of(code) for code in range(len(first.classes))]
    random = np.random.default_rng(plan.seed)
    try:
        pairs = list(
            solve_pairs(
                first.working_set.kernel, data.X, codes, ridge, plan.batch, random, observe=observe
            )
        )
    except ValueError as error:
        raise CannotTrain(str(error)) from None
    support, alpha = support_of(pairs, n_rows(data.X))
    model = _adopting(spec, data, plan, support, codes[support], alpha, first.classes)
    return model, _batch_report(pairs, n_rows(data.X), plan)


def _adopting(
    spec: ModelSpec,
    data: Data,
    plan: Plan,
    support: NDArray[np.int64],
    codes: NDArray[np.int64],
    alpha: NDArray[np.float64],
    classes: list[Label],
) -> Model:
    count = len(support)
    if count > LARGEST_SET:
        raise CannotTrain(
            f"{count:,} support vectors are more than a model may hold, {LARGEST_SET:,}; train "
            "with fewer samples, a larger C or another gamma"
        )
    assert spec.working_set is not None
    roomy = min(max(DEFAULT_MAX_SIZE, 2 * count), LARGEST_SET)
    bound = max(plan.max_size or roomy, count)
    own = spec.working_set.model_copy(update={"max_size": bound})
    model = Model(0, "", spec.model_copy(update={"working_set": own}))
    head = model.heads["working_set"]
    head.meet(classes)
    head.working_set.adopt(take_rows(data.X, support), codes, alpha)
    return model


def _batch_report(pairs: list[PairSolution], n: int, plan: Plan) -> dict[str, Any]:
    solutions = [pair.solution for pair in pairs]
    return {
        "samples": n,
        "tol": plan.batch.tol,
        "iterations": sum(solution.n_iter for solution in solutions),
        "objective": sum(solution.objective for solution in solutions),
        "gap": max(solution.gap for solution in solutions),
        "gap_over": "all samples",
        "complete": all(solution.converged for solution in solutions),
    }

"""Train a model from samples in memory: as a stream, or by a batch solver; a state comes out.

A stream goes through the same learner as in the server. A batch solver's support vectors and
weights are adopted by a working set, which can then go on learning; a semiparametric model keeps
its last samples, and can be refitted with those that follow them.
"""

from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.classification_head import ClassificationHead
from service.head import Head
from service.model import Model
from service.regression_head import RegressionHead
from service.semiparametric_head import SemiparametricHead
from service.snapshots import State
from service.spec import LARGEST_SET, HeadName, ModelSpec
from service.targets import Label
from service.training_fit import fit_samples
from service.training_plan import (
    DEFAULT_MAX_SIZE,
    CannotTrain,
    Data,
    Plan,
    check_labels,
    check_norms,
    check_targets,
    gamma_for,
    spec_for,
    weights_for,
)
from service.training_stream import Observe, learn_classes, learn_set, learn_targets
from solver.one_versus_one import PairSolution, solve_pairs, support_of
from solver.rows import Matrix, SparseRows, n_rows, take_rows

# What a report says of a head as its description does.
_TOLD: dict[HeadName, tuple[str, ...]] = {
    "working_set": ("size", "support_vectors"),
    "asset": ("dimension", "steps"),
    "semiparametric": ("window",),
}


def train(data: Data, plan: Plan, observe: Observe) -> tuple[State, dict[str, Any]]:
    """Train, and give the state that `write_state` takes with a report in plain data.

    observe: told now and then; where it returns True, training ends with what it has.
    Raises CannotTrain, and Invalid for a spec that the service would refuse.
    """
    regression = plan.task == "regression"
    classes = [] if regression else check_labels(data.labels)
    y = check_targets(data.labels) if regression else None
    gamma = gamma_for(data.X, plan)
    weights = weights_for(data.labels, classes, plan.class_weight)
    spec = spec_for(plan, gamma, weights, n_rows(data.X))
    model = Model(0, "", spec)
    check_norms(data.X, spec.kernel_with(gamma or 1.0))
    head = model.heads[plan.head]
    if isinstance(head, SemiparametricHead):
        assert y is not None
        report = fit_samples(head, spec, y, data, observe)
    elif isinstance(head, RegressionHead):
        assert y is not None
        report = learn_targets(head, y, data, plan, observe)
    elif plan.head == "asset":
        report = learn_classes(_classifying(head), data, plan, observe)
    elif plan.online:
        report = learn_set(_classifying(head), data, plan, observe)
    else:
        model, report = _batch(spec, data, plan, observe)
    width = _width(data.X)
    model.sequence, model.dimension = report["samples"], width
    model.publish()
    plain, arrays = model.state()
    if isinstance(data.X, SparseRows):
        first_index = data.first_index or 0
        plain["names"] = [str(first_index + i) for i in range(width)]
    stats = model.published.heads[plan.head].stats
    own = _TOLD[plan.head]
    plain["trained"] = {
        "version": version("wolfstream"),
        "task": plan.task,
        "algorithm": plan.algorithm,
        "rows": "sparse" if isinstance(data.X, SparseRows) else "dense",
        "first_index": data.first_index,
        "features": width,
        "classes": len(classes),
        **{name: stats[name] for name in own},
        **report,
    }
    return State(plain, arrays), plain["trained"]


def _classifying(head: Head) -> ClassificationHead:
    assert isinstance(head, ClassificationHead)
    return head


def _width(X: Matrix) -> int:
    return X.width if isinstance(X, SparseRows) else int(X.shape[1])


def _batch(
    spec: ModelSpec, data: Data, plan: Plan, observe: Observe
) -> tuple[Model, dict[str, Any]]:
    """Solve all pairs; a model whose working set has adopted the solutions."""
    first = _classifying(Model(0, "", spec).heads["working_set"])
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
    head = _classifying(model.heads["working_set"])
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

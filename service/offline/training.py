"""Trains a model on samples in memory; the result is a state like a server's.

A stream is learned by a server's learner, in passes over the samples, each learned as a server
would learn it. The support vectors and weights of a batch solver are adopted by a head, which can
then continue to learn. A head that is fitted as a whole keeps its last samples, so it can be
refitted with later ones.
"""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.errors import InvalidSamples, RefitFailed
from wolfstream.service.heads.fit import Progress, Window
from wolfstream.service.heads.kind import Pairs, Passes
from wolfstream.service.heads.kinds import KINDS, build, fit_window
from wolfstream.service.heads.set_view import certificate
from wolfstream.service.model.columns import plain_notices
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.saved_rows import preparing
from wolfstream.service.offline.training_plan import (
    CHECKS,
    CannotTrain,
    Data,
    Plan,
    check_rows,
    check_weights,
    gamma_for,
    spec_for,
    weights_for,
)
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import ALGORITHMS
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.prepare import PrepareSpec
from wolfstream.service.storage.snapshot_format import State
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.frank_wolfe.driver import Progress as BatchProgress
from wolfstream.solver.frank_wolfe.one_versus_one import PairSolution, solve_pairs, support_of
from wolfstream.solver.prepare.column_facts import MOST_NOTICES, Notice
from wolfstream.solver.prepare.named_rows import Rows, rows_between, table_of
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.schema import SETTLING, Misfit
from wolfstream.solver.rows.matrix import Matrix, SparseRows, n_rows, take_rows

# Samples learned between two reports of progress; learners work in blocks of 256.
_PART = 1024


class StreamProgress(NamedTuple):
    """The progress of a stream.

    Attributes:
        samples: the samples learned so far, in all passes.
        total: the samples to learn in all passes.
        objective: over the samples that the head stores; None if the head has no objective.
        gap: the duality gap of the objective.
        accuracy: the prequential accuracy of the first pass; None without predicted labels.
        mae: the mean absolute error of the first pass; None without predicted numbers.
    """

    samples: int
    total: int
    objective: float | None
    gap: float | None
    accuracy: float | None
    mae: float | None


# Called with progress; training stops if it returns True.
Observe = Callable[[StreamProgress | BatchProgress | Progress], bool | None]


def learn_in_passes(passes: Passes, samples: int, plan: Plan, observe: Observe) -> dict[str, Any]:
    """Learn samples in one or more passes; return a report as plain data.

    Args:
        passes: learns the samples.
        samples: the number of samples.
        plan: the number of passes, and the order of samples.
        observe: called with the progress; training stops if it returns True.
    """
    random = np.random.default_rng(plan.seed)
    learned, stopped = 0, False
    for epoch in range(plan.epochs):
        order = random.permutation(samples) if plan.shuffle else np.arange(samples)
        for start in range(0, samples, _PART):
            part = order[start : start + _PART]
            judged = passes.learn(part)
            learned += len(part)
            if epoch == 0:
                passes.score.count(*judged)
            stopped = bool(observe(_progress(passes, learned, samples * plan.epochs)))
            if stopped:
                break
        if stopped:
            break
    return {
        "samples": min(learned, samples),
        "learned": learned,
        "prequential": passes.score.to_dict(),
        "complete": not stopped,
        **passes.standing(),
    }


def _progress(passes: Passes, learned: int, total: int) -> StreamProgress:
    standing, score = passes.standing(), passes.score.to_dict()
    return StreamProgress(
        learned,
        total,
        standing.get("objective"),
        standing.get("gap"),
        score.get("accuracy"),
        score.get("mae"),
    )


def fit_samples(learner: Learner, samples: Samples, plan: Plan, observe: Observe) -> dict[str, Any]:
    """Fit all samples, and add them to the head's window; return a report as plain data.

    Raises CannotTrain, and KeyboardInterrupt if `observe` stops it, since part of a fit is no use.
    """
    head = learner.heads[plan.head]
    X, y = _dense(samples)

    def watch(now: Progress) -> None:
        if observe(now):
            raise KeyboardInterrupt

    try:
        head.check(samples, set(), 0)
        fit = fit_window(Window(plan.head, len(y), X, y, learner.model.spec), None, watch)
    except (InvalidSamples, RefitFailed) as error:
        details = [item["detail"] for item in error.errors]
        raise CannotTrain("; ".join([error.detail, *details])) from None
    head.absorb(X, y)
    learner.adopt(plan.head, fit)
    names = ("samples", "support_vectors", "kkt_violation", "beta")
    return {
        **{name: fit.plain[name] for name in names},
        "tol": plan.batch.tol,
        "iterations": fit.plain["n_iter"],
        "complete": True,
    }


def _dense(samples: Samples) -> tuple[Float64Array, Float64Array]:
    X, y, _ = samples
    assert not isinstance(X, tuple)
    assert not isinstance(y, list)
    return X, y


def train(data: Data, plan: Plan, observe: Observe) -> tuple[State, dict[str, Any], list[str]]:
    """Train a model; return its state, a report as plain data, and warnings as sentences.

    The warnings are those of a server's learning responses.

    Args:
        data: the samples.
        plan: what to train.
        observe: called with progress; if it returns True, training stops with what it has learned.

    Raises CannotTrain, and Invalid for a spec that a server would refuse.
    """
    classes, y = CHECKS[plan.task](data.labels)
    weight = check_weights(data.weights, plan)
    weights = weights_for(data.labels, classes, plan.class_weight)
    kind, way = KINDS[plan.head], ALGORITHMS[plan.algorithm].way
    rows = _rows(data)
    X, words, form = _encoded(rows, PrepareSpec() if kind.prepared else None)
    gamma = None if kind.prepared else gamma_for(X, plan)
    spec = spec_for(plan, gamma, weights, n_rows(X))
    if not kind.prepared:
        check_rows(X, spec.kernel)
    learner = Learner(Model(0, "", spec))
    learner.rows.form = form
    notices = list[Notice]()
    if not isinstance(rows, SparseRows):
        learner.rows.note(rows)
        notices = learner.rows.notices
    if way == "stream":
        assert kind.passes is not None
        prepared = learner.rows.prepared(X, words)
        passes = kind.passes(learner.heads[plan.head], prepared, y, weight)
        report = learn_in_passes(passes, n_rows(X), plan, observe)
        if plan.epochs == 1 and not plan.shuffle:  # else sample k does not have sequence k
            learner.heads[plan.head].date_changes(report["samples"])
    elif way == "fit":
        report = fit_samples(learner, Samples(np.asarray(X), y), plan, observe)
    else:
        assert kind.pairs is not None
        learner, report = _batch(kind.pairs, spec, X, data.labels, plan, observe)
        learner.rows.form = form
    width = _width(X) if form.features is None else form.features
    learner.sequence = report["samples"]
    learner.forget_views()
    learner.publish()
    plain, arrays = learner.state()
    if isinstance(X, SparseRows):
        first_index = data.first_index or 0
        plain["names"] = [str(first_index + i) for i in range(width)]
        plain["dimension"] = width
    stats = learner.model.published.heads[plan.head].stats
    results = {"classes": len(classes), **{name: stats[name] for name in kind.reported}, **report}
    plain["trained"] = _inputs(data, plan, X, width) | results
    warnings = [*learner.model.warnings(), *plain_notices(notices)][:MOST_NOTICES]
    messages = [str(warning["message"]) for warning in warnings]
    return State(plain, arrays), plain["trained"], messages


def _inputs(data: Data, plan: Plan, X: Matrix, width: int) -> dict[str, Any]:
    """Return the part of a report that tells what was learned, and how."""
    return {
        "version": version("wolfstream"),
        "task": plan.task,
        "algorithm": plan.algorithm,
        "rows": "sparse" if isinstance(X, SparseRows) else "dense",
        "first_index": data.first_index,
        "features": width,
    }


def _rows(data: Data) -> Rows | SparseRows:
    """Return a file's rows in the form in which a server would read them."""
    if isinstance(data.X, SparseRows):
        return data.X
    if data.names is None and not isinstance(data.X, list):
        return np.asarray(data.X)
    return table_of(data.names, data.X)


def _encoded(
    rows: Rows | SparseRows, prepare: PrepareSpec | None
) -> tuple[Matrix, Float64Array | None, RowForm]:
    """Return rows as numbers and codes, their words, and the form that a server would give them.

    Raises CannotTrain.
    """
    form = RowForm(preparing(prepare))
    if isinstance(rows, SparseRows):
        return rows, None, form._replace(sparse=True)
    try:
        form = form.after(rows).settled_now()
    except Misfit as misfit:
        wrong = f"row {misfit.row + 1} of the samples: {misfit.full_detail()}"
        raise CannotTrain(wrong) from None
    form = form.with_first([rows_between(rows, 0, SETTLING)])
    return form.encoded(rows), form.words(rows), form


def _width(X: Matrix) -> int:
    return X.width if isinstance(X, SparseRows) else int(X.shape[1])


def _batch(
    kind: Pairs[Any], spec: ModelSpec, X: Matrix, labels: list[Any], plan: Plan, observe: Observe
) -> tuple[Learner, dict[str, Any]]:
    """Solve the problems of all pairs; return a learner with the solutions, and a report."""
    classes = list(dict.fromkeys(labels))
    problem = kind.problem(build(plan.head, spec), labels)
    random = np.random.default_rng(plan.seed)
    try:
        pairs = list(
            solve_pairs(
                problem.kernel,
                X,
                problem.codes,
                problem.ridge,
                plan.batch,
                random,
                observe=observe,
            )
        )
    except ValueError as error:
        raise CannotTrain(str(error)) from None
    support, alpha = support_of(pairs, n_rows(X))
    if len(support) > kind.most:
        raise CannotTrain(
            f"{len(support):,} support vectors are more than a model may hold, {kind.most:,}; "
            "train with fewer samples, a larger C or another gamma"
        )
    larger_spec = kind.spec_with(spec, len(support), plan.options.get("max_size"))
    learner = Learner(Model(0, "", larger_spec))
    rows, codes = take_rows(X, support), problem.codes[support]
    kind.adopt(learner.heads[plan.head], classes, rows, codes, alpha)
    return learner, _batch_report(pairs, n_rows(X), plan)


def _batch_report(pairs: list[PairSolution], n: int, plan: Plan) -> dict[str, Any]:
    solutions = [pair.solution for pair in pairs]
    return {
        "samples": n,
        "tol": plan.batch.tol,
        "iterations": sum(solution.n_iter for solution in solutions),
        **certificate(
            np.array([solution.objective for solution in solutions]),
            np.array([solution.gap for solution in solutions]),
        ),
        "gap_over": "all samples",
        "complete": all(solution.converged for solution in solutions),
    }

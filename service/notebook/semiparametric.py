"""SemiparametricSVR as a model of a semiparametric head, and back.

The estimator's problem is that of y / unit with the standard deviation of y as unit; a server's is
that of y. Times unit^2 the one is the other, with unit C, unit epsilon and unit tol.
"""

from typing import Any

import numpy as np

from wolfstream.service.heads.decomposition import fit_of
from wolfstream.service.heads.semiparametric import LARGEST_WINDOW_NUMBERS, SemiparametricHead
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.notebook.kernels import kernel_parameters, plain_kernel
from wolfstream.service.notebook.rows import NoCounterpart, features_of, name_columns, take_rows_of
from wolfstream.service.samples.targets import LARGEST_TARGET
from wolfstream.service.spec.heads import HEADS
from wolfstream.service.spec.model import ModelSpec, read_spec
from wolfstream.service.spec.semiparametric import DEFAULT_WINDOW, LARGEST_WINDOW
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.semiparametric_regressor import SemiparametricSVR, TrainingSamples
from wolfstream.solver.estimators.targets import middle_and_unit
from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.semiparametric.basis import BasisFunction, basis_to_data
from wolfstream.solver.semiparametric.view import SemiparametricView


def learner_of_fit(estimator: SemiparametricSVR) -> Learner:
    """Return a model that serves an estimator's fit, with its last samples in the window.

    Raises NoCounterpart, Invalid.
    """
    view = estimator.view
    X, y, weight = estimator.samples_
    if isinstance(X, SparseRows):
        raise NoCounterpart("its rows are sparse, and a server's semiparametric head takes arrays")
    if float(np.abs(y).max()) > LARGEST_TARGET:
        raise NoCounterpart(f"a target is beyond {LARGEST_TARGET:g}, which no server takes")
    unit = _unit(y, weight)
    learner = Learner(Model(0, "", _spec_of(estimator, view, X, unit)))
    head = learner.heads["semiparametric"]
    assert isinstance(head, SemiparametricHead)
    head.absorb(X, y, weight=weight)
    fit = fit_of(view, len(y), unit * estimator.kkt_violation_, estimator.n_iter_)
    learner.adopt("semiparametric", fit)
    take_rows_of(estimator, learner, sparse=False)
    learner.sequence = len(y)
    return learner


def fit_in(learner: Learner) -> SemiparametricSVR:
    """Return an estimator with the fit of a model that has nothing else. Raises NoCounterpart."""
    spec, head = learner.model.spec, learner.heads["semiparametric"]
    assert isinstance(head, SemiparametricHead)
    own, features = spec.semiparametric, features_of(learner)
    assert own is not None
    view, fit = head.view().model, head.fit
    if view is None or fit is None:
        raise NoCounterpart("it has not been fitted yet: a refit of its window is needed")
    samples = TrainingSamples(*head.window())
    unit = _unit(samples.y, samples.weight)
    estimator = SemiparametricSVR(
        [basis.model_dump() for basis in own.basis],
        C=own.C / unit,
        epsilon=own.epsilon / unit,
        **kernel_parameters(own.kernel or spec.kernel, view.kernel),
        solver=own.solver,
        tol=own.tol / unit,
    )
    violation = fit.plain["kkt_violation"] / unit
    estimator.resume(view, samples, features, fit.plain["n_iter"], violation)
    name_columns(estimator, learner)
    return estimator


def _spec_of(
    estimator: SemiparametricSVR, view: SemiparametricView, X: Float64Array, unit: float
) -> ModelSpec:
    own = {
        "basis": [_named(basis) for basis in view.bases],
        "C": float(estimator.C) * unit,
        "epsilon": float(estimator.epsilon) * unit,
        "window": _window_for(X),
        "solver": estimator.solver,
        "tol": float(estimator.tol) * unit,
    }
    return read_spec(
        {
            "task": "regression",
            "kernel": plain_kernel(view.kernel),
            "prepare": None,
            **dict.fromkeys(HEADS),
            "semiparametric": own,
            "serve": "semiparametric",
        }
    )


def _named(basis: BasisFunction) -> dict[str, Any]:
    """A basis function as a spec has it. Raises NoCounterpart for a function of the user's own."""
    try:
        return basis_to_data(basis)
    except ValueError as error:
        raise NoCounterpart(f"the basis function {error}") from None


def _window_for(X: Float64Array) -> int:
    """By default the window keeps all samples, as far as one can."""
    most = min(LARGEST_WINDOW, LARGEST_WINDOW_NUMBERS // max(X.shape[1], 1))
    return max(1, min(max(DEFAULT_WINDOW, len(X)), int(most)))


def _unit(y: Float64Array, weight: Weights) -> float:
    """Return the unit of the estimator's C, epsilon and tol, in units of y."""
    return middle_and_unit(y, weight)[1] or 1.0

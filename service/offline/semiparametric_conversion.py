"""Converts SemiparametricSVR to a model with a semiparametric head, and back.

The estimator fits y / unit, where unit is the standard deviation of y; a server fits y itself. With
C, epsilon and tol of the server equal to those of the estimator times unit, the two objectives
differ by the factor unit^2.
"""

from typing import Any

import numpy as np

from wolfstream.service.heads.decomposition import fit_of
from wolfstream.service.heads.semiparametric import LARGEST_WINDOW_NUMBERS, SemiparametricHead
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.offline.conversion import (
    NoCounterpart,
    copy_row_form,
    kernel_parameters,
    n_features_of,
    name_columns,
    plain_kernel,
)
from wolfstream.service.samples.numbers import LARGEST_TARGET
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


def fit_to_learner(estimator: SemiparametricSVR) -> Learner:
    """Return a model with the fit of an estimator, and with its last samples in the window.

    Raises NoCounterpart, Invalid.
    """
    view = estimator.view
    X, y, weight = estimator.samples_
    if isinstance(X, SparseRows):
        raise NoCounterpart(
            "its rows are sparse, and a server's semiparametric head only accepts arrays"
        )
    if float(np.abs(y).max()) > LARGEST_TARGET:
        raise NoCounterpart(
            f"a target is beyond {LARGEST_TARGET:g}, the largest that a server accepts"
        )
    unit = _unit(y, weight)
    learner = Learner(Model(0, "", _spec_of(estimator, view, X, unit)))
    head = learner.heads["semiparametric"]
    assert isinstance(head, SemiparametricHead)
    head.absorb(X, y, weight=weight)
    fit = fit_of(view, len(y), unit * estimator.kkt_violation_, estimator.n_iter_)
    learner.adopt("semiparametric", fit)
    copy_row_form(estimator, learner, sparse=False)
    learner.sequence = len(y)
    return learner


def learner_to_fit(learner: Learner) -> SemiparametricSVR:
    """Return an estimator with the fit of a model that has no other head. Raises NoCounterpart."""
    spec, head = learner.model.spec, learner.heads["semiparametric"]
    assert isinstance(head, SemiparametricHead)
    fit_spec, n_features = spec.semiparametric, n_features_of(learner)
    assert fit_spec is not None
    view, fit = head.view().model, head.fit
    if view is None or fit is None:
        raise NoCounterpart("it has not been fitted yet: a refit of its window is needed")
    samples = TrainingSamples(*head.window())
    unit = _unit(samples.y, samples.weight)
    estimator = SemiparametricSVR(
        [basis.model_dump() for basis in fit_spec.basis],
        C=fit_spec.C / unit,
        epsilon=fit_spec.epsilon / unit,
        **kernel_parameters(fit_spec.kernel or spec.kernel, view.kernel),
        solver=fit_spec.solver,
        tol=fit_spec.tol / unit,
    )
    violation = fit.plain["kkt_violation"] / unit
    estimator.resume(view, samples, n_features, fit.plain["n_iter"], violation)
    name_columns(estimator, learner)
    return estimator


def _spec_of(
    estimator: SemiparametricSVR, view: SemiparametricView, X: Float64Array, unit: float
) -> ModelSpec:
    fields = {
        "basis": [_plain_basis(basis) for basis in view.bases],
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
            "semiparametric": fields,
            "serve": "semiparametric",
        }
    )


def _plain_basis(basis: BasisFunction) -> dict[str, Any]:
    """Return a basis function in the form of a spec.

    Raises NoCounterpart for a function written by the user.
    """
    try:
        return basis_to_data(basis)
    except ValueError as error:
        raise NoCounterpart(f"the basis function {error}") from None


def _window_for(X: Float64Array) -> int:
    """Return the size of a window for all samples, or the largest size allowed."""
    largest = min(LARGEST_WINDOW, LARGEST_WINDOW_NUMBERS // max(X.shape[1], 1))
    return max(1, min(max(DEFAULT_WINDOW, len(X)), int(largest)))


def _unit(y: Float64Array, weight: Weights) -> float:
    """Return the standard deviation of y, in which the estimator's C, epsilon and tol are given."""
    return middle_and_unit(y, weight)[1] or 1.0

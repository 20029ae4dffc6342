"""The four solvers of semiparametric regression against a QP solver, LIBSVM and their promises."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVR

from tests.solver.semiparametric_problems import (
    HAT_BASES,
    dual_objective,
    hat_instance,
    optimum,
    primal_objective,
    random_instance,
    split,
    violation_by_definition,
)
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import sparse_from_csr
from wolfstream.solver.semiparametric.basis import Basis, evaluate
from wolfstream.solver.semiparametric.regression import SemiparametricSettings, solve_semiparametric
from wolfstream.solver.semiparametric.view import (
    predict_semiparametric,
    view_from_arrays,
    view_of,
    view_to_arrays,
)

SOLVERS = [("pdsg", False), ("mpd", False), ("pdsg", True), ("mpd", True)]
NAMES = ["PDSG", "MPD", "D:PDSG", "D:MPD"]
each_solver = pytest.mark.parametrize(("solver", "decomposition"), SOLVERS, ids=NAMES)
KERNELS = {
    "rbf": Kernel("rbf", 0.7),
    "polynomial": Kernel("polynomial", 0.5, 2, 1.0),
    "linear": Kernel("linear"),
}


def solved(instance, solver="pdsg", decomposition=True, progress=None, trace=False, **changes):
    settings = SemiparametricSettings(
        instance.kernel, instance.C, instance.epsilon, solver, decomposition
    )
    settings = settings._replace(**({"working_set_size": 6, "tol": 1e-7} | changes))
    return solve_semiparametric(instance.X, instance.y, instance.Psi, settings, progress, trace)


@each_solver
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("K", [0, 1, 2])
def test_the_optimum_of_the_quadratic_program_is_found(solver, decomposition, kernel, K):
    instance = random_instance(K, K=K, kernel=KERNELS[kernel])
    theta, value = optimum(instance)
    solution = solved(instance, solver, decomposition)
    assert solution.converged
    found = dual_objective(instance, split(solution.dual_coef))
    assert found == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(instance.gram @ solution.dual_coef, instance.gram @ theta, atol=2e-3)


@pytest.mark.sweep
@each_solver
@pytest.mark.parametrize("C", [0.05, 5.0, 2000.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_primal_and_dual_meet(solver, decomposition, C, epsilon):
    """Strong duality: the primal objective at (theta, beta) is minus the dual one."""
    instance = random_instance(3, M=40, K=3, C=C, epsilon=epsilon)
    solution = solved(instance, solver, decomposition, working_set_size=15)
    primal = primal_objective(instance, solution.dual_coef, solution.beta)
    dual = dual_objective(instance, split(solution.dual_coef))
    assert primal == pytest.approx(-dual, abs=1e-5 * max(C, 1.0))


@each_solver
def test_with_a_constant_it_is_libsvm(solver, decomposition):
    instance = random_instance(4, M=60, K=1, C=60.0)
    solution = solved(instance, solver, decomposition, working_set_size=20)
    peer = SVR(C=instance.upper, epsilon=0.1, kernel="precomputed", tol=1e-8)
    peer.fit(instance.gram, instance.y)
    theta = np.zeros(60)
    theta[peer.support_] = peer.dual_coef_[0]
    np.testing.assert_allclose(solution.dual_coef, theta, atol=1e-4)
    assert solution.beta[0] == pytest.approx(peer.intercept_[0], abs=1e-4)


@each_solver
def test_the_certificate_is_what_the_definition_says(solver, decomposition):
    instance = hat_instance(150)
    for tol in (1e-1, 1e-4):
        solution = solved(instance, solver, decomposition, tol=tol, working_set_size=50)
        by_hand = violation_by_definition(instance, solution.dual_coef, solution.beta)
        assert solution.kkt_violation == pytest.approx(by_hand, abs=1e-12)
        assert by_hand <= tol
        assert solution.converged


@each_solver
def test_the_coefficients_of_the_mexican_hat_are_one(solver, decomposition):
    instance = hat_instance(1000)
    solution = solved(instance, solver, decomposition, tol=1e-3, working_set_size=500)
    assert solution.converged
    np.testing.assert_allclose(solution.beta, 1.0, atol=0.05)


@st.composite
def instances(draw):
    """Rows that repeat, targets and bases of any size, every kernel, few and many free theta."""
    K = draw(st.integers(0, 3))
    instance = random_instance(
        draw(st.integers(0, 999)),
        draw(st.integers(K + 1, 30)),
        K,
        KERNELS[draw(st.sampled_from(sorted(KERNELS)))],
        10.0 ** draw(st.floats(-2.0, 2.0)),
        draw(st.sampled_from([0.0, 0.01, 0.3, 5.0])),
    )
    if draw(st.booleans()):
        instance = instance._replace(X=np.round(instance.X))
    sizes = 10.0 ** np.array(draw(st.lists(st.floats(-6.0, 6.0), min_size=K, max_size=K)))
    return instance._replace(Psi=instance.Psi * sizes)


@given(instances(), st.sampled_from(SOLVERS), st.integers(3, 40))
def test_any_run_keeps_the_box_and_the_constraints(instance, how, size):
    solution = solved(instance, *how, tol=1e-3, working_set_size=size, max_iter=20_000)
    assert np.all(np.abs(solution.dual_coef) <= instance.upper)
    by_hand = violation_by_definition(instance, solution.dual_coef, solution.beta)
    assert solution.kkt_violation == pytest.approx(by_hand, rel=1e-6, abs=1e-9)
    assert solution.converged == (solution.kkt_violation <= 1e-3)
    if solution.converged:
        share = np.abs(instance.Psi.T @ solution.dual_coef)
        assert np.all(share <= 1.001e-3 * instance.C * np.abs(instance.Psi).mean(axis=0))
    else:
        assert solution.n_iter == 20_000


@each_solver
def test_the_unit_of_a_basis_function_is_that_of_its_coefficient(solver, decomposition):
    instance = random_instance(5, M=30, K=2)
    other = instance._replace(Psi=instance.Psi * [1e-9, 1e9])
    beta = solved(instance, solver, decomposition).beta
    np.testing.assert_allclose(
        solved(other, solver, decomposition).beta * [1e-9, 1e9], beta, atol=1e-5
    )


@each_solver
def test_few_kernel_rows_give_the_same_model_as_all(solver, decomposition):
    instance = hat_instance(120, C=50.0)
    few = solved(instance, solver, decomposition, tol=1e-5, cache_bytes=2 * 120 * 8)
    everything = solved(instance, solver, decomposition, tol=1e-5)
    assert few.converged
    np.testing.assert_allclose(few.beta, everything.beta, atol=1e-3)


def test_a_budget_below_two_rows_is_refused():
    with pytest.raises(ValueError, match="two kernel rows of 50 samples take 800"):
        solved(hat_instance(50), cache_bytes=799)


def test_a_working_set_below_the_number_of_constraints_is_refused():
    instance = random_instance(0, M=20, K=3)
    with pytest.raises(ValueError, match=r"working_set_size is 2; with 3 basis .* at least 3"):
        solved(instance, working_set_size=2)
    assert solved(instance, working_set_size=2, decomposition=False).converged
    assert solved(instance, working_set_size=3, tol=1e-3).converged


@each_solver
def test_max_iter_ends_a_run(solver, decomposition):
    solution = solved(hat_instance(200), solver, decomposition, max_iter=7)
    assert not solution.converged
    assert 7 <= solution.n_iter <= 8
    assert solution.kkt_violation > 1e-7


@each_solver
def test_progress_is_told_and_may_end_a_run(solver, decomposition):
    seen = []

    def watch(now):
        seen.append(now)
        return len(seen) == 3

    solution = solved(
        hat_instance(600, C=600.0), solver, decomposition, watch, working_set_size=100, tol=1e-6
    )
    assert not solution.converged
    assert [now.iteration for now in seen] == sorted({now.iteration for now in seen})
    assert len(seen) == 3
    assert seen[-1].violation > 1e-6
    assert solution.n_iter == seen[-1].iteration


def test_what_progress_raises_ends_a_run():
    def refuse(now):
        raise KeyError(now.iteration)

    with pytest.raises(KeyError):
        solved(hat_instance(50), progress=refuse)


@each_solver
def test_the_trace_follows_the_run_from_least_squares_to_the_solution(solver, decomposition):
    instance = hat_instance(400)
    solution = solved(instance, solver, decomposition, trace=True, working_set_size=60, tol=1e-4)
    trace = solution.trace
    assert trace.iteration[0] == 0
    assert trace.iteration[-1] == solution.n_iter
    fit = np.linalg.lstsq(instance.Psi, instance.y, rcond=None)[0]
    np.testing.assert_allclose(trace.beta[0], fit, rtol=1e-9)
    np.testing.assert_array_equal(trace.beta[-1], solution.beta)
    worst = np.maximum(trace.dual_infeasibility, trace.equality_violation)
    assert worst[-1] == pytest.approx(solution.kkt_violation)
    assert np.all(worst[:-1] > 1e-4)
    assert trace.dual_infeasibility[0] == pytest.approx(
        np.abs(instance.y - instance.Psi @ fit).max() - 0.05
    )


def test_no_trace_is_kept_unasked():
    assert solved(hat_instance(50)).trace is None


def test_a_basis_that_fits_everything_leaves_nothing_to_the_kernel():
    X = np.linspace(0.0, 1.0, 30)[:, None]
    instance = random_instance(0, M=30, K=1)._replace(X=X, y=3.0 + 0.05 * X[:, 0], epsilon=0.1)
    solution = solved(instance)
    assert solution.n_iter == 0
    assert not solution.dual_coef.any()
    h = predict_semiparametric(view_of(solution, X, [Basis("constant")]), X)
    np.testing.assert_allclose(h, instance.y, atol=0.1)


def hat_view():
    instance = hat_instance(80)
    solution = solved(instance, tol=1e-3, working_set_size=80)
    return instance, solution, view_of(solution, instance.X, HAT_BASES)


def test_a_prediction_is_the_sum_of_both_parts():
    instance, solution, view = hat_view()
    assert len(view.dual_coef) == np.count_nonzero(solution.dual_coef)
    by_hand = instance.gram @ solution.dual_coef + instance.Psi @ solution.beta
    np.testing.assert_allclose(predict_semiparametric(view, instance.X), by_hand, atol=1e-12)
    many = np.tile(instance.X, (20, 1))
    np.testing.assert_allclose(predict_semiparametric(view, many), np.tile(by_hand, 20), atol=1e-12)
    assert predict_semiparametric(view, instance.X[:0]).shape == (0,)


def test_a_saved_view_predicts_the_same_bit_for_bit():
    instance, _, view = hat_view()
    arrays, data = view_to_arrays(view)
    assert all(type(array) is np.ndarray for array in arrays.values())
    other = view_from_arrays(arrays, json.loads(json.dumps(data)))
    np.testing.assert_array_equal(
        predict_semiparametric(other, instance.X), predict_semiparametric(view, instance.X)
    )
    assert other.bases == view.bases


def test_a_view_with_a_function_cannot_be_saved():
    instance, solution, _ = hat_view()
    with pytest.raises(ValueError, match="is a function: only bases given by name can be saved"):
        view_to_arrays(view_of(solution, instance.X, [np.sin, *HAT_BASES[1:]]))


def test_sparse_model_equals_dense_and_saves():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4)) * (random.random((60, 4)) < 0.4)
    rows = np.nonzero(X)
    sparse = sparse_from_csr(
        X[rows], rows[1], np.concatenate([[0], np.cumsum((X != 0.0).sum(axis=1))]), 4
    )
    bases = (Basis("constant"), Basis("trend", feature=2))
    y = np.sin(X[:, 0]) + 2.0 * X[:, 2]
    instance = random_instance(0, M=60)._replace(X=X, y=y, Psi=evaluate(bases, X))
    dense = view_of(solved(instance), X, bases)
    thin = view_of(solved(instance._replace(X=sparse)), sparse, bases)
    h = predict_semiparametric(thin, sparse)
    np.testing.assert_allclose(h, predict_semiparametric(dense, X), atol=1e-5)
    np.testing.assert_array_equal(
        predict_semiparametric(view_from_arrays(*view_to_arrays(thin)), sparse), h
    )
    with pytest.raises(TypeError, match="the first rows were sparse, these are dense"):
        predict_semiparametric(thin, X)

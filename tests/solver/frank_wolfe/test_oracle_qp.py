"""The exact oracle for quadratic programs over the simplex, against scipy and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from tests.solver.oracle_qp import check_kkt, minimise, scale_of
from tests.solver.oracle_sfw import hessian
from wolfstream.solver.kernels.functions import Kernel


@st.composite
def programs(draw, max_size, ridges):
    """(A, linear): a factor of any rank, a ridge, with or without a linear part."""
    n = draw(st.integers(1, max_size))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factor = random.standard_normal((n, draw(st.integers(1, 8))))
    A = factor @ factor.T + draw(ridges) * np.eye(n)
    return A, draw(st.sampled_from([0.0, 1.0, 30.0])) * random.standard_normal(n)


def scipy_minimum(A, linear):
    n = len(A)
    answer = minimize(
        lambda alpha: alpha @ A @ alpha - linear @ alpha,
        np.full(n, 1.0 / n),
        jac=lambda alpha: 2.0 * A @ alpha - linear,
        bounds=[(0.0, 1.0)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1.0, "jac": lambda _: np.ones(n)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return answer.x, answer.fun


def duplicated(A, linear, random):
    """The same program with every variable there up to three times, in any order."""
    times = random.permutation(np.repeat(np.arange(len(A)), random.integers(1, 4, len(A))))
    return A[np.ix_(times, times)], linear[times], times


@given(programs(10, st.sampled_from([0.01, 1.0, 100.0])))
def test_scipy_finds_the_same_point_where_there_is_one(program):
    optimum = minimise(*program)
    alpha, value = scipy_minimum(*program)
    scale = scale_of(*program)
    assert optimum.value == pytest.approx(value, abs=1e-8 * scale)
    np.testing.assert_allclose(optimum.alpha, alpha, rtol=0, atol=2e-3)


@given(programs(10, st.just(0.0)))
def test_scipy_finds_the_same_minimum_of_singular_matrices(program):
    assert minimise(*program).value == pytest.approx(
        scipy_minimum(*program)[1], abs=1e-8 * scale_of(*program)
    )


@given(programs(60, st.sampled_from([0.0, 1e-6, 0.01, 1.0])))
def test_no_vertex_lies_below_the_tangent(program):
    """q(z) >= q(alpha) + G'(z - alpha): with G'(e_i - alpha) >= 0 for all i, alpha is best."""
    A, linear = program
    alpha = minimise(A, linear).alpha
    gradient = 2.0 * A @ alpha - linear
    assert np.all(gradient - alpha @ gradient >= -1e-12 * scale_of(A, linear))
    assert alpha.min() >= 0.0
    assert alpha.sum() == pytest.approx(1.0, abs=1e-13)


@given(programs(20, st.sampled_from([0.0, 0.01, 1.0])), st.integers(0, 2**32 - 1))
def test_duplicates_share_the_weight_of_one(program, seed):
    A, linear, times = duplicated(*program, np.random.default_rng(seed))
    optimum, single = minimise(A, linear), minimise(*program)
    assert optimum.value == pytest.approx(single.value, abs=1e-11 * scale_of(*program))
    merged = np.bincount(times, optimum.alpha, len(program[0]))
    check_kkt(*program, merged / merged.sum())


@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
def test_the_dual_of_a_support_vector_machine(C):
    random = np.random.default_rng(1)
    X = random.standard_normal((30, 2))
    X = np.concatenate([X, X])  # the same samples again, some with the other label
    y = np.where(X[:, 0] + 0.5 * random.standard_normal(60) > 0.0, 1.0, -1.0)
    A = hessian(Kernel("rbf", 0.5), X, y, C)
    optimum = minimise(A)
    # Conditions of the machine itself: y_i (f(x_i) + b) + alpha_i/(2C) >= rho = q, equal where
    # alpha_i > 0.
    margin = A @ optimum.alpha
    assert margin.min() >= optimum.value - 1e-12 * scale_of(A, y)
    weighted = optimum.alpha > 0.0
    np.testing.assert_allclose(margin[weighted], optimum.value, rtol=0, atol=1e-11 * scale_of(A, y))


def test_a_diagonal_matrix_weighs_by_the_inverse():
    diagonal = np.array([1.0, 2.0, 4.0, 0.5])
    optimum = minimise(np.diag(diagonal))
    np.testing.assert_allclose(optimum.alpha, (1 / diagonal) / (1 / diagonal).sum(), rtol=1e-14)
    assert optimum.value == pytest.approx(1.0 / (1.0 / diagonal).sum(), rel=1e-14)


def test_without_curvature_the_largest_linear_part_takes_all():
    optimum = minimise(np.zeros((4, 4)), np.array([1.0, 3.0, -2.0, 0.0]))
    assert optimum.alpha.tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_two_vertices_balance(share):
    """min (1-t)^2 + t^2 - c t: t = 1/2 + c/4."""
    c = 4.0 * (share - 0.5)
    assert minimise(np.eye(2), np.array([0.0, c])).alpha[1] == pytest.approx(share, abs=1e-14)


def test_one_variable_has_no_choice():
    assert minimise(np.array([[3.0]]), np.array([1.0])) == (np.array([1.0]), 2.0)


@pytest.mark.parametrize(
    "alpha",
    [
        pytest.param([0.5 + 1e-5, 0.5 - 1e-5], id="beside the minimum"),
        pytest.param([1.0, 0.0], id="a vertex"),
        pytest.param([0.6, 0.6], id="outside"),
        pytest.param([1.5, -0.5], id="negative"),
    ],
)
def test_the_check_refuses_what_is_not_the_minimum(alpha):
    check_kkt(np.eye(2), np.zeros(2), np.array([0.5, 0.5]))
    with pytest.raises(AssertionError):
        check_kkt(np.eye(2), np.zeros(2), np.array(alpha))

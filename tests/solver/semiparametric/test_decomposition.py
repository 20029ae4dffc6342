"""The outer loop's parts: rule (6) against all alternatives, what is kept, gradients, stopping."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.solver.semiparametric_problems import hat_instance, quadratic_program, random_instance
from wolfstream.solver.kernels.cached_rows import KernelRows
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.semiparametric.decomposition import choose, steepest_variables, working_sets
from wolfstream.solver.semiparametric.dual import semiparametric_dual, variables
from wolfstream.solver.semiparametric.outer_loop import solve, whole
from wolfstream.solver.semiparametric.problem import (
    Iterate,
    add_kernel_part,
    least_squares,
    point_of,
    semiparametric_problem,
    violations,
)

SOLVERS = ("pdsg", "mpd")


def problem_of(instance, cache_bytes=1 << 24):
    float64 = np.dtype(np.float64)
    rows = prepare_rows(instance.kernel, instance.X, instance.X[0].copy(), float64)
    dual = semiparametric_dual(instance.y, instance.Psi, instance.C, instance.epsilon)
    return semiparametric_problem(dual, KernelRows(instance.kernel, rows, cache_bytes))


def iterate_at(instance, theta, beta):
    residual = instance.gram @ theta + instance.Psi @ beta - instance.y
    return Iterate(theta, residual, instance.Psi.T @ theta, beta)


def random_iterate(instance, seed):
    """Some theta at zero, some at their bounds."""
    random = np.random.default_rng(seed)
    M, K = instance.Psi.shape
    theta = instance.upper * np.clip(1.5 * random.normal(size=M), -1.0, 1.0)
    theta[random.random(M) < 0.4] = 0.0
    return iterate_at(instance, theta, random.normal(size=K))


def box_of_d(z, upper):
    """P3 eq. 6's bounds of each d_i."""
    return [(0.0, 1.0) if z_i == 0.0 else (-1.0, 0.0) if z_i == upper else (-1.0, 1.0) for z_i in z]


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_the_variables_that_move_are_those_of_the_best_d(seed, count):
    """P3 eq. 6 by trying every set of `count` variables, each at the best end of its interval."""
    instance = random_instance(seed % 50, M=5)
    iterate = random_iterate(instance, seed)
    dual = problem_of(instance).dual
    Q, p, A = quadratic_program(instance)
    z = variables(iterate.theta)
    gradient = Q @ z + p + A.T @ iterate.beta
    lowest = [
        min(low * g, high * g)
        for (low, high), g in zip(box_of_d(z, instance.upper), gradient, strict=True)
    ]
    best = min(sum(lowest[i] for i in moved) for moved in combinations(range(10), count))
    chosen = steepest_variables(violations(dual, iterate), count)
    assert len(set(chosen.tolist())) == len(chosen) <= count
    assert sum(lowest[i] for i in chosen) == pytest.approx(best, abs=1e-9)
    assert all(lowest[i] < 0.0 for i in chosen)


def test_at_the_optimum_no_variable_moves():
    assert len(steepest_variables(np.zeros(8), 3)) == 0


def test_kept_order_free_zero_bound():
    """Nothing violates: all are kept from the present set, in that order."""
    share = np.array([1.0, 0.0, 0.2, 0.4, 1.0, 0.0, 0.6, 0.0])
    age = np.array([1, 3, 5, 2, 2, 1, 0, 4])
    order = [3, 2, 5, 1, 7, 0, 4]
    for size in range(1, 8):
        kept = choose(np.zeros(16), share, age, size, 2)
        assert kept.tolist() == sorted(order[:size])


def test_fresh_samples_come_before_kept_ones():
    """Samples 3 and 5 violate by alpha, 4 by alpha*."""
    wrong = np.zeros(12)
    wrong[[3, 5, 6 + 4]] = 0.8, 0.6, 0.4
    age = np.array([1, 1, 0, 0, 0, 0])
    assert choose(wrong, np.zeros(6), age, 4, 2).tolist() == [0, 1, 3, 5]
    assert choose(wrong, np.zeros(6), age, 2, 3).tolist() == [3, 4, 5]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("cached_rows", [2, 5, 120])
def test_the_gradient_is_updated_as_if_computed_anew(solver, cached_rows):
    """P3 eq. 9 and 10 over many working sets, with rows that come and go."""
    instance = hat_instance(120, C=30.0)
    problem = problem_of(instance, cached_rows * 120 * 8)
    iterate = iterate_at(instance, np.zeros(120), least_squares(problem.dual))
    advance = working_sets(problem, solver, 20, 5)
    for _ in range(12):
        assert advance(iterate, 1e-14, 10**6) > 0
        afresh = iterate_at(instance, iterate.theta, iterate.beta)
        np.testing.assert_allclose(iterate.residual, afresh.residual, atol=1e-9)
        np.testing.assert_allclose(iterate.equality, afresh.equality, atol=1e-9)
        assert np.all(np.abs(iterate.theta) <= problem.dual.upper)


def test_only_rows_of_changed_samples_are_computed():
    instance = hat_instance(100)
    problem = problem_of(instance)
    residual, weight = np.zeros(100), np.zeros(100)
    weight[[3, 50]] = 1.0, -2.0
    add_kernel_part(problem.source, np.array([3, 50]), weight, residual)
    np.testing.assert_allclose(residual, instance.gram @ weight, atol=1e-12)
    assert np.flatnonzero(problem.source.kept.slot_of >= 0).tolist() == [3, 50]


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_whole_asks_for_the_rows_of_samples_that_move_only(solver):
    instance = hat_instance(300)
    instance = instance._replace(epsilon=0.5)
    problem = problem_of(instance)
    iterate, _, converged = solve(
        problem, whole(problem, solver), np.ones(2), 1e-3, 10**5, lambda _: None
    )
    assert converged
    moved = np.count_nonzero(iterate.theta)
    assert moved < 20
    assert np.count_nonzero(problem.source.kept.slot_of >= 0) < 2 * moved + 64


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_run_ends_by_what_rounding_made_of_its_residuals(solver):
    """Residuals that are off by more than tol: they are computed anew before the run may end."""
    instance = hat_instance(80)
    problem = problem_of(instance)
    advance, spoiled = whole(problem, solver), []

    def rounding(iterate, tol, limit):
        taken = advance(iterate, tol, limit)
        if len(spoiled) < 3:
            spoiled.append(taken)
            iterate.residual[:] += 1e-3 * np.sign(iterate.residual)
        return taken

    start = least_squares(problem.dual)
    iterate, point, converged = solve(problem, rounding, start, 1e-6, 10**5, lambda _: None)
    assert converged
    assert len(spoiled) == 3
    afresh = point_of(problem.dual, iterate_at(instance, iterate.theta, iterate.beta), 0)
    assert point.violation == pytest.approx(afresh.violation, abs=1e-12)
    assert afresh.violation <= 1e-6


def test_a_run_begins_at_the_coefficients_that_it_is_given():
    problem = problem_of(hat_instance(60))
    seen = []
    solve(problem, whole(problem, "pdsg"), np.array([7.0, -7.0]), 1e-3, 10**5, seen.append)
    assert seen[0].beta.tolist() == [7.0, -7.0]
    assert seen[0].steps == 0
    np.testing.assert_allclose(seen[-1].beta, 1.0, atol=0.3)

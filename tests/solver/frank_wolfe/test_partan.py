"""PARTAN's step against P4's formulas, word by word, and against the quadratic form itself."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given

from tests.solver.frank_wolfe.test_steps import assert_consistent, points, problem_at, unit
from wolfstream.solver.compiled import compiled
from wolfstream.solver.frank_wolfe import partan as module
from wolfstream.solver.frank_wolfe.partan import (
    PreviousIterate,
    nothing_previous,
    refresh_from_gradient,
)
from wolfstream.solver.frank_wolfe.problem import best_vertex

# As machine code; for callers from Python it is a Python function.
partan = compiled(module.partan)


class Line(NamedTuple):
    """previous + t (tilde - previous), t = 1 + mu, and its lowest point within the simplex."""

    tilde: np.ndarray
    t: float
    t_max: float
    lowest: np.ndarray


def previous_at(A, before, alpha):
    """What PARTAN would remember of `before`, all fields from their definitions."""
    n = len(A)
    previous = nothing_previous(n + 3)
    previous.alpha[:n] = before
    previous.gradient[:n] = -2.0 * A @ before
    previous.q[0] = before @ A @ before
    previous.cross[0] = before @ A @ alpha
    previous.known[0] = True
    return previous


def toward_directly(A, alpha, p):
    d = unit(len(A), p) - alpha
    curvature = d @ A @ d
    step = np.clip(-(alpha @ A @ d) / curvature, 0.0, 1.0) if curvature > 0.0 else 0.0
    return alpha + step * d


def partan_directly(A, before, alpha, p):
    """P4 eqs. 7 and 8 with exact line searches over all of the line that lies in the simplex."""
    tilde = toward_directly(A, alpha, p)
    d = tilde - before
    shrinking = d < 0.0
    t_max = np.min(before[shrinking] / -d[shrinking], initial=np.inf)
    t = np.clip(-(before @ A @ d) / (d @ A @ d), 0.0, t_max)
    return Line(tilde, t, t_max, before + t * d)


def assert_remembers(previous, A, before, alpha):
    """`previous` is the iterate `before`, and W = before' A alpha."""
    n, scale = len(A), np.abs(A).max()
    assert previous.known[0]
    np.testing.assert_allclose(previous.alpha[:n], before, rtol=0, atol=1e-9)
    np.testing.assert_allclose(previous.gradient[:n], -2.0 * A @ before, atol=1e-9 * scale)
    assert previous.q[0] == pytest.approx(before @ A @ before, abs=1e-9 * scale)
    assert previous.cross[0] == pytest.approx(before @ A @ alpha, abs=1e-9 * scale)


def random_state(seed):
    """A definite A, two unrelated points of the simplex, possibly on faces, and a best vertex."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 9))
    factor = random.standard_normal((n, n))
    A = factor @ factor.T + 0.5 * np.eye(n) + random.choice([0.0, 3.0])
    before, alpha = random.dirichlet(np.ones(n), 2)
    for point in (before, alpha):
        point[random.random(n) < random.choice([0.0, 0.5])] = 0.0
    if not before.any() or not alpha.any():
        return random_state(seed + 10_000)
    return A, before / before.sum(), alpha / alpha.sum()


class TestFirstStep:
    @given(points())
    def test_is_a_toward_step(self, point):
        A, alpha, _ = point
        problem, previous = problem_at(A, alpha), nothing_previous(len(A) + 3)
        p = best_vertex(problem)
        partan(problem, previous, p, A[p].copy())
        expected = toward_directly(A, alpha, p)
        np.testing.assert_allclose(problem.alpha[: len(A)], expected, rtol=0, atol=1e-9)
        assert_consistent(problem, A)
        assert_remembers(previous, A, alpha, problem.alpha[: len(A)])
        assert problem.steps[0] == 1


class TestTheLine:
    """Each seed is another state; together they meet every case of the line search."""

    SEEDS = range(300)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_ends_at_its_lowest_point(self, seed):
        A, before, alpha = random_state(seed)
        problem, previous = problem_at(A, alpha), previous_at(A, before, alpha)
        p = best_vertex(problem)
        partan(problem, previous, p, A[p].copy())
        lowest = partan_directly(A, before, alpha, p).lowest
        np.testing.assert_allclose(problem.alpha[: len(A)], lowest, rtol=0, atol=1e-9)
        assert_consistent(problem, A)
        assert_remembers(previous, A, alpha, problem.alpha[: len(A)])

    @pytest.mark.parametrize("seed", SEEDS)
    def test_no_point_of_a_dense_grid_is_lower(self, seed):
        A, before, alpha = random_state(seed)
        problem, previous = problem_at(A, alpha), previous_at(A, before, alpha)
        p = best_vertex(problem)
        line = partan_directly(A, before, alpha, p)
        partan(problem, previous, p, A[p].copy())
        t = np.linspace(0.0, min(line.t_max, 100.0), 1001)[:, None]
        grid = before + t * (line.tilde - before)
        assert problem.q[0] <= np.einsum("gi,ij,gj->g", grid, A, grid).min() + 1e-9

    def test_every_case_is_met(self):
        states = [random_state(seed) for seed in self.SEEDS]
        lines = [
            partan_directly(A, before, alpha, int(np.argmin(A @ alpha)))
            for A, before, alpha in states
        ]
        assert sum(line.t == line.t_max for line in lines) >= 10, "the clip binds"
        assert sum(1.0 < line.t == line.t_max for line in lines) >= 10, "beyond alpha~"
        assert sum(1.0 < line.t < line.t_max for line in lines) >= 10, "mu > 0 and free"
        assert sum(0.0 < line.t < 1.0 for line in lines) >= 10, "mu < 0"
        assert sum(line.t == 0.0 for line in lines) >= 1, "back to the previous iterate"

    def test_a_weight_at_the_clip_is_exactly_zero(self):
        met = 0
        for seed in self.SEEDS:
            A, before, alpha = random_state(seed)
            problem, previous = problem_at(A, alpha), previous_at(A, before, alpha)
            p = best_vertex(problem)
            line = partan_directly(A, before, alpha, p)
            partan(problem, previous, p, A[p].copy())
            if 1.0 < line.t == line.t_max:
                leaving = (line.tilde > 0.0) & (line.lowest < 1e-12)
                assert np.all(problem.alpha[: len(A)][leaving] < 1e-15)
                met += bool(leaving.any())
        assert met >= 10


class TestPaper:
    """P4's appendix in its own signs: f = -q/2, maximised, with gradient -K alpha."""

    @pytest.mark.parametrize("seed", range(300))
    def test_equations_11_to_15(self, seed):
        K, before, alpha = random_state(seed)

        def f(point):
            return -0.5 * point @ K @ point

        i = int(np.argmin(K @ alpha))
        slope, slope_before = -(K @ alpha)[i], -(K @ before)[i]
        W = before @ K @ alpha
        step = (2 * f(alpha) - slope) / (2 * f(alpha) - 2 * slope - K[i, i])
        if not 0.0 < step < 1.0:
            step = float(np.clip(step, 0.0, 1.0))
        f_tilde = (1 - step) ** 2 * f(alpha) + step * (1 - step) * slope - 0.5 * step**2 * K[i, i]
        mu = (step * slope_before - (1 - step) * W - 2 * f_tilde) / (
            2 * (f_tilde + (1 - step) * W - step * slope_before + f(before))
        )
        line = partan_directly(K, before, alpha, i)
        mu = float(np.clip(mu, -1.0, line.t_max - 1.0))
        f_new = (
            (1 + mu) ** 2 * f_tilde
            + mu * (1 + mu) * (1 - step) * W
            - mu * (1 + mu) * step * slope_before
            + mu**2 * f(before)
        )
        W_next = -2 * (1 + mu) * (1 - step) * f(alpha) - (1 + mu) * step * slope - mu * W
        new = (1 + mu - step - mu * step) * alpha - mu * before
        new[i] += step + step * mu

        problem, previous = problem_at(K, alpha), previous_at(K, before, alpha)
        partan(problem, previous, i, K[i].copy())
        np.testing.assert_allclose(problem.alpha[: len(K)], new, rtol=0, atol=1e-10)
        assert -0.5 * problem.q[0] == pytest.approx(f_new, rel=1e-10)
        assert previous.cross[0] == pytest.approx(W_next, rel=1e-10)


def gap_of(problem):
    return problem.gradient[best_vertex(problem)] + 2.0 * problem.q[0]


class TestConsecutiveSteps:
    @given(points())
    def test_q_gradient_and_what_is_remembered_stay_equal_to_their_definitions(self, point):
        A, alpha, _ = point
        scale = np.abs(A).max()
        problem, previous = problem_at(A, alpha), nothing_previous(len(A) + 3)
        for _ in range(8):
            before = problem.alpha[: len(A)].copy()
            if gap_of(problem) <= 1e-5 * scale:
                break
            p = best_vertex(problem)
            partan(problem, previous, p, A[p].copy())
            assert_consistent(problem, A)
            assert_remembers(previous, A, before, problem.alpha[: len(A)])
            assert problem.q[0] <= before @ A @ before + 1e-9 * scale

    @given(points())
    def test_steps_at_the_optimum_change_nothing(self, point):
        """There alpha~ and the previous iterate differ by rounding, and so does any direction."""
        A, alpha, _ = point
        scale = np.abs(A).max()
        problem, previous = problem_at(A, alpha), nothing_previous(len(A) + 3)
        for _ in range(200):
            p = best_vertex(problem)
            partan(problem, previous, p, A[p].copy())
        held = problem.alpha[: len(A)]
        assert held.sum() == pytest.approx(1.0, abs=1e-6)
        assert problem.q[0] == pytest.approx(held @ A @ held, abs=1e-6 * scale)
        np.testing.assert_allclose(
            problem.gradient[: len(A)], -2.0 * A @ held, rtol=0, atol=1e-6 * scale
        )
        assert problem.q[0] <= alpha @ A @ alpha + 1e-9 * scale


class TestRefresh:
    @given(points())
    def test_weights_sum_to_one_and_q_and_cross_follow_from_alpha_and_g(self, point):
        A, alpha, random = point
        n = len(A)
        before = random.dirichlet(np.ones(n))
        problem, previous = problem_at(A, alpha), previous_at(A, before, alpha)
        problem.alpha[:n] *= 1.0 + 1e-7
        problem.gradient[:n] *= 1.0 + 1e-7
        problem.q[0] *= 1.1
        previous.cross[0] *= 1.1
        refresh_from_gradient(problem, previous)
        assert_consistent(problem, A)
        assert_remembers(previous, A, before, alpha)

    def test_reads_only_the_members(self):
        A = np.diag([1.0, 2.0])
        problem, previous = problem_at(A, np.array([0.5, 0.5])), nothing_previous(5)
        for field in (problem.gradient, previous.alpha, previous.gradient):
            field[2:] = np.nan
        refresh_from_gradient(problem, previous)
        assert problem.q[0] == pytest.approx(0.75)

    def test_before_the_first_step_nothing_is_known(self):
        previous = nothing_previous(4)
        assert isinstance(previous, PreviousIterate)
        assert not previous.known[0]
        assert len(previous.alpha) == len(previous.gradient) == 4

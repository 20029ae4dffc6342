"""The steps on the simplex, each against the direct quadratic form and a search of its segment."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wolfstream.solver.compiled import compiled
from wolfstream.solver.frank_wolfe import steps
from wolfstream.solver.frank_wolfe.problem import (
    best_vertex,
    empty_problem,
    with_capacity,
    worst_vertex,
)

# As machine code; for callers from Python they are Python functions.
toward, away, swap = map(compiled, (steps.toward, steps.away, steps.swap))
toward_gain, swap_gain = map(compiled, (steps.toward_gain, steps.swap_gain))
toward_length, clamped_ratio = map(compiled, (steps.toward_length, steps.clamped_ratio))
away_is_steeper = compiled(steps.away_is_steeper)

GRID = np.linspace(0.0, 1.0, 2001)


def problem_at(A, alpha):
    """The problem with matrix A at the given point of the simplex, all fields consistent."""
    problem = empty_problem(len(alpha) + 3)
    n = len(alpha)
    problem.alpha[:n] = alpha
    problem.gradient[:n] = -2.0 * A @ alpha
    problem.sign[:n] = 1.0
    problem.column[:n] = np.arange(n)
    problem.q[0] = alpha @ A @ alpha
    problem.size[0] = n
    return problem


def assert_consistent(problem, A):
    """alpha on the simplex; q and g equal to their definitions."""
    n = len(A)
    alpha = problem.alpha[:n]
    scale = np.abs(A).max()
    assert alpha.min() >= 0.0
    assert alpha.sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(problem.gradient[:n], -2.0 * A @ alpha, rtol=0, atol=1e-9 * scale)
    assert problem.q[0] == pytest.approx(alpha @ A @ alpha, abs=1e-9 * scale)
    assert np.all(problem.alpha[n:] == 0.0)


def lowest_on_segment(A, start, end):
    points = start + GRID[:, None] * (end - start)
    return np.einsum("gi,ij,gj->g", points, A, points).min()


@st.composite
def points(draw, min_size=2):
    """A positive definite A, a point of the simplex that may lie on a face, and a vertex."""
    n = draw(st.integers(min_size, 12))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factor = random.standard_normal((n, draw(st.integers(1, 6))))
    offset = draw(st.sampled_from([0.0, 1.0, 5.0]))
    A = factor @ factor.T + offset + draw(st.sampled_from([0.005, 0.5, 50.0])) * np.eye(n)
    alpha = random.exponential(size=n)
    alpha[random.random(n) < draw(st.sampled_from([0.0, 0.3, 0.7]))] = 0.0
    assume(np.count_nonzero(alpha) >= min(n, 2))
    return A, alpha / alpha.sum(), random


def unit(n, p):
    return np.eye(n)[p]


class TestToward:
    @given(points())
    def test_moves_weight_to_the_vertex_and_updates_q_and_g(self, point):
        A, alpha, random = point
        p = int(random.integers(len(A)))
        problem = problem_at(A, alpha)
        step = toward(problem, p, A[p].copy())
        assert 0.0 <= step <= 1.0
        expected = (1.0 - step) * alpha + step * unit(len(A), p)
        np.testing.assert_allclose(problem.alpha[: len(A)], expected, rtol=0, atol=1e-12)
        assert_consistent(problem, A)

    @given(points())
    def test_ends_at_the_lowest_point_of_the_segment(self, point):
        A, alpha, _ = point
        problem = problem_at(A, alpha)
        p = best_vertex(problem)
        toward(problem, p, A[p].copy())
        assert problem.q[0] <= lowest_on_segment(A, alpha, unit(len(A), p)) + 1e-9
        assert problem.q[0] <= alpha @ A @ alpha + 1e-12

    @given(points())
    def test_stays_where_the_vertex_is_downhill(self, point):
        A, alpha, _ = point
        problem = problem_at(A, alpha)
        p = worst_vertex(problem)
        assume(problem.gradient[p] < -2.0 * problem.q[0] - 1e-9)
        assert toward(problem, p, A[p].copy()) == 0.0
        np.testing.assert_array_equal(problem.alpha[: len(A)], alpha)

    def test_a_vertex_better_than_the_whole_segment_takes_all_the_weight(self):
        A = np.array([[10.0, 5.0], [5.0, 1.0]])
        problem = problem_at(A, np.array([1.0, 0.0]))
        assert toward(problem, 1, A[1].copy()) == 1.0
        assert problem.alpha[:2].tolist() == [0.0, 1.0]
        assert problem.q[0] == 1.0
        assert problem.gradient[:2].tolist() == [-10.0, -2.0]

    def test_the_vertex_where_all_the_weight_is_cannot_be_improved(self):
        A = np.array([[2.0, 3.0], [3.0, 7.0]])
        problem = problem_at(A, np.array([1.0, 0.0]))
        assert toward(problem, 0, A[0].copy()) == 0.0
        assert problem.alpha[:2].tolist() == [1.0, 0.0]


class TestAway:
    @given(points())
    def test_takes_weight_from_the_vertex_and_updates_q_and_g(self, point):
        A, alpha, _ = point
        problem = problem_at(A, alpha)
        p = worst_vertex(problem)
        dropped = away(problem, p, A[p].copy())
        assert_consistent(problem, A)
        assert dropped == (problem.alpha[p] == 0.0)
        others = np.arange(len(A)) != p
        kept = problem.alpha[: len(A)][others]
        share = alpha[others] / alpha[others].sum()
        np.testing.assert_allclose(kept / kept.sum(), share, rtol=0, atol=1e-9)

    @given(points())
    def test_ends_at_the_lowest_point_of_the_segment(self, point):
        A, alpha, _ = point
        problem = problem_at(A, alpha)
        p = worst_vertex(problem)
        away(problem, p, A[p].copy())
        without_p = (alpha - alpha[p] * unit(len(A), p)) / (1.0 - alpha[p])
        assert problem.q[0] <= lowest_on_segment(A, alpha, without_p) + 1e-9
        assert problem.q[0] <= alpha @ A @ alpha + 1e-12

    def test_a_drop_leaves_exact_zero_and_a_member_with_a_gradient(self):
        A = np.array([[9.0, 2.0, 2.0], [2.0, 1.0, 0.2], [2.0, 0.2, 1.0]])
        problem = problem_at(A, np.array([0.1, 0.3, 0.6]))
        assert away(problem, 0, A[0].copy())
        assert problem.alpha[0] == 0.0
        assert problem.size[0] == 3
        assert_consistent(problem, A)


class TestSwap:
    @given(points())
    def test_moves_weight_from_the_worst_to_the_best_and_updates_q_and_g(self, point):
        A, alpha, _ = point
        problem = problem_at(A, alpha)
        best, worst = best_vertex(problem), worst_vertex(problem)
        assume(best != worst)
        step = swap(problem, best, worst, A[best].copy(), A[worst].copy())
        assert 0.0 <= step <= alpha[worst]
        expected = alpha + step * (unit(len(A), best) - unit(len(A), worst))
        np.testing.assert_allclose(problem.alpha[: len(A)], expected, rtol=0, atol=1e-15)
        assert_consistent(problem, A)

    @given(points())
    def test_ends_at_the_lowest_point_of_the_segment(self, point):
        A, alpha, _ = point
        problem = problem_at(A, alpha)
        best, worst = best_vertex(problem), worst_vertex(problem)
        assume(best != worst)
        swap(problem, best, worst, A[best].copy(), A[worst].copy())
        whole = alpha + alpha[worst] * (unit(len(A), best) - unit(len(A), worst))
        assert problem.q[0] <= lowest_on_segment(A, alpha, whole) + 1e-9
        assert problem.q[0] <= alpha @ A @ alpha + 1e-12

    def test_moving_all_the_weight_leaves_exact_zero(self):
        A = np.array([[1.0, 2.0, 0.0], [2.0, 9.0, 2.0], [0.0, 2.0, 1.0]])
        problem = problem_at(A, np.array([0.3, 0.1, 0.6]))
        assert swap(problem, 0, 1, A[0].copy(), A[1].copy()) == 0.1
        assert problem.alpha[1] == 0.0
        assert_consistent(problem, A)


class TestVertices:
    @given(
        g=st.lists(
            st.floats(-100.0, 100.0).map(lambda value: round(value)), min_size=1, max_size=200
        ),
        seed=st.integers(0, 2**32 - 1),
    )
    def test_best_is_the_first_largest_gradient(self, g, seed):
        alpha = np.random.default_rng(seed).random(len(g))
        problem = problem_at(np.eye(len(g)), alpha / alpha.sum())
        problem.gradient[: len(g)] = g
        problem.gradient[len(g) :] = 1e9
        assert best_vertex(problem) == np.argmax(g)

    @given(
        g=st.lists(st.integers(-100, 100), min_size=1, max_size=200),
        seed=st.integers(0, 2**32 - 1),
    )
    def test_worst_is_the_first_smallest_gradient_that_carries_weight(self, g, seed):
        random = np.random.default_rng(seed)
        alpha = random.random(len(g)) * (random.random(len(g)) < 0.5)
        alpha[random.integers(len(g))] = 0.5
        problem = problem_at(np.eye(len(g)), alpha / alpha.sum())
        problem.gradient[: len(g)] = g
        problem.gradient[len(g) :] = -1e9
        assert worst_vertex(problem) == np.argmin(np.where(alpha > 0.0, g, np.inf))


class TestGains:
    """How far a step would raise f = -q, before it is taken."""

    @given(points())
    def test_toward_gain_is_what_the_step_gains(self, point):
        A, alpha, random = point
        p = int(random.integers(len(A)))
        problem = problem_at(A, alpha)
        gain = toward_gain(problem, p, A[p].copy())
        assert problem.steps[0] == 0
        np.testing.assert_array_equal(problem.alpha[: len(A)], alpha)
        toward(problem, p, A[p].copy())
        after = problem.alpha[: len(A)]
        assert gain >= 0.0
        assert gain == pytest.approx(alpha @ A @ alpha - after @ A @ after, abs=1e-9)

    def test_toward_gain_near_an_optimum_is_no_rounding(self):
        A, shift = np.array([[3.0, 1.0], [1.0, 3.0]]), 1e-9
        problem = problem_at(A, np.array([0.5 - shift, 0.5 + shift]))
        # By hand: D = e_0'Ae_0 + q - 2 (A alpha)_0 = 1 + 4 shift, the gap 4 shift to first order.
        assert toward_gain(problem, 0, A[0].copy()) == pytest.approx(
            4.0 * shift**2, rel=1e-6, abs=0.0
        )

    @given(points())
    def test_swap_gain_is_what_the_step_gains(self, point):
        A, alpha, _ = point
        problem = problem_at(A, alpha)
        best, worst = best_vertex(problem), worst_vertex(problem)
        rows = A[best].copy(), A[worst].copy()
        gain = swap_gain(problem, best, worst, *rows)
        assert problem.steps[0] == 0
        np.testing.assert_array_equal(problem.alpha[: len(A)], alpha)
        swap(problem, best, worst, *rows)
        after = problem.alpha[: len(A)]
        assert gain >= 0.0
        assert gain == pytest.approx(alpha @ A @ alpha - after @ A @ after, abs=1e-9)

    @given(points())
    def test_toward_length_gives_the_step_and_q_after_it(self, point):
        A, alpha, random = point
        p = int(random.integers(len(A)))
        problem = problem_at(A, alpha)
        length, q = toward_length(problem, p, A[p, p])
        assert toward(problem, p, A[p].copy()) == length
        after = (1.0 - length) * alpha + length * unit(len(A), p)
        assert q == pytest.approx(after @ A @ after, abs=1e-9)


class TestDecision:
    """P1 Algorithm 3: toward iff d_t'g >= d_a'g, d_t = e_best - alpha, d_a = alpha - e_worst."""

    @given(points())
    def test_away_where_its_direction_is_steeper(self, point):
        A, alpha, _ = point
        problem = problem_at(A, alpha)
        best, worst = best_vertex(problem), worst_vertex(problem)
        g = -2.0 * A @ alpha
        toward_rise = (unit(len(A), best) - alpha) @ g
        away_rise = (alpha - unit(len(A), worst)) @ g
        assume(abs(toward_rise - away_rise) > 1e-8 * np.abs(A).max())
        assert away_is_steeper(problem, best, worst) == (away_rise > toward_rise)

    def test_toward_where_both_are_equally_steep(self):
        problem = problem_at(np.eye(2), np.array([0.5, 0.5]))
        assert not away_is_steeper(problem, 0, 1)

    def test_never_from_the_vertex_that_has_all_the_weight(self):
        # With a gradient that rounding has spoiled: at alpha = e_0 exactly, g_0 = -2q.
        problem = problem_at(np.array([[1.0, 3.0], [3.0, 9.0]]), np.array([1.0, 0.0]))
        problem.gradient[0] = -50.0
        assert not away_is_steeper(problem, 1, 0)


class TestClampedRatio:
    @pytest.mark.parametrize(
        ("numerator", "curvature", "bound", "expected"),
        [
            (1.0, 2.0, 1.0, 0.5),
            (3.0, 2.0, 1.0, 1.0),
            (0.0, 2.0, 1.0, 0.0),
            (-1.0, 2.0, 1.0, 0.0),
            (1.0, 0.0, 0.7, 0.7),
            (0.0, 0.0, 0.7, 0.0),
            (-1.0, 0.0, 0.7, 0.0),
            (1.0, -2.0, 0.7, 0.7),
            (-0.5, -2.0, 0.7, 0.7),
            (-0.9, -2.0, 0.7, 0.0),
            (1.0, 2.0, 0.0, 0.0),
        ],
    )
    def test_minimiser(self, numerator, curvature, bound, expected):
        assert clamped_ratio(numerator, curvature, bound) == expected

    @given(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0), st.floats(0.0, 10.0))
    def test_no_point_of_the_interval_is_lower(self, numerator, curvature, bound):
        def height(t):
            return curvature * t**2 - 2.0 * numerator * t

        t = clamped_ratio(numerator, curvature, bound)
        assert 0.0 <= t <= bound
        assert height(t) <= height(bound * GRID).min() + 1e-9


class TestCapacity:
    def test_more_room_changes_no_member(self):
        A = np.diag([1.0, 2.0, 3.0])
        problem = problem_at(A, np.array([0.5, 0.25, 0.25]))
        problem.steps[0] = 17
        grown = with_capacity(problem, 100)
        assert len(grown.alpha) >= 100
        assert grown.steps[0] == 17
        assert grown.size[0] == 3
        assert grown.sign[:3].tolist() == [1.0] * 3
        assert grown.column[:3].tolist() == [0, 1, 2]
        assert_consistent(grown, A)

    def test_enough_room_changes_nothing(self):
        problem = empty_problem(5)
        assert with_capacity(problem, 5) is problem

    def test_room_grows_by_doubling(self):
        assert len(with_capacity(empty_problem(100), 101).alpha) == 200

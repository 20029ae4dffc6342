"""FW, MFW, SWAP, PARTAN and SMO over all vertices: where they end, and what they say on the way."""

import numpy as np
import pytest

from tests.solver.oracle_qp import minimise
from tests.solver.problems import (
    KERNELS,
    KINDS,
    TASKS,
    assert_certified,
    assert_rising,
    ball,
    classification,
    full,
    gap_at,
    labelled,
    noisy_sine,
    regression,
    sampled,
    traced,
    uniform,
)
from wolfstream.solver.frank_wolfe.driver import solve
from wolfstream.solver.frank_wolfe.methods import (
    METHODS,
    SWAP_METHOD,
    Scratch,
    Tolerance,
    take_step,
)
from wolfstream.solver.frank_wolfe.partan import nothing_previous
from wolfstream.solver.frank_wolfe.problem import empty_problem
from wolfstream.solver.frank_wolfe.steps import AWAY, DROP, INITIAL, PARTAN, SWAP, TOWARD
from wolfstream.solver.kernels.functions import Kernel

VERTICES = 120


class TestOptimum:
    """The exact optimum of the active set method, for every problem and kernel."""

    @pytest.mark.sweep
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", ["mfw", "swap"])
    def test_linearly_convergent_methods_reach_it(self, method, task, kernel):
        instance = TASKS[task](kernel, VERTICES, 0.5)
        optimum, scale = minimise(instance.A), np.abs(instance.A).max()
        solution = traced(full(instance), method, 1e-9)
        assert solution.converged
        assert_certified(solution, instance.A)
        assert solution.objective == pytest.approx(-optimum.value, rel=1e-9, abs=1e-8)
        assert solution.gap <= 1e-9 + 1e-10 * scale
        bounds = -optimum.value - solution.trace.objective <= solution.trace.gap + 1e-11 * scale
        assert bounds.all()
        # Vertices that are plainly not in the optimum have been dropped, to exactly zero.
        outside = instance.A @ optimum.alpha - optimum.value > 1e-3 * scale
        assert np.all(solution.alpha[outside] == 0.0)

    @pytest.mark.sweep
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", ["fw", "partan"])
    def test_sublinear_methods_come_as_close_as_their_gap_says(self, method, task, kernel):
        instance = TASKS[task](kernel, VERTICES, 0.5)
        optimum = -minimise(instance.A).value
        tol = 1e-3 * np.abs(instance.A).max()
        solution = traced(full(instance), method, tol)
        assert solution.converged
        assert_certified(solution, instance.A)
        assert -1e-9 <= optimum - solution.objective <= tol
        assert np.all(optimum - solution.trace.objective <= solution.trace.gap + 1e-9)

    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    @pytest.mark.parametrize("method", METHODS)
    def test_inside_the_simplex_all_methods_reach_it(self, method, kernel):
        """Few vertices and a ridge that outweighs the kernel: every weight is positive."""
        X, y = labelled(1, 6)
        instance = classification(kernel, X, y, 0.002, 0.002)
        optimum = minimise(instance.A)
        assert optimum.alpha.min() > 0.01
        solution = solve(full(instance), method, 1e-9, 200_000)
        assert solution.converged
        assert_certified(solution, instance.A)
        assert solution.objective == pytest.approx(-optimum.value, rel=1e-9, abs=1e-8)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("task", ["ball", "regression"])
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    @pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
    def test_a_tight_tolerance_breaks_nothing(self, C, kernel, task, method):
        """Whatever the number of steps, the numbers are those of alpha."""
        instance = TASKS[task](kernel, VERTICES, C)
        solution = traced(full(instance), method, 1e-9, 3000)
        assert_certified(solution, instance.A, rounding=1e-9)
        assert_rising(solution.trace)
        if solution.converged:
            assert gap_at(instance.A, solution.alpha) <= 1e-8 * np.abs(instance.A).max()


class TestSteps:
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", METHODS)
    def test_every_step_raises_the_objective_and_is_of_the_methods_kinds(self, method, task):
        instance = TASKS[task](KERNELS["rbf"], 60, 5.0)
        solution = traced(full(instance, uniform(60)), method, 1e-6, 700)
        trace = solution.trace
        assert_rising(trace)
        assert trace.step[0] == INITIAL
        assert set(trace.step[1:].tolist()) <= KINDS[method]
        assert_certified(solution, instance.A)

    @pytest.mark.parametrize(
        ("method", "kinds"),
        [
            ("fw", {TOWARD}),
            ("mfw", {TOWARD, AWAY, DROP}),
            ("swap", {TOWARD, SWAP}),
            ("partan", {PARTAN}),
        ],
    )
    def test_all_of_the_methods_kinds_occur(self, method, kinds):
        instance = TASKS["class weights"](KERNELS["rbf"], 60, 100.0)
        trace = traced(full(instance, uniform(60)), method, 1e-6, 700).trace
        assert set(trace.step[1:].tolist()) == kinds

    def test_a_drop_leaves_exactly_zero(self):
        """From weights everywhere, MFW drops a vertex at a time; toward steps bring some back."""
        instance = TASKS["ball"](KERNELS["rbf"], 40, 100.0)
        alpha = uniform(40)
        for _ in range(60):
            solution = traced(full(instance, alpha), "mfw", 1e-9, 1)
            if solution.converged:
                break
            zeros = np.count_nonzero(solution.alpha == 0.0) - np.count_nonzero(alpha == 0.0)
            kind = solution.trace.step[1]
            assert zeros == {DROP: 1, AWAY: 0}.get(kind, min(zeros, 0))
            alpha = solution.alpha
        assert np.count_nonzero(alpha == 0.0) >= 5

    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", METHODS)
    def test_the_trace_holds_each_points_objective_and_gap(self, method, task):
        """A run of k steps ends where the k-th point of a longer run is."""
        instance = TASKS[task](KERNELS["rbf"], 40, 2.0)
        trace = traced(full(instance), method, 0.0, 12).trace
        for k in (1, 2, 5, 11):
            alpha = solve(full(instance), method, 0.0, k).alpha
            assert trace.objective[k] == pytest.approx(-alpha @ instance.A @ alpha, abs=1e-9)
            assert trace.gap[k] == pytest.approx(gap_at(instance.A, alpha), abs=1e-9)

    @pytest.mark.parametrize("task", TASKS)
    def test_mfw_takes_the_steeper_and_swap_the_more_gainful_direction(self, task):
        """Each step's rise is that of the better of the two, computed from A alone."""
        A = TASKS[task](KERNELS["rbf"], 40, 20.0).A
        instance = TASKS[task](KERNELS["rbf"], 40, 20.0)
        for method in ("mfw", "swap"):
            alpha = uniform(40)
            for _ in range(40):
                solution = traced(full(instance, alpha), method, 1e-9, 1)
                slope, weighted = A @ alpha, alpha > 0.0
                best = int(np.argmin(slope))
                worst = int(np.argmax(np.where(weighted, slope, -np.inf)))
                towards = np.eye(40)[best] - alpha
                other = alpha - np.eye(40)[worst]
                bound = alpha[worst] / (1.0 - alpha[worst])
                if method == "swap":
                    other, bound = np.eye(40)[best] - np.eye(40)[worst], alpha[worst]
                rises = [line_rise(A, alpha, towards, 1.0), line_rise(A, alpha, other, bound)]
                steeper = -(slope @ other) > -(slope @ towards) + 1e-12
                expected = max(rises) if method == "swap" else rises[int(steeper)]
                rise = solution.trace.objective[-1] - solution.trace.objective[0]
                assert rise == pytest.approx(expected, abs=1e-10)
                alpha = solution.alpha


def line_rise(A, alpha, d, bound):
    """By how much -alpha'A alpha rises on alpha + t d, 0 <= t <= bound."""
    slope, curvature = -(alpha @ A @ d), d @ A @ d
    t = np.clip(slope / curvature, 0.0, bound)
    return 2.0 * t * slope - t * t * curvature


@pytest.fixture(scope="module")
def large():
    return classification(KERNELS["rbf"], *labelled(11, 2000), 2.0, 2.0, dtype=np.dtype(np.float32))


@pytest.fixture(scope="module")
def large_optimum(large):
    solution = solve(full(large), "mfw", 1e-7, 200_000)
    assert solution.converged
    return solution.objective


def test_the_best_vertex_is_not_swapped_with_itself():
    """It may be the worst one, too, where gradients are tied; rows of its own may be rounded."""
    problem = empty_problem(2)
    problem.alpha[:], problem.gradient[:] = 0.5, -4.0 + 1e-12
    problem.q[0], problem.size[0] = 2.0, 2
    rows = Scratch(np.array([3.0, 1.0]), np.array([3.0 - 1e-14, 1.0]), np.empty(2, np.int64))
    step = take_step(problem, nothing_previous(2), SWAP_METHOD, 0, 0, False, rows)
    assert step == TOWARD


class TestCertificate:
    """2,000 samples and kernel values in float32, as in earnest."""

    @pytest.mark.parametrize("method", METHODS)
    def test_gap_and_objective_are_those_of_the_matrix_in_float64(
        self, method, large, large_optimum
    ):
        solution = traced(full(large), method, 2e-4)
        assert solution.converged
        # float32 values are exact to about 1e-6; alpha sums to one, so errors do not add up.
        assert_certified(solution, large.A, rounding=1e-6)
        assert solution.gap <= 2e-4 + 1e-8
        assert np.all(large_optimum - solution.trace.objective <= solution.trace.gap + 1e-6)
        assert_rising(solution.trace, rounding=1e-9)

    @pytest.mark.parametrize("C", [10.0, 100.0])
    @pytest.mark.parametrize("kernel", ["rbf", "linear"])
    @pytest.mark.parametrize("search", [full, sampled])
    def test_a_tiny_gap_holds_in_float64(self, search, kernel, C):
        """The errors of float32 values are as large as this gap."""
        rows = labelled(11, 600)
        instance = classification(KERNELS[kernel], *rows, C, C, dtype=np.dtype(np.float32))
        solution = solve(search(instance), "mfw", 1e-7, 3000)
        scale = 1e-13 * np.abs(instance.A).max()
        assert solution.gap == pytest.approx(gap_at(instance.A, solution.alpha), abs=scale)
        q = solution.alpha @ instance.A @ solution.alpha
        assert solution.objective == pytest.approx(-q, abs=scale)


def equal_rows():
    X, y = labelled(3, 12)
    return classification(KERNELS["rbf"], np.repeat(X[:1], 12, axis=0), y)


def opposite_labels():
    X, y = labelled(3, 12)
    return classification(KERNELS["rbf"], np.tile(X, (2, 1)), np.concatenate([y, -y]), 10.0, 10.0)


def two_class(kernel, C):
    return classification(kernel, *labelled(3, 24), C, C)


INDEFINITE = Kernel("polynomial", gamma=1.0, degree=3, coef0=-1.0)
DEGENERATE = {
    "rows equal": equal_rows,
    "rows equal, labels opposite": opposite_labels,
    "one row": lambda: classification(KERNELS["rbf"], *labelled(3, 1)),
    "one class": lambda: classification(KERNELS["rbf"], labelled(3, 12)[0], np.ones(12)),
    "C tiny": lambda: two_class(KERNELS["rbf"], 1e-6),
    "C huge": lambda: two_class(KERNELS["rbf"], 1e6),
    "kernel matrix of ones": lambda: two_class(Kernel("rbf", gamma=1e-12), 1.0),
    "kernel matrix the identity": lambda: two_class(Kernel("rbf", gamma=1e12), 1.0),
    "kernel indefinite": lambda: two_class(INDEFINITE, 1.0),
    "kernel indefinite, C huge": lambda: two_class(INDEFINITE, 1e6),
    "ball of equal rows": lambda: ball(KERNELS["linear"], np.full((9, 2), 1e3), np.inf),
    "ball of an indefinite kernel": lambda: ball(INDEFINITE, labelled(3, 24)[0], 1.0),
    "regression of one sample": lambda: regression(
        KERNELS["rbf"], np.ones((1, 2)), np.array([3.0]), 1.0, 0.5
    ),
    "regression of a constant": lambda: regression(
        KERNELS["rbf"], noisy_sine(3, 12)[0], np.zeros(12), 1.0, 0.5
    ),
    "regression, C huge": lambda: regression(KERNELS["rbf"], *noisy_sine(3, 12), 1e6, 0.5),
}


class TestDegenerateInput:
    """The run ends, every number is finite and belongs to alpha, no step is downhill."""

    @pytest.mark.sweep
    @pytest.mark.timeout(30)
    @pytest.mark.parametrize("search", [full, sampled])
    @pytest.mark.parametrize("tol", [1e-3, 0.0])
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("make", DEGENERATE.values(), ids=DEGENERATE)
    def test_is_survived(self, make, method, tol, search):
        instance = make()
        solution = traced(search(instance), method, tol, 1000)
        assert np.isfinite(solution.alpha).all()
        assert_certified(solution, instance.A, rounding=1e-9)
        assert_rising(solution.trace, rounding=1e-10)
        assert np.isfinite(solution.trace.gap).all()
        assert solution.converged or solution.n_iter == 1000


class TestSmo:
    """The partner of second order."""

    @pytest.mark.parametrize("task", ["two-class", "class weights", "ball", "regression"])
    def test_the_partner_gains_most(self, task):
        instance = TASKS[task](KERNELS["rbf"], 30, 2.0)
        random = np.random.default_rng(0)
        alpha = random.random(len(instance.A)) * (random.random(len(instance.A)) < 0.5)
        alpha /= alpha.sum()
        g = -2.0 * instance.A @ alpha
        best = int(np.argmax(g))
        gains = []
        for m in range(len(g)):
            curvature = instance.A[best, best] + instance.A[m, m] - 2.0 * instance.A[best, m]
            rise = max(g[best] - g[m], 0.0)
            step = min(0.5 * rise / curvature, alpha[m]) if m != best else 0.0
            gains.append(step * (rise - step * curvature))
        solution = solve(full(instance, alpha), "smo", 1e-12, 1)
        moved = np.flatnonzero(np.abs(solution.alpha - alpha) > 1e-12)
        assert set(moved) == {best, int(np.argmax(gains))}
        q = alpha @ instance.A @ alpha
        assert solution.objective == pytest.approx(-(q - max(gains)), rel=1e-9)

    def test_large_C_needs_fewer_steps_than_swap(self):  # noqa: N802
        instance = TASKS["two-class"](KERNELS["rbf"], 200, 100.0)
        smo, swap, mfw = (
            solve(full(instance), method, Tolerance(1e-3, 0.0), 100_000)
            for method in ("smo", "swap", "mfw")
        )
        assert smo.converged
        assert smo.n_iter < 0.5 * min(swap.n_iter, mfw.n_iter)


def test_a_gap_that_is_small_by_rounding_alone_ends_no_run():
    """q is corrected from alpha and g before a run may end."""
    instance = TASKS["two-class"](KERNELS["rbf"], 40, 10.0)
    gap = solve(full(instance), "fw", 0.0, 60, clock=lambda: 0.0).trace.gap
    k = int(np.flatnonzero(gap[31:] < 0.95 * gap[30:-1])[0]) + 30
    search = full(instance, solve(full(instance), "fw", 0.0, k).alpha)
    search._problem.q[0] -= 0.1 * gap[k + 1]
    tolerance = Tolerance(0.0, 0.5 * (gap[k] + gap[k + 1]) - 0.2 * gap[k + 1])
    assert tolerance.absolute < gap[k + 1]
    converged, steps = search.iterate(METHODS.index("fw"), tolerance, 5)
    assert len(steps.gap) == 1
    assert not converged
    alpha = search.certify()[0]
    assert search.q == pytest.approx(alpha @ instance.A @ alpha)

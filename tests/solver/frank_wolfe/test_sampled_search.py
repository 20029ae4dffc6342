"""The search of random vertices: the same optimum, and P4's confirmation before it stops."""

import numpy as np
import pytest

from tests.solver.oracle_qp import minimise
from tests.solver.problems import (
    KERNELS,
    KINDS,
    TASKS,
    assert_certified,
    assert_rising,
    classification,
    full,
    gap_at,
    kernel_rows,
    labelled,
    sampled,
    traced,
    uniform,
    vertex,
)
from wolfstream.solver.frank_wolfe.driver import solve
from wolfstream.solver.frank_wolfe.methods import METHODS
from wolfstream.solver.frank_wolfe.steps import INITIAL

RBF = KERNELS["rbf"]


def until_certified(instance, method, tol, sampling=59):
    """Sampled runs one after the other until the gap over all vertices is small as well."""
    alpha, rounding = vertex(len(instance.A)), 1e-10 * np.abs(instance.A).max()
    for seed in range(50):
        solution = solve(sampled(instance, alpha, sampling, seed), method, tol, 200_000)
        assert solution.converged
        if solution.gap <= tol + rounding:
            return solution
        alpha = solution.alpha
    raise AssertionError(f"no certificate: gap {solution.gap}")


class Script:
    """A random generator whose samples are written down; the last one repeats."""

    def __init__(self, *samples):
        self.samples = [np.array(sample) for sample in samples]
        self.drawn = 0

    def choice(self, n, size, replace=True, **_):
        sample = self.samples[min(self.drawn, len(self.samples) - 1)]
        assert not replace
        assert len(sample) == size
        assert 0 <= sample.min() <= sample.max() < n
        self.drawn += 1
        return sample


class TestOptimum:
    @pytest.mark.sweep
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", ["mfw", "swap"])
    def test_linearly_convergent_methods_reach_it(self, method, task, kernel):
        instance = TASKS[task](kernel, 120, 0.05)
        optimum = minimise(instance.A)
        solution = until_certified(instance, method, 1e-9)
        assert_certified(solution, instance.A)
        assert solution.objective == pytest.approx(-optimum.value, rel=1e-9, abs=1e-8)

    @pytest.mark.sweep
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", ["fw", "partan"])
    def test_sublinear_methods_come_as_close_as_their_gap_says(self, method, task, kernel):
        instance = TASKS[task](kernel, 120, 0.5)
        tol = 1e-3 * np.abs(instance.A).max()
        solution = until_certified(instance, method, tol)
        assert_certified(solution, instance.A)
        assert -1e-9 <= -minimise(instance.A).value - solution.objective <= tol

    @pytest.mark.sweep
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", METHODS)
    def test_every_answer_is_certified_over_all_vertices(self, method, task):
        instance = TASKS[task](RBF, 200, 2.0)
        optimum = -minimise(instance.A).value
        solution = traced(sampled(instance, sampling=10), method, 1e-2, 300)
        assert_certified(solution, instance.A)
        assert_rising(solution.trace)
        assert optimum - solution.objective <= solution.gap + 1e-12
        assert solution.gap >= solution.trace.gap[-1] - 1e-12
        assert solution.trace.step[0] == INITIAL
        assert set(solution.trace.step[1:].tolist()) <= KINDS[method]

    @pytest.mark.sweep
    @pytest.mark.parametrize("sampling", [40, 1000])
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", METHODS)
    def test_a_sample_of_all_vertices_is_the_full_search(self, method, task, sampling):
        instance = TASKS[task](RBF, 40, 1.0)
        tol = 1e-3
        expected = solve(full(instance), method, tol, 100_000)
        solution = solve(sampled(instance, sampling=sampling), method, tol, 100_000)
        assert solution.converged
        assert solution.gap <= tol + 1e-12
        assert solution.objective == pytest.approx(expected.objective, abs=tol)

    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", METHODS)
    def test_its_first_steps_are_those_of_the_full_search(self, method, task):
        instance = TASKS[task](RBF, 40, 1.0)
        expected = solve(full(instance), method, 1e-12, 12)
        solution = solve(sampled(instance, sampling=40), method, 1e-12, 12)
        np.testing.assert_allclose(solution.alpha, expected.alpha, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("sampling", [1, 2])
    def test_the_smallest_samples_do(self, sampling):
        instance = TASKS["two-class"](RBF, 30, 0.1)
        solution = until_certified(instance, "mfw", 1e-4, sampling)
        assert_certified(solution, instance.A)


class TestRandomness:
    @pytest.mark.parametrize("method", METHODS)
    def test_the_same_seed_gives_the_same_run(self, method):
        instance = TASKS["two-class"](RBF, 150, 1.0)
        first, again = (
            traced(sampled(instance, sampling=5, random=3), method, 1e-3, 200) for _ in range(2)
        )
        np.testing.assert_array_equal(first.alpha, again.alpha)
        np.testing.assert_array_equal(first.trace.objective, again.trace.objective)

    def test_another_seed_gives_another(self):
        instance = TASKS["two-class"](RBF, 150, 1.0)
        first, other = (
            solve(sampled(instance, sampling=5, random=seed), "mfw", 1e-3, 50) for seed in (3, 4)
        )
        assert np.any(first.alpha != other.alpha)


class TestConfirmation:
    """P4 section 4.2: where the sample says that the gap is small, sampling is repeated twice.

    At the optimum over all vertices but the last one, that one alone says that there is more.
    """

    TOL = 1e-6

    @pytest.fixture
    def instance(self):
        return classification(RBF, *labelled(13, 30), 10.0, 10.0)

    @pytest.fixture
    def hidden(self, instance):
        """A vertex without which the optimum is far from the whole one."""
        return int(np.argmax(minimise(instance.A).alpha))

    @pytest.fixture
    def alpha(self, instance, hidden):
        others = np.delete(np.arange(30), hidden)
        alpha = np.zeros(30)
        alpha[others] = minimise(instance.A[np.ix_(others, others)]).alpha
        assert gap_at(instance.A, alpha) > 1e-3
        return alpha

    def blind(self, hidden):
        return [p for p in range(30) if p != hidden][:3]

    def seeing(self, hidden):
        return [hidden, *self.blind(hidden)[:2]]

    def test_it_stops_after_two_more_samples_agree(self, instance, hidden, alpha):
        script = Script(self.blind(hidden))
        solution = solve(sampled(instance, alpha, 3, script), "mfw", self.TOL, 100)
        assert (solution.converged, solution.n_iter) == (True, 0)
        assert script.drawn == 3

    def test_the_gap_it_tells_is_over_all_vertices(self, instance, hidden, alpha):
        script = Script(self.blind(hidden))
        solution = traced(sampled(instance, alpha, 3, script), "mfw", self.TOL, 100)
        assert solution.trace.gap[-1] <= self.TOL
        assert solution.gap == pytest.approx(gap_at(instance.A, alpha), rel=1e-9)
        assert solution.gap > 1000 * self.TOL
        assert_certified(solution, instance.A)

    @pytest.mark.parametrize("repeat", [1, 2])
    @pytest.mark.parametrize("method", METHODS)
    def test_a_repeat_that_finds_more_is_followed(self, instance, hidden, alpha, method, repeat):
        script = Script(*[self.blind(hidden)] * repeat, self.seeing(hidden))
        solution = traced(sampled(instance, alpha, 3, script), method, self.TOL, 1)
        assert (solution.converged, solution.n_iter) == (False, 1)
        assert script.drawn == repeat + 1
        assert solution.alpha[hidden] > 0.0
        assert solution.trace.gap[0] == pytest.approx(gap_at(instance.A, alpha), rel=1e-9)
        assert solution.objective > solution.trace.objective[0]

    def test_a_third_repeat_is_not_drawn(self, instance, hidden, alpha):
        blind, seeing = self.blind(hidden), self.seeing(hidden)
        script = Script(blind, blind, blind, seeing)
        assert solve(sampled(instance, alpha, 3, script), "mfw", self.TOL, 100).n_iter == 0

    def test_after_a_step_the_confirmation_begins_anew(self, instance, hidden, alpha):
        blind, seeing = self.blind(hidden), self.seeing(hidden)
        script = Script(blind, blind, seeing, blind)
        solution = solve(sampled(instance, alpha, 3, script), "mfw", self.TOL, 10_000)
        assert solution.converged
        # One search to each later step, three for the last point.
        assert script.drawn == 3 + (solution.n_iter - 1) + 3

    def test_one_look_is_enough_where_there_is_more(self, instance, hidden, alpha):
        script = Script(self.seeing(hidden))
        solve(sampled(instance, alpha, 3, script), "fw", self.TOL, 1)
        assert script.drawn == 1


class TestMembers:
    def test_members_are_searched_whatever_the_sample(self):
        """All samples are the same three vertices; the weights are everywhere."""
        instance = TASKS["two-class"](RBF, 40, 1.0)
        search = sampled(instance, uniform(40), 3, Script([0, 1, 2]))
        solution = solve(search, "mfw", 1e-9, 100_000)
        assert solution.objective == pytest.approx(-minimise(instance.A).value, abs=1e-8)
        assert solution.gap <= 1.1e-9

    @pytest.mark.sweep
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", METHODS)
    def test_more_than_a_thousand(self, method, task):
        """From weights on 1,200 of 1,300 vertices; the others are found as the run goes."""
        instance = TASKS[task](RBF, 1300, 0.01)
        start = np.zeros(1300)
        start[50:1250] = 1.0 / 1200
        solution = traced(sampled(instance, start, 400), method, 0.0, 70)
        assert_certified(solution, instance.A)
        assert_rising(solution.trace)
        assert solution.objective > solution.trace.objective[0]

    def test_float32_rows_are_the_kernels_own(self):
        """The value of a sample with itself is one, and so is the whole diagonal of K."""
        instance = classification(RBF, *labelled(14, 300), 1e4, 1e4, dtype=np.dtype(np.float32))
        solution = solve(sampled(instance, sampling=300), "mfw", 1e-4, 300)
        assert_certified(solution, instance.A, rounding=2e-6)
        search = full(instance, solution.alpha)
        np.testing.assert_allclose(search.certify()[1], solution.gradient, rtol=0, atol=1e-5)
        assert kernel_rows(instance).kept.values.dtype == np.float32

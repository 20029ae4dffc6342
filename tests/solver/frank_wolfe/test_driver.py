"""The driver: when it stops, what it tells on the way, and where it may start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.solver import unjitted
from tests.solver.oracle_qp import minimise
from tests.solver.problems import (
    KERNELS,
    TASKS,
    assert_certified,
    full,
    gap_at,
    kernel_rows,
    sampled,
    traced,
    uniform,
    vertex,
)
from wolfstream.solver.frank_wolfe.driver import solve
from wolfstream.solver.frank_wolfe.methods import METHODS
from wolfstream.solver.frank_wolfe.solve_dual import START_SIZE, initial_ball
from wolfstream.solver.frank_wolfe.steps import INITIAL

SEARCHES = {"full": full, "sampled": sampled}
RBF = KERNELS["rbf"]


@pytest.fixture(params=SEARCHES.values(), ids=SEARCHES)
def search(request):
    return request.param


class TestStopping:
    @pytest.mark.parametrize("max_iter", [1, 5, 256, 257, 600])
    @pytest.mark.parametrize("method", METHODS)
    def test_after_exactly_max_iter_steps(self, method, max_iter, search):
        instance = TASKS["two-class"](RBF, 80, 1.0)
        solution = traced(search(instance), method, 1e-12, max_iter)
        assert not solution.converged
        assert solution.n_iter == max_iter
        assert solution.gap > 1e-12
        for field in solution.trace:
            assert len(field) == max_iter + 1

    @pytest.mark.parametrize("method", METHODS)
    def test_as_soon_as_the_gap_is_at_most_tol(self, method):
        instance = TASKS["two-class"](RBF, 80, 1.0)
        solution = traced(full(instance), method, 5e-3)
        assert solution.converged
        assert solution.gap == pytest.approx(solution.trace.gap[-1], abs=1e-12)
        assert solution.trace.gap[-1] <= 5e-3
        assert np.all(solution.trace.gap[:-1] > 5e-3)
        for field in solution.trace:
            assert len(field) == solution.n_iter + 1

    @pytest.mark.parametrize("method", METHODS)
    def test_a_limit_that_is_not_reached_changes_nothing(self, method):
        instance = TASKS["two-class"](RBF, 80, 1.0)
        n_iter = solve(full(instance), method, 5e-3, 100_000).n_iter
        assert solve(full(instance), method, 5e-3, n_iter + 1).converged
        assert solve(full(instance), method, 5e-3, n_iter).n_iter == n_iter

    def test_a_gap_is_never_negative(self):
        instance = TASKS["two-class"](RBF, 1, 1.0)
        solution = solve(full(instance), "mfw", 1e-9, 10)
        assert (solution.gap, solution.n_iter, solution.converged) == (0.0, 0, True)

    def test_an_unknown_method_is_an_error(self):
        with pytest.raises(ValueError):
            solve(full(TASKS["two-class"](RBF, 10, 1.0)), "newton", 1e-3, 10)


class TestTrace:
    def test_there_is_none_without_a_clock(self, search):
        solution = solve(search(TASKS["ball"](RBF, 40, 1.0)), "mfw", 1e-3, 1000)
        assert solution.trace is None

    @pytest.mark.parametrize("method", METHODS)
    def test_without_a_clock_the_same_steps_are_taken(self, method, search):
        instance = TASKS["ball"](RBF, 80, 1.0)
        timed = traced(search(instance), method, 1e-3, 400)
        untimed = solve(search(instance), method, 1e-3, 400)
        np.testing.assert_array_equal(timed.alpha, untimed.alpha)

    @pytest.mark.parametrize(("tol", "max_iter"), [(1e-12, 600), (1e-3, 100_000)])
    def test_seconds_begin_at_zero_and_never_run_back(self, tol, max_iter, search):
        """The clock ticks a quarter of a second a reading: at the start, and after each chunk."""
        solution = traced(search(TASKS["two-class"](RBF, 80, 1.0)), "mfw", tol, max_iter)
        seconds = solution.trace.seconds
        assert seconds[0] == 0.0
        assert np.all(np.diff(seconds) > 0.0)
        chunks = -(-(solution.n_iter + solution.converged) // 256)
        assert 0.25 * (chunks - 1) < seconds[-1] <= 0.25 * chunks
        if max_iter == 600:
            np.testing.assert_allclose(seconds[[256, 512, 600]], [0.25, 0.5, 0.75])

    def test_begins_with_the_initial_point_and_ends_with_the_solution(self, search):
        instance = TASKS["regression"](RBF, 80, 1.0)
        start = uniform(80)
        solution = traced(search(instance, start), "swap", 1e-3, 500)
        trace = solution.trace
        assert trace.step[0] == INITIAL
        assert np.all(trace.step[1:] != INITIAL)
        assert trace.objective[0] == pytest.approx(-start @ instance.A @ start, abs=1e-10)
        assert trace.objective[-1] == pytest.approx(solution.objective, abs=1e-10)

    def test_from_the_optimum_it_has_one_point(self):
        instance = TASKS["two-class"](RBF, 40, 1.0)
        optimum = minimise(instance.A)
        trace = traced(full(instance, optimum.alpha), "mfw", 1e-9).trace
        assert trace.step.tolist() == [INITIAL]
        assert trace.objective == pytest.approx([-optimum.value])
        assert trace.seconds.tolist() == [0.0]


class TestObserve:
    def test_is_told_after_every_chunk(self, search):
        told = []
        instance = TASKS["two-class"](RBF, 80, 1.0)
        solution = solve(search(instance), "mfw", 1e-12, 600, observe=told.append)
        assert [progress.iteration for progress in told] == [256, 512, 600]
        objectives = [progress.objective for progress in told]
        assert objectives == sorted(objectives)
        assert objectives[-1] <= solution.objective
        assert all(progress.gap > 0.0 for progress in told)

    def test_is_told_of_the_end(self):
        told = []
        instance = TASKS["two-class"](RBF, 80, 1.0)
        solution = solve(full(instance), "mfw", 1e-3, 100_000, observe=told.append)
        assert told[-1].iteration == solution.n_iter
        assert told[-1].objective == pytest.approx(solution.objective)
        assert told[-1].gap <= 1e-3

    def test_what_it_raises_ends_the_run(self, search):
        class Enough(Exception):
            pass

        calls = []

        def observe(progress):
            calls.append(progress)
            raise Enough

        with pytest.raises(Enough):
            solve(search(TASKS["two-class"](RBF, 80, 1.0)), "fw", 1e-12, 10_000, observe=observe)
        assert len(calls) == 1


class TestWarmStart:
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", METHODS)
    def test_the_optimum_needs_no_step(self, method, task, search):
        instance = TASKS[task](RBF, 50, 1.0)
        optimum = minimise(instance.A)
        solution = solve(search(instance, optimum.alpha), method, 1e-9, 100)
        assert (solution.n_iter, solution.converged) == (0, True)
        np.testing.assert_allclose(solution.alpha, optimum.alpha, rtol=0, atol=1e-14)
        assert_certified(solution, instance.A)

    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("method", ["mfw", "swap"])
    def test_every_start_leads_to_the_same_optimum(self, method, task):
        instance = TASKS[task](RBF, 50, 1.0)
        optimum = -minimise(instance.A).value
        random = np.random.default_rng(0)
        starts = [uniform(50), vertex(50, 49), random.dirichlet(np.full(50, 0.2))]
        for start in starts:
            solution = solve(full(instance, start), method, 1e-9, 100_000)
            assert solution.objective == pytest.approx(optimum, abs=1e-8)

    def test_what_was_reached_is_kept(self, search):
        instance = TASKS["class weights"](RBF, 80, 1.0)
        first = solve(search(instance), "mfw", 1e-12, 40)
        second = traced(search(instance, first.alpha), "mfw", 1e-12, 40)
        assert second.trace.objective[0] == pytest.approx(first.objective, abs=1e-12)
        assert second.objective > first.objective

    def test_the_callers_weights_are_not_touched(self, search):
        start = uniform(50)
        solve(search(TASKS["ball"](RBF, 50, 1.0), start), "swap", 1e-6, 50)
        np.testing.assert_array_equal(start, uniform(50))


class TestInitialBall:
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_weighs_few_vertices_nearly_optimally(self, kernel, task):
        instance = TASKS[task](kernel, 60, 0.1)
        alpha = initial_ball(
            instance.dual, kernel_rows(instance), START_SIZE, np.random.default_rng(0)
        )
        chosen = np.sort(np.random.default_rng(0).choice(60, START_SIZE, replace=False))
        few = instance.A[np.ix_(chosen, chosen)]
        assert set(np.flatnonzero(alpha)) <= set(chosen.tolist())
        assert alpha.min() >= 0.0
        assert alpha.sum() == pytest.approx(1.0)
        optimum = minimise(few).value
        excess = alpha @ instance.A @ alpha - optimum
        assert excess >= -1e-12
        assert excess <= 0.01 * max(abs(few[0, 0]), abs(optimum))

    def test_of_fewer_vertices_than_asked_for_takes_all(self):
        instance = TASKS["two-class"](RBF, 6, 0.01)
        alpha = initial_ball(instance.dual, kernel_rows(instance), 20, np.random.default_rng(0))
        assert np.all(alpha > 0.0)

    def test_of_one_is_a_vertex(self):
        instance = TASKS["two-class"](RBF, 6, 1.0)
        alpha = initial_ball(instance.dual, kernel_rows(instance), 1, np.random.default_rng(0))
        assert sorted(alpha.tolist()) == [0.0] * 5 + [1.0]

    def test_the_seed_decides(self):
        instance = TASKS["two-class"](RBF, 60, 1.0)
        first, again, other = (
            initial_ball(instance.dual, kernel_rows(instance), 5, np.random.default_rng(seed))
            for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(first, again)
        assert np.any(first != other)

    def test_helps(self):
        instance = TASKS["two-class"](RBF, 120, 1.0)
        alpha = initial_ball(instance.dual, kernel_rows(instance), 20, np.random.default_rng(0))
        assert gap_at(instance.A, alpha) < 0.2 * gap_at(instance.A, vertex(120))


class TestInterpretedCode:
    def test_gives_the_compiled_codes_numbers(self):
        """Fast mathematics only reorders sums; without the compiler every line is Python's."""
        root = Path(__file__).parents[3]
        run = subprocess.run(
            [sys.executable, "-m", "tests.solver.unjitted"],
            cwd=root,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(root)},
            capture_output=True,
            check=True,
            text=True,
        )
        interpreted = json.loads(run.stdout)
        compiled = unjitted.results()
        assert interpreted.keys() == compiled.keys()
        assert interpreted.pop("jit") is False
        assert compiled.pop("jit") is True
        for name, expected in compiled.items():
            assert interpreted[name]["steps"] == expected["steps"], name
            for field in ("objective", "alpha"):
                np.testing.assert_allclose(
                    interpreted[name][field], expected[field], rtol=0, atol=1e-10, err_msg=name
                )

"""What the benchmarks of P4 know of its program, and its sampled search over all gradients."""

import numpy as np
import pytest

from benchmarks.datasets import Dataset
from benchmarks.p4_problems import Task, accuracy_of, gamma_of_program, task_of
from benchmarks.sampled_table import SAMPLING, SEARCHES, SampleOfAll
from wolfstream.solver.frank_wolfe.driver import Method, Solution, solve
from wolfstream.solver.frank_wolfe.solve_dual import initial_ball
from wolfstream.solver.kernels.bandwidth import gamma_from_rows
from wolfstream.solver.kernels.cached_rows import KernelRows

N, N_PLUS, GAMMA, C = 600, 150, 0.5, 4.0


@pytest.fixture(scope="module")
def task() -> Task:
    random = np.random.default_rng(0)
    y = np.repeat([-1, 1], [N - N_PLUS, N_PLUS])
    X = random.normal(size=(N, 3)) + 0.5 * y[:, None]
    return task_of(Dataset(X, y, X[::3], y[::3]), GAMMA, C)


@pytest.fixture(scope="module")
def matrix(task: Task) -> np.ndarray:
    distance = ((task.X[:, None] - task.X[None]) ** 2).sum(axis=2)
    sign = task.dual.sign
    return np.outer(sign, sign) * (np.exp(-GAMMA * distance) + 1.0) + np.eye(N) / C


def run(task: Task, method: Method, alone: bool, tolerance: float) -> Solution:
    source = KernelRows(task.kernel, task.rows, 1 << 24)
    search = SampleOfAll(task, source, alone, np.random.default_rng(7))
    return solve(search, method, tolerance, 20_000)


def test_gamma_of_program_takes_every_kth_row() -> None:
    X = np.random.default_rng(1).normal(size=(10_001, 2))
    assert gamma_of_program(X) == pytest.approx(2.0 * gamma_from_rows(X[::3]))
    assert gamma_of_program(X[:4000]) == pytest.approx(2.0 * gamma_from_rows(X[:4000]))


def test_fw_takes_the_best_of_each_sample(task: Task, matrix: np.ndarray) -> None:
    limit = 256
    random = np.random.default_rng(7)
    source = KernelRows(task.kernel, task.rows, 1 << 24)
    alpha = initial_ball(task.dual, source, 20, random)
    draws = random.integers(N, size=(limit, SEARCHES, SAMPLING))
    for k in range(40):
        slope = matrix @ alpha
        best = draws[k, 0][np.argmin(slope[draws[k, 0]])]
        q = alpha @ slope
        step = (q - slope[best]) / (q - 2.0 * slope[best] + matrix[best, best])
        alpha = (1.0 - step) * alpha
        alpha[best] += step
    search = SampleOfAll(task, source, True, np.random.default_rng(7))
    ours = solve(search, "fw", 0.0, 40)
    np.testing.assert_allclose(ours.alpha, alpha, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", ["fw", "mfw", "swap", "partan"])
def test_it_ends_near_the_optimum(task: Task, matrix: np.ndarray, method: Method) -> None:
    for alone in (True, False):
        solution = run(task, method, alone, 1e-3)
        assert solution.converged
        q = solution.alpha @ matrix @ solution.alpha
        assert -solution.objective == pytest.approx(q, rel=1e-3)
        assert solution.gap == pytest.approx(2.0 * (q - (matrix @ solution.alpha).min()), abs=1e-5)
        assert solution.gap < 5e-3


def test_members_alone_need_fewer_support_vectors(task: Task) -> None:
    alone, members = (run(task, "fw", alone, 1e-3).alpha > 0.0 for alone in (True, False))
    assert members.sum() < alone.sum()


def test_accuracy_is_that_of_the_weights(task: Task) -> None:
    solution = run(task, "swap", True, 1e-3)
    weights = solution.alpha * task.dual.sign
    distance = ((task.X_test[:, None] - task.X[None]) ** 2).sum(axis=2)
    decision = (np.exp(-GAMMA * distance) + 1.0) @ weights
    expected = 100.0 * ((decision > 0.0) == (task.y_test == 1)).mean()
    accuracy = accuracy_of(task, solution.alpha, solution.objective, solution.gap)
    assert accuracy == pytest.approx(expected, abs=0.6)

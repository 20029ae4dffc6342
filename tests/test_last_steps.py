"""`benchmarks.last_steps` against Algorithm 1 as printed, and the way that P1's program draws."""

import numpy as np
import pytest

from benchmarks.datasets import Dataset
from benchmarks.last_steps import Task, run_of, steps_of, task_of, weights_after
from benchmarks.papers import Problem
from benchmarks.plain_sfw import plain_sfw

PROBLEM = Problem("", gamma=0.5, C=0.5, C_hinge=0.5)
N, N_PLUS = 200, 50


@pytest.fixture(scope="module")
def data() -> Dataset:
    random = np.random.default_rng(0)
    y = np.repeat([1, -1], [N_PLUS, N - N_PLUS])
    X = random.normal(size=(N, 3)) + y[:, None]
    return Dataset(X, y, X[::3], y[::3])


@pytest.fixture(scope="module")
def task(data: Dataset) -> Task:
    return task_of(PROBLEM, data)


def test_in_random_order_it_is_algorithm_1(data: Dataset, task: Task) -> None:
    random = np.random.default_rng(7)
    random.random(N)
    order = random.permutation(N)
    steps = steps_of(task, 1, 7, away_steps=False, drawn=False)
    admitted, alpha, q = plain_sfw(data.X[order], task.sign[order], 0.5, 0.5)
    ours = weights_after(steps, N, N)
    np.testing.assert_allclose(ours[order[admitted]], alpha, rtol=1e-3, atol=1e-7)
    assert steps.q == pytest.approx(q, rel=1e-5)


@pytest.mark.parametrize("away_steps", [False, True])
@pytest.mark.parametrize("drawn", [False, True])
def test_the_steps_lead_to_q(task: Task, away_steps: bool, drawn: bool) -> None:
    steps = steps_of(task, 1, 3, away_steps, drawn)
    alpha = weights_after(steps, N, N)
    A = np.outer(task.sign, task.sign) * (task.values + 1.0) + task.ridge * np.eye(N)
    assert alpha.min() > -1e-12
    assert alpha.sum() == pytest.approx(1.0)
    assert steps.q == pytest.approx(alpha @ A @ alpha, rel=1e-5)


def test_drawn_samples_balance_the_labels_of_the_set(task: Task) -> None:
    support = weights_after(steps_of(task, 1, 0, False, True), N, N) > 0.0
    permuted = weights_after(steps_of(task, 1, 0, False, False), N, N) > 0.0
    assert (support & (task.sign > 0)).sum() > (permuted & (task.sign > 0)).sum()


def test_the_last_alpha_predicts_as_its_weights_say(data: Dataset, task: Task) -> None:
    steps = steps_of(task, 2, 1, True, True)
    alpha = weights_after(steps, 2 * N, N)
    decision = (alpha * task.sign) @ (task.values[:, ::3] + 1.0)
    run = run_of(task, steps)
    assert run.last == pytest.approx(100.0 * ((decision > 0) == (data.y_test > 0)).mean())
    assert run.support == (alpha > 1e-7).sum()
    assert run.best >= run.last

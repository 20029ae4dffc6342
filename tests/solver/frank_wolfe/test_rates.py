"""How fast FW and MFW approach a known optimum: P1 Theorems 4.1 and 4.2."""

import numpy as np
import pytest

from tests.solver.oracle_qp import minimise
from tests.solver.problems import KERNELS, classification, full, labelled, traced, vertex

VERTICES, STEPS = 150, 3000


def errors(method, C, steps=STEPS, seed=1):
    """beta_k = f(alpha*) - f(alpha_k) before each step, from the first vertex on; and A."""
    X, y = labelled(seed, VERTICES)
    instance = classification(KERNELS["rbf"], X, y, C, C)
    trace = traced(full(instance, vertex(VERTICES)), method, 1e-14, steps).trace
    return -minimise(instance.A).value - trace.objective, instance.A


def diameter(A):
    """The largest d'Ad between two vertices: Q of Theorem 4.1 is no more."""
    a = np.diag(A)
    return float((a[:, None] + a[None, :] - 2.0 * A).max())


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_fw_is_within_the_bound_of_theorem_4_1(C):
    """beta_k <= Q / (k - 1/2), equation 4.19 with its smallest zeta."""
    beta, A = errors("fw", C)
    k = np.arange(1, len(beta) + 1)
    assert len(beta) == STEPS + 1
    assert np.all(beta <= diameter(A) / (k - 0.5) + 1e-12)


def test_fw_needs_more_and_more_steps_for_each_digit():
    """It is no faster than its bound says: from k to 10 k it gains about a digit or two."""
    beta, _ = errors("fw", 100.0)
    assert beta[2999] > 1e-3 * beta[299] > 0.0


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_mfw_is_linear_as_theorem_4_2_says(C):
    """From some step M on beta falls by a factor: twice as many steps give twice the digits."""
    beta, A = errors("mfw", C, 100_000)
    above = beta > 1e-11 * np.abs(A).max()
    end = int(np.argmin(above)) if not above.all() else len(beta)
    assert end < len(beta)
    tail = np.log(beta[end // 2 : end])
    slope = np.polyfit(np.arange(len(tail)), tail, 1)[0]
    # No stretch of the tail is slower than a third of its mean rate.
    stretch = max(len(tail) // 10, 1)
    assert np.all(np.diff(tail[::stretch]) <= slope * stretch / 3.0)
    assert tail[0] - tail[-1] > np.log(100.0)


def test_away_steps_are_what_makes_the_difference():
    """Neither method knows the optimum; after as many steps MFW is orders of magnitude closer."""
    fw, _ = errors("fw", 1.0)
    mfw, _ = errors("mfw", 1.0)
    assert mfw[-1] < 1e-3 * fw[len(mfw) - 1]

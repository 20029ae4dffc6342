"""What a view says of large rows is what float64 finds from the samples, or nothing."""

import itertools

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.view import WorkingSetView

KERNELS = {
    "linear": Kernel("linear"),
    "polynomial of degree 2": Kernel("polynomial", 1.0, 2, 0.0),
    "polynomial of degree 3": Kernel("polynomial", 0.25, 3, 1.0),
    "rbf": Kernel("rbf", 0.3),
}
CONSTANTS = (1e3, 1e4, 1e5, 1e6, 1e7)
COSTS = (1.0, 1e3)
N = 300
# Both numbers are within this share of the objective.
TOLERANCE = 0.01


def learned(
    kernel: Kernel, column: Float64Array, classes: int, C: float, max_size: int | None = None
) -> WorkingSet:
    """A set that has learned rows with this column beside four normal ones."""
    random, n = np.random.default_rng(0), len(column)
    X = random.standard_normal((n, 4))
    noise = random.standard_normal((n, classes)) if classes > 1 else np.zeros((n, 1))
    codes = np.argmax(X[:, :classes] + noise, axis=1)
    codes[:classes] = np.arange(classes)
    found = WorkingSet(kernel, C, max_size=max_size)
    found.meet_classes(max(classes, 2))
    found.absorb(np.column_stack([column, X]), codes)
    return found


def assert_true_or_unknown(found: WorkingSet) -> WorkingSetView:
    """A gap that is known is right, and so is the objective beside it."""
    view = found.view()
    for i, problem in enumerate(found.problems):
        n = int(problem.size[0])
        X, sign = found.store.rows.exact[problem.column[:n]], problem.sign[:n]
        A = np.outer(sign, sign) * (kernel_matrix(found.kernel, X, X) + 1.0)
        A += np.eye(n) * 0.5 / found.ridges.C
        alpha = problem.alpha[:n]
        q = alpha @ A @ alpha
        gap = (-2.0 * A @ alpha).max() + 2.0 * q
        if not np.isnan(view.gap[i]):
            assert view.q[i] == pytest.approx(q, rel=TOLERANCE)
            assert view.gap[i] == pytest.approx(gap, abs=TOLERANCE * q)
    return view


@pytest.mark.sweep
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_beside_a_constant_column(kernel: str, classes: int) -> None:
    for constant, C in itertools.product(CONSTANTS, COSTS):
        view = assert_true_or_unknown(learned(KERNELS[kernel], np.full(N, constant), classes, C))
        known = ~np.isnan(view.gap)
        assert known.all() or kernel != "rbf"
        # Kernel values up to 1e8 leave half of float64's digits.
        assert known.all() or (kernel, C) != ("linear", 1.0) or constant > 1e4


@pytest.mark.sweep
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("max_size", [None, 64])
def test_after_large_rows(kernel: str, classes: int, max_size: int | None) -> None:
    """Their updates have rounded what is said of the rows that remain."""
    for constant, C in itertools.product(CONSTANTS, COSTS):
        column = np.where(np.arange(N) < 20, constant, 0.0)
        assert_true_or_unknown(learned(KERNELS[kernel], column, classes, C, max_size))


@pytest.mark.parametrize("kernel", KERNELS)
def test_ordinary_rows_have_a_certificate(kernel: str) -> None:
    for C in (1.0, 1e3, 1e6):
        view = assert_true_or_unknown(learned(KERNELS[kernel], np.ones(N), 4, C))
        assert not np.isnan(view.gap).any()

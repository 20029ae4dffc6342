"""Rows of A, read through the shared kernel matrices."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import hessian, kernel_matrix
from tests.solver.streams import KERNELS, kernel_values, members
from wolfstream.solver.compiled import compiled
from wolfstream.solver.frank_wolfe.problem import empty_problem
from wolfstream.solver.working_set.hessian import Ridge, layout_of, refresh
from wolfstream.solver.working_set.hessian import hessian_row as row_of_hessian

# As machine code; for callers from Python it is a Python function.
hessian_row = compiled(row_of_hessian)

C_MINUS, C_PLUS = 5.0, 2.0
RIDGE = Ridge(0.5 / C_MINUS, 0.5 / C_PLUS)
STORED, BLOCK = 9, 5


def case(columns, old):
    """A problem with these columns, the first `old` of them among the stored samples."""
    random = np.random.default_rng(len(columns))
    X = random.standard_normal((STORED + BLOCK, 3))
    sign = random.choice([-1.0, 1.0], len(columns))
    K = kernel_matrix(KERNELS["rbf"], X, X)
    # Beyond the stored columns the Gram matrix holds nothing yet.
    gram = np.full((STORED + 3, STORED + 3), np.nan)
    gram[:STORED, :STORED] = K[:STORED, :STORED]
    block = np.ascontiguousarray(K[STORED:])
    # A row of the block knows only the samples up to itself.
    block[:, STORED:][np.triu_indices(BLOCK, 1)] = np.nan
    problem = empty_problem(len(columns) + 2)
    problem.column[: len(columns)] = columns
    problem.sign[: len(columns)] = sign
    problem.size[0] = old
    layout = layout_of(problem, old)
    problem.size[0] = len(columns)
    A = hessian(KERNELS["rbf"], X[columns], sign, np.where(sign < 0.0, C_MINUS, C_PLUS))
    return problem, kernel_values(gram, block, STORED), layout, A


CASES = {
    "aligned": ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13], 9),
    "with gaps": ([0, 1, 4, 6, 7, 9, 10, 13], 5),
    "out of order": ([3, 1, 8, 0, 10, 11], 4),
    "of stored samples only": ([0, 2, 3], 3),
    "of the block only": ([9, 12, 13], 0),
    "stored before the problem took it": ([0, 1, 3, 9, 2, 11, 5, 13], 3),
}


@pytest.mark.parametrize(("columns", "old"), CASES.values(), ids=CASES)
def test_every_row_is_that_of_the_matrix(columns, old):
    problem, values, layout, A = case(columns, old)
    for p in range(len(columns)):
        row = np.empty(len(columns))
        hessian_row(problem, values, layout, p, RIDGE, row)
        np.testing.assert_allclose(row, A[p], rtol=0, atol=1e-12)


@pytest.mark.parametrize("columns", [list(range(STORED)), [0, 1, 4, 6, 7], [3, 1, 8, 0]])
@pytest.mark.parametrize("together", [1, 4, STORED])
def test_refreshing_makes_g_and_q_those_of_alpha(columns, together):
    """Also where the rows are at hand in parts."""
    n = len(columns)
    problem, values, _, A = case(columns, n)
    alpha = np.random.default_rng(1).random(n)
    alpha[1] = 0.0
    problem.alpha[:n] = 1.001 * alpha / alpha.sum()
    problem.gradient[:n] = 123.0
    problem.q[0] = 123.0
    problem.steps[0] = 9999
    parts = []
    for start in range(0, n, together):
        slot_of = np.full(STORED, -1)
        of_part = problem.column[start : min(start + together, n)]
        slot_of[of_part] = of_part
        parts.append(values._replace(kept=values.kept._replace(slot_of=slot_of)))
    refresh(problem, parts, RIDGE)
    held = members(problem)
    assert held.alpha.sum() == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(held.gradient, -2.0 * A @ held.alpha, rtol=0, atol=1e-12)
    assert held.q == pytest.approx(held.alpha @ A @ held.alpha, abs=1e-12)
    assert problem.steps[0] == 0

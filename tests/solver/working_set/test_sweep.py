"""The steps as sweeps, against the same steps on rows of A and against searches of their own."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import hessian, kernel_matrix
from tests.solver.streams import KERNELS, kernel_values, members
from wolfstream.solver.compiled import compiled
from wolfstream.solver.frank_wolfe import steps
from wolfstream.solver.frank_wolfe.problem import best_vertex, empty_problem, worst_vertex
from wolfstream.solver.frank_wolfe.steps import AWAY, DROP
from wolfstream.solver.working_set import partner, sweep
from wolfstream.solver.working_set.hessian import Ridge, layout_of

# As machine code; for callers from Python they are Python functions.
toward, away, swap = map(compiled, (sweep.toward, sweep.away, sweep.swap))
best_partner = compiled(partner.best_partner)

C_MINUS, C_PLUS = 5.0, 2.0
RIDGE = Ridge(0.5 / C_MINUS, 0.5 / C_PLUS)
STORED, BLOCK = 2 * sweep.STRETCH + 9, 20

ALIGNED = np.arange(STORED)
CASES = {
    "aligned": (ALIGNED, STORED),
    "aligned, then from the block": (np.r_[ALIGNED, STORED + np.arange(0, BLOCK, 3)], STORED),
    "every other one": (np.r_[ALIGNED[::2], STORED + np.arange(5)], len(ALIGNED[::2])),
    "in disorder": (np.random.default_rng(0).permutation(STORED), STORED),
    "few": (np.array([3, 1, 8, STORED, STORED + 2]), 3),
}


class Case:
    """A problem of weighted samples at a random point, what a sweep reads, and all of A."""

    def __init__(self, columns, old):
        random = np.random.default_rng(len(columns))
        X = random.standard_normal((STORED + BLOCK, 3))
        K = kernel_matrix(KERNELS["rbf"], X, X)
        n = len(columns)
        self.problem = empty_problem(n + 2)
        self.problem.column[:n] = columns
        self.problem.size[0] = old
        layout = layout_of(self.problem, old)
        self.problem.size[0] = n
        sign = random.choice([-1.0, 1.0], n)
        weight = random.choice([0.2, 1.0, 4.0], n)
        C = np.where(sign < 0.0, C_MINUS, C_PLUS) * weight
        self.A = hessian(KERNELS["rbf"], X[columns], sign, C)
        alpha = random.random(n) * (random.random(n) < 0.7)
        alpha /= alpha.sum()
        self.problem.sign[:n], self.problem.alpha[:n] = sign, alpha
        self.problem.diagonal[:n], self.problem.inverse_weight[:n] = 2.0, 1.0 / weight
        self.problem.gradient[:n] = -2.0 * self.A @ alpha
        self.problem.q[0] = alpha @ self.A @ alpha
        values = kernel_values(K[:STORED, :STORED], K[STORED:].copy(), STORED)
        buffer = np.empty((2, sweep.STRETCH))
        self.members = sweep.Members(self.problem, values, layout, RIDGE, buffer)

    def ends(self):
        return best_vertex(self.problem), worst_vertex(self.problem)

    def assert_like(self, other):
        """The same point, and q and g as they are by definition."""
        ours, theirs = members(self.problem), members(other.problem)
        np.testing.assert_allclose(ours.alpha, theirs.alpha, rtol=0, atol=1e-14)
        np.testing.assert_array_equal(ours.alpha == 0.0, theirs.alpha == 0.0)
        np.testing.assert_allclose(ours.gradient, -2.0 * self.A @ ours.alpha, rtol=0, atol=1e-13)
        assert ours.q == pytest.approx(ours.alpha @ self.A @ ours.alpha, abs=1e-14)
        assert self.problem.steps[0] == other.problem.steps[0] == 1


@pytest.mark.parametrize(("columns", "old"), CASES.values(), ids=CASES)
class TestEverySweep:
    def test_toward(self, columns, old):
        case, other = Case(columns, old), Case(columns, old)
        best, _ = case.ends()
        assert toward(case.members, best) == case.ends()
        steps.toward(other.problem, best, other.A[best].copy())
        case.assert_like(other)

    def test_away_from_the_worst_and_from_the_lightest(self, columns, old):
        for choose in (lambda c: c.ends()[1], lightest):
            case, other = Case(columns, old), Case(columns, old)
            p = choose(case)
            kind, ends = away(case.members, p)
            assert ends == case.ends()
            dropped = steps.away(other.problem, p, other.A[p].copy())
            assert kind == (DROP if dropped else AWAY)
            case.assert_like(other)

    def test_swap(self, columns, old):
        case, other = Case(columns, old), Case(columns, old)
        best, worst = case.ends()
        assert swap(case.members, best, worst) == case.ends()
        steps.swap(other.problem, best, worst, other.A[best].copy(), other.A[worst].copy())
        case.assert_like(other)

    def test_no_partner_is_better_than_the_best_one(self, columns, old):
        case = Case(columns, old)
        best, _ = case.ends()
        chosen = best_partner(case.members, sweep.ExtremeMembers(*case.ends()))
        gain = [
            steps.swap_gain(case.problem, best, m, case.A[best].copy(), case.A[m].copy())
            for m in range(len(columns))
        ]
        assert gain[chosen] == pytest.approx(max(gain), rel=1e-7)

    def test_gains_are_those_of_swaps(self, columns, old):
        case = Case(columns, old)
        best, _ = case.ends()
        problem, sign, A = case.problem, case.problem.sign, case.A
        swaps = partner.swaps_to(problem, RIDGE, problem.gradient[best], sign[best], A[best, best])
        for m in range(len(columns)):
            if m != best:
                kernel_value = A[best, m] * sign[best] * sign[m] - 1.0
                gain = steps.swap_gain(problem, best, m, A[best].copy(), A[m].copy())
                found = partner.gain_of(problem, swaps, m, kernel_value)
                assert found == pytest.approx(gain, rel=1e-9, abs=1e-15)


def lightest(case):
    """The member of the smallest weight above zero."""
    alpha = members(case.problem).alpha
    return int(np.argmin(np.where(alpha > 0.0, alpha, np.inf)))


def test_of_equal_members_the_first_is_found():
    case = Case(*CASES["aligned"])
    n = len(members(case.problem).alpha)
    case.problem.gradient[:n] = -1.0
    case.problem.gradient[[40, 41, n - 1]] = 1.0
    case.problem.gradient[[50, 51, n - 2]] = -2.0
    case.problem.alpha[[50, 51, n - 2]] = 0.1
    # A step of length zero: the sweep only looks.
    case.problem.q[0] = -0.5 * case.problem.gradient[40]
    assert toward(case.members, 40) == (40, 50)

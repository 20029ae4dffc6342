"""When rounding hides what a set says of its optimum: from a hundredth of q on."""

import numpy as np
import pytest

from wolfstream.solver.frank_wolfe.problem import Problem, empty_problem
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.rounding import hidden_by_rounding, is_hidden

LINEAR = Kernel("linear", 1.0, 0.0, 1)


@pytest.mark.parametrize("q", [2.0, -2.0])
@pytest.mark.parametrize(("rounding", "drift"), [(0.019, 0.0), (0.0, 0.019), (0.0, -0.019)])
def test_less_than_a_hundredth_hides_nothing(q: float, rounding: float, drift: float):
    assert not is_hidden(q, rounding, drift)


@pytest.mark.parametrize("q", [2.0, -2.0])
@pytest.mark.parametrize(("rounding", "drift"), [(0.021, 0.0), (0.0, 0.021), (0.0, -0.021)])
def test_more_than_a_hundredth_of_either_does(q: float, rounding: float, drift: float):
    assert is_hidden(q, rounding, drift)


def solved(drift: float) -> Problem:
    """Two members with A = diag(2, 2): g = -2 A alpha = (-2, -2) and q = 1, but for the drift."""
    problem = empty_problem(2)
    problem.size[0], problem.q[0] = 2, 1.0
    problem.alpha[:2], problem.diagonal[:2] = 0.5, 2.0
    problem.gradient[:2] = -2.0 + drift
    return problem


@pytest.mark.parametrize("drift", [0.0, 0.009, -0.009])
def test_gradients_that_belong_to_q_show_no_drift(drift: float):
    """alpha'g = -2q."""
    assert not hidden_by_rounding(LINEAR, np.dtype(np.float64), solved(drift))


@pytest.mark.parametrize("drift", [0.011, -0.011])
def test_gradients_that_drifted_from_q_do(drift: float):
    assert hidden_by_rounding(LINEAR, np.dtype(np.float64), solved(drift))

"""What the solution of each dual says about its primal problem."""

import numpy as np
import pytest

from tests.solver.oracle_qp import minimise
from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.problems import (
    KERNELS,
    Instance,
    assert_certified,
    ball,
    classification,
    full,
    labelled,
    noisy_sine,
    prepared,
    regression,
    uniform,
)
from wolfstream.solver.frank_wolfe.driver import solve
from wolfstream.solver.frank_wolfe.duals import (
    ball_dual,
    ball_square_radius,
    classification_dual,
    regression_dual,
    regression_epsilon,
)
from wolfstream.solver.frank_wolfe.methods import METHODS
from wolfstream.solver.kernels.functions import Kernel

LINEAR = Kernel("linear")


def tight(instance, method="swap", tol=1e-11):
    """The optimum to almost all digits, with its certificate checked."""
    solution = solve(full(instance), method, tol * np.abs(instance.A).max(), 200_000)
    assert solution.converged
    assert_certified(solution, instance.A)
    return solution


class TestBuilders:
    def test_two_classes_in_two_runs_of_columns(self):
        dual = classification_dual((3, 5), (7, 10), np.array([0.25, 0.25, 2.0, 2.0, 2.0]))
        assert dual.sign.tolist() == [-1.0, -1.0, 1.0, 1.0, 1.0]
        assert dual.column.tolist() == [3, 4, 7, 8, 9]

    def test_regression_has_each_sample_from_above_and_from_below(self):
        dual = regression_dual(np.array([1.0, -2.0]), C=4.0, mu=0.5)
        assert dual.sign.tolist() == [1.0, 1.0, -1.0, -1.0]
        assert dual.column.tolist() == [0, 1, 0, 1]
        assert dual.ridge.tolist() == [0.25] * 4
        assert dual.linear.tolist() == [0.5, -1.0, -0.5, 1.0]

    def test_a_ball_without_slack_has_no_ridge(self):
        dual = ball_dual(np.array([1.0, 2.0, 3.0]), np.inf)
        assert dual.ridge.tolist() == [0.0, 0.0, 0.0]
        assert dual.column.tolist() == [0, 1, 2]
        assert ball_dual(np.ones(2), 0.5).ridge.tolist() == [0.5, 0.5]


class TestClassification:
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_pair_of_classes_is_solved_alone(self, kernel):
        """One-versus-one: the pair's samples lie in two runs of columns that all pairs share."""
        X, y = labelled(5, 30)
        alone = classification(kernel, X, y, 1.0, 2.0)
        n = int((y < 0).sum())
        others = np.random.default_rng(0).standard_normal((3, 4, X.shape[1]))
        shared = np.concatenate([others[0], alone.X[:n], others[1], alone.X[n:], others[2]])
        dual = classification_dual((4, 4 + n), (8 + n, 8 + len(y)), alone.dual.ridge)
        among = Instance(dual, kernel, shared, prepared(kernel, shared), alone.A)
        solution = tight(among)
        assert solution.objective == pytest.approx(-minimise(alone.A).value, abs=1e-9)

    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_double_weight_equals_samples_twice(self, kernel):
        X, y = labelled(6, 40)
        twice = np.concatenate([np.arange(len(y)), np.flatnonzero(y > 0)])
        weighted = tight(classification(kernel, X, y, C_minus=0.1, C_plus=0.2))
        repeated = tight(classification(kernel, X[twice], y[twice], C_minus=0.1, C_plus=0.1))
        assert weighted.objective == pytest.approx(repeated.objective, rel=1e-8)

    def test_one_samples_margin_is_one_everywhere_it_has_weight(self):
        """P1 eq. 3.2 on the scale rho = q: y h(x) = q - alpha / (2C) with weight, >= q without."""
        instance = classification(KERNELS["rbf"], *labelled(7, 40), 1.0, 4.0)
        solution = tight(instance)
        y = instance.dual.sign
        K = kernel_matrix(instance.kernel, instance.X, instance.X)
        h = (K + 1.0) @ (solution.alpha * y)
        slack = np.where(y < 0, 0.5, 0.125) * solution.alpha
        q, weighted = -solution.objective, solution.alpha > 0.0
        np.testing.assert_allclose((y * h + slack)[weighted], q, rtol=0, atol=1e-9)
        assert np.all((y * h)[~weighted] >= q - 1e-9)


def square_distances(instance, alpha):
    """||phi(x_i) - c||^2 with c = sum alpha_i phi(x_i)."""
    K = kernel_matrix(instance.kernel, instance.X, instance.X)
    return np.diag(K) - 2.0 * K @ alpha + alpha @ K @ alpha


class TestBallGeometry:
    """Euclidean balls that can be told without computing: linear kernel, nobody left out."""

    ANGLES = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
    CIRCLE = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
    CASES = {
        "circle": (3.0 * CIRCLE + [10.0, -4.0], [10.0, -4.0], 3.0),
        "circle and its inside": (
            np.concatenate([2.0 * CIRCLE, 0.7 * CIRCLE, [[0.0, 0.0]]]),
            [0.0, 0.0],
            2.0,
        ),
        "obtuse triangle": ([[0.0, 0.0], [8.0, 0.0], [3.0, 1.0]], [4.0, 0.0], 4.0),
        "right triangle": ([[0.0, 0.0], [8.0, 0.0], [0.0, 6.0]], [4.0, 3.0], 5.0),
        "line": ([[3.0], [-5.0], [1.0], [0.5], [2.0]], [-1.0], 4.0),
        "two points": ([[1.0, 1.0], [1.0, 5.0]], [1.0, 3.0], 2.0),
        "one point": ([[7.0, 2.0]], [7.0, 2.0], 0.0),
        "equal points": ([[7.0, 2.0]] * 5, [7.0, 2.0], 0.0),
    }

    @pytest.mark.parametrize("method", ["mfw", "swap"])
    @pytest.mark.parametrize(("X", "centre", "radius"), CASES.values(), ids=CASES)
    def test_centre_and_radius(self, X, centre, radius, method):
        instance = ball(LINEAR, np.array(X, np.float64), np.inf)
        solution = solve(full(instance), method, 1e-11, 100_000)
        found = ball_square_radius(instance.dual, solution.alpha, solution.objective)
        assert found == pytest.approx(radius**2, abs=1e-9)
        np.testing.assert_allclose(solution.alpha @ instance.X, centre, rtol=0, atol=1e-4)

    def test_only_points_on_the_sphere_have_weight(self):
        X, _, _ = self.CASES["obtuse triangle"]
        solution = tight(ball(LINEAR, np.array(X), np.inf))
        np.testing.assert_allclose(solution.alpha, [0.5, 0.5, 0.0], rtol=0, atol=1e-9)


class TestBall:
    @pytest.mark.parametrize("C", [0.02, 1.0, np.inf])
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_ball_holds_all_support_on_sphere(self, kernel, C):
        """||phi(x_i) - c||^2 <= R^2 + xi_i, equal where alpha_i > 0, with xi_i = alpha_i / (2C).

        The polynomial and the linear kernel have diagonals that are not constant.
        """
        instance = ball(kernel, labelled(8, 40)[0], C)
        alpha, objective = tight(instance).alpha, -minimise(instance.A).value
        square = ball_square_radius(instance.dual, alpha, objective)
        slack = alpha / (2.0 * C)
        distances, scale = square_distances(instance, alpha), np.abs(instance.A).max()
        assert square > 0.0
        assert np.all(distances <= square + slack + 1e-7 * scale)
        on = alpha > 1e-3
        np.testing.assert_allclose(distances[on], (square + slack)[on], rtol=0, atol=1e-7 * scale)
        primal = square + (C * (slack**2).sum() if np.isfinite(C) else 0.0)
        assert primal == pytest.approx(objective, rel=1e-8)

    def test_less_costly_slack_makes_a_smaller_ball(self):
        X = labelled(8, 40)[0]
        squares = []
        for C in (0.02, 0.1, 1.0, np.inf):
            instance = ball(KERNELS["linear"], X, C)
            solution = tight(instance)
            squares.append(ball_square_radius(instance.dual, solution.alpha, solution.objective))
        assert squares == sorted(squares)
        assert squares[0] < 0.9 * squares[-1]

    def test_a_radius_is_never_imaginary(self):
        # Slack so cheap that the best R^2 of the problem as stated would be negative.
        instance = ball(LINEAR, np.full((4, 2), 3.0), 1e-3)
        solution = tight(instance)
        assert ball_square_radius(instance.dual, solution.alpha, solution.objective) == 0.0

    def test_shifting_all_rows_changes_nothing(self):
        X = labelled(8, 40)[0]
        here, there = (tight(ball(LINEAR, X + shift, 1.0)) for shift in (0.0, 5.0))
        assert there.objective == pytest.approx(here.objective, rel=1e-8)


class Fit:
    """A regression's solution in terms of its primal problem."""

    def __init__(self, kernel, X, y, C, mu):
        self.instance = regression(kernel, X, y, C, mu)
        solution = tight(self.instance)
        n = len(y)
        self.alpha, self.objective = solution.alpha, solution.objective
        self.epsilon = regression_epsilon(self.instance.dual, solution.alpha, solution.gradient, C)
        beta = C * (solution.alpha[:n] - solution.alpha[n:])
        K = kernel_matrix(kernel, X, X)
        self.h = (K + 1.0) @ beta
        self.square_norm = beta @ (K + 1.0) @ beta
        # How far each sample is outside the tube, from above and from below: y - h and h - y.
        self.beyond = np.concatenate([y - self.h, self.h - y]) - self.epsilon


X, Y = noisy_sine(9, 30)


@pytest.fixture(scope="module", params=KERNELS.values(), ids=KERNELS)
def kernel(request):
    return request.param


@pytest.fixture(
    scope="module", params=[(1.0, 0.05), (1.0, 0.3), (20.0, 0.02), (20.0, 0.1)], ids=str
)
def parameters(request):
    return request.param


@pytest.fixture(scope="module")
def fit(kernel, parameters):
    C, mu = parameters
    return Fit(kernel, X, Y, C, mu)


class TestRegression:
    """minimise ||w||^2 + b^2 + C/(mu n) sum (xi^2 + xi*^2) + 2 C epsilon."""

    def test_there_is_a_tube(self, fit):
        assert fit.epsilon > 1e-3

    def test_points_with_weight_lie_outside_by_their_slack(self, fit, parameters):
        """xi_v = mu n alpha_v: stationarity in xi says C/(mu n) xi_v = C alpha_v."""
        _, mu = parameters
        slack = mu * len(Y) * fit.alpha
        weighted = fit.alpha > 0.0
        assert 0 < weighted.sum() < len(weighted)
        np.testing.assert_allclose(fit.beyond[weighted], slack[weighted], rtol=0, atol=1e-7)

    def test_points_without_weight_lie_inside(self, fit):
        assert np.all(fit.beyond[fit.alpha == 0.0] <= 1e-7)

    def test_nobody_is_above_and_below_the_tube(self, fit):
        n = len(Y)
        assert not np.any((fit.alpha[:n] > 0.0) & (fit.alpha[n:] > 0.0))

    def test_the_primal_objective_is_the_dual_times_the_square_of_c(self, fit, parameters):
        C, mu = parameters
        slack = np.maximum(fit.beyond, 0.0)
        primal = fit.square_norm + C / (mu * len(Y)) * (slack**2).sum() + 2 * C * fit.epsilon
        assert primal == pytest.approx(C**2 * fit.objective, rel=1e-6)

    def test_a_wider_tube_is_cheaper_where_mu_is_smaller(self, kernel):
        widths = [Fit(kernel, X, Y, 10.0, mu).epsilon for mu in (0.02, 0.1, 0.5)]
        assert widths == sorted(widths, reverse=True)
        assert widths[0] > widths[-1]

    def test_a_constant_needs_no_tube(self):
        fit = Fit(KERNELS["rbf"], X, np.zeros(30), 1.0, 0.3)
        assert fit.epsilon == 0.0
        np.testing.assert_allclose(fit.h, 0.0, atol=1e-9)

    @pytest.mark.parametrize("method", METHODS)
    def test_epsilon_from_every_method(self, method):
        instance = regression(KERNELS["rbf"], X, Y, 1.0, 0.3)
        reference = Fit(KERNELS["rbf"], X, Y, 1.0, 0.3).epsilon
        solution = solve(full(instance, uniform(60)), method, 1e-3, 100_000)
        found = regression_epsilon(instance.dual, solution.alpha, solution.gradient, 1.0)
        assert solution.converged
        assert found == pytest.approx(reference, abs=0.02)

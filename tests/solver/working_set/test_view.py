"""Published pictures of the working set: what they predict, and that they never change."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix, minimum_over_simplex
from tests.solver.streams import FLOAT64, KERNELS, clusters, direct_hessian, members
from wolfstream.solver.frank_wolfe.pairs import one_versus_one_scores
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import pair_decisions, predict

RBF = KERNELS["rbf"]


def learned(kernel=RBF, n_classes=2, n=250, **parameters):
    X, codes = clusters(seed=71, n=n, n_classes=n_classes)
    learner = WorkingSet(kernel, 5.0, dtype=FLOAT64, **parameters)
    learner.absorb(X, codes)
    return learner


def direct_decisions(learner, X):
    """sum_i alpha_i y_i k(x_i, x) + b with b = y'alpha, of every problem."""
    columns = []
    for problem in learner.problems:
        held = members(problem)
        K = kernel_matrix(learner.kernel, X, learner.store.rows.exact[held.column])
        columns.append(K @ (held.alpha * held.sign) + held.alpha @ held.sign)
    return np.column_stack(columns)


class TestPredictions:
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_of_two_classes_are_the_sign_of_the_decision_value(self, kernel):
        learner = learned(kernel)
        X, _ = clusters(seed=72, n=100)
        said, decision = predict(learner.view(), X)
        expected = direct_decisions(learner, X)[:, 0]
        np.testing.assert_allclose(decision, expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(said, expected > 0.0)

    @pytest.mark.parametrize("max_size", [None, 60])
    def test_of_more_classes_are_votes_of_margins(self, max_size):
        learner = learned(n_classes=4, max_size=max_size)
        X, _ = clusters(seed=73, n=100)
        said, scores = predict(learner.view(), X)
        q = np.array([problem.q[0] for problem in learner.problems])
        expected = one_versus_one_scores(direct_decisions(learner, X) / q, 4)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(said, expected.argmax(axis=1))

    def test_do_not_depend_on_how_many_are_asked_for(self):
        view = learned(n_classes=3).view()
        X, _ = clusters(seed=74, n=700)
        said, scores = predict(view, X)
        assert scores.shape == (700, 3)
        for i in range(0, 700, 77):
            one_said, one_scores = predict(view, X[i : i + 1])
            assert one_said[0] == said[i]
            np.testing.assert_allclose(one_scores[0], scores[i], rtol=0, atol=1e-9)

    def test_of_no_rows_are_none(self):
        said, decision = predict(learned().view(), np.empty((0, 4)))
        assert said.shape == decision.shape == (0,)

    def test_need_two_classes(self):
        learner = WorkingSet(RBF)
        learner.absorb(np.eye(3), np.zeros(3, np.int64))
        with pytest.raises(ValueError, match="two classes"):
            predict(learner.view(), np.eye(3))

    def test_with_float32_kernel_values_are_nearly_the_same(self):
        X, codes = clusters(seed=75, n=250)
        learner = WorkingSet(RBF, 5.0)
        learner.absorb(X, codes)
        assert learner.view().rows.fast.dtype == np.float32
        _, decision = predict(learner.view(), X)
        np.testing.assert_allclose(decision, direct_decisions(learner, X)[:, 0], rtol=0, atol=1e-5)


class TestFigures:
    def test_are_those_of_the_problems(self):
        learner = learned(n_classes=3)
        view = learner.view()
        held = [members(problem) for problem in learner.problems]
        assert view.n_classes == 3
        np.testing.assert_allclose(view.bias, [h.alpha @ h.sign for h in held], atol=1e-15)
        np.testing.assert_array_equal(view.q, [h.q for h in held])
        np.testing.assert_array_equal(view.ends, np.cumsum([len(h.alpha) for h in held]))
        np.testing.assert_allclose(
            view.gap, [h.gradient.max() + 2.0 * h.q for h in held], rtol=0, atol=1e-15
        )

    def test_support_is_the_samples_with_weight_in_some_problem(self):
        learner = learned(n_classes=3, corrective_steps=20)
        expected = set()
        for held in map(members, learner.problems):
            expected |= set(held.column[held.alpha > 0.0].tolist())
        assert learner.view().support.tolist() == sorted(expected)
        assert len(expected) < learner.store.size

    @pytest.mark.sweep
    @pytest.mark.parametrize("corrective_steps", [0, 1, 20])
    @pytest.mark.parametrize("algorithm", ["sfw", "msfw"])
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_the_gap_bounds_what_the_set_could_still_gain(
        self, kernel, algorithm, corrective_steps
    ):
        learner = learned(kernel, n=60, algorithm=algorithm, corrective_steps=corrective_steps)
        A = direct_hessian(learner, learner.problems[0])
        lowest, uncertainty = minimum_over_simplex(A)
        assert uncertainty < 1e-6 * lowest
        view = learner.view()
        assert -1e-9 * lowest <= view.q[0] - lowest <= view.gap[0] + 1e-9 * lowest

    def test_the_gap_closes_with_corrective_steps(self):
        views = [learned(n=100, corrective_steps=steps).view() for steps in (0, 2, 20)]
        assert views[0].gap[0] > 2 * max(views[1].gap[0], views[2].gap[0])
        assert views[2].gap[0] <= 0.5 * views[2].q[0]


def test_a_published_view_does_not_change():
    X, codes = clusters(seed=76, n=600, n_classes=3)
    learner = WorkingSet(RBF, 5.0)
    learner.absorb(X[:150], codes[:150])
    view = learner.view()
    said, scores = predict(view, X)
    pairs = pair_decisions(view, X)
    support = view.support
    for i in range(150, 600, 30):
        learner.absorb(X[i : i + 30], codes[i : i + 30])
    np.testing.assert_array_equal(predict(view, X)[0], said)
    np.testing.assert_array_equal(predict(view, X)[1], scores)
    np.testing.assert_array_equal(pair_decisions(view, X), pairs)
    np.testing.assert_array_equal(view.support, support)

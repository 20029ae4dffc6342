"""Kernels that are not positive semidefinite: no certificate, and no constant prediction."""

import numpy as np
import pytest

from tests.solver.streams import KERNELS, clusters
from wolfstream.solver.frank_wolfe.one_versus_one import solve_pairs
from wolfstream.solver.frank_wolfe.solve_dual import Settings
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.predictions import predict

INDEFINITE = Kernel("polynomial", 1.0, 2, -1.0)


def absorbed(kernel, C=1.0, n_classes=2):
    X, codes = clusters(3, 400, n_classes=n_classes, apart=2.5, noise=0.02)
    learner = WorkingSet(kernel, C)
    return learner, learner.absorb(X, codes), codes


class TestOnline:
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_the_gap_is_unknown(self, n_classes):
        learner, _, _ = absorbed(INDEFINITE, n_classes=n_classes)
        assert learner.pairs.indefinite
        assert np.isnan(learner.view().gap).any()

    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    @pytest.mark.parametrize("C", [1.0, 1e6])
    def test_positive_semidefinite_kernels_are_never_accused(self, kernel, C):
        learner, _, _ = absorbed(kernel, C, n_classes=3)
        assert not learner.pairs.indefinite
        assert np.isfinite(learner.view().gap).all()

    def test_predictions_do_not_become_constant(self):
        learner, answers, codes = absorbed(INDEFINITE)
        assert learner.view().q[0] < 0.0
        assert np.mean(answers.prediction[200:] == codes[200:]) > 0.6

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_predictions_of_the_view_agree_with_those_before_learning(self, n_classes):
        learner, _, _ = absorbed(INDEFINITE, n_classes=n_classes)
        X, codes = clusters(4, 50, n_classes=n_classes)
        code, decision = predict(learner.view(), X)
        copy = WorkingSet(INDEFINITE)
        copy.restore(learner.state())
        answers = copy.absorb(X[:1], codes[:1])
        assert answers.prediction[0] == code[0]
        np.testing.assert_allclose(answers.decision[0], decision[0])
        if n_classes == 2:
            np.testing.assert_array_equal(code, decision > 0.0)

    def test_the_finding_is_part_of_the_state(self):
        learner, _, _ = absorbed(INDEFINITE)
        restored = WorkingSet(INDEFINITE)
        restored.restore(learner.state())
        assert restored.pairs.indefinite


def test_a_pair_without_weight_has_no_gap():
    X, codes = clusters(3, 60)
    learner = WorkingSet(Kernel("rbf", 0.3))
    learner.meet_classes(3)
    learner.absorb(X, codes)
    gap = learner.view().gap
    assert np.isfinite(gap[0])
    learner.problems[0].q[0] = 0.0
    assert np.isnan(learner.view().gap[0])


@pytest.mark.parametrize("sampling", [None, 20])
def test_a_batch_solution_has_no_gap_either(sampling):
    X, codes = clusters(3, 100)
    kernel, settings = Kernel("polynomial", 1.0, 3, -3.0), Settings("mfw", 1e-4, 2000, sampling)
    (pair,) = solve_pairs(
        kernel, X, codes, np.full(len(X), 0.5), settings, np.random.default_rng(0)
    )
    assert np.isnan(pair.solution.gap)

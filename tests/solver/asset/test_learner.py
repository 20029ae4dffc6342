"""ASSET against an oracle that stores every iterate and averages them when asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.svm import SVC

from tests.solver import oracle_asset
from tests.solver.streams import blocks, clusters, in_order_of_appearance, small_streams, sparse
from wolfstream.solver.asset.iterates import averaged
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict
from wolfstream.solver.kernels.functions import Kernel

GAMMA = 0.2
DIMENSION = 24
AVERAGES = (None, 1, 40, 200)


def made(**parameters):
    return Asset(Kernel("rbf", GAMMA), dimension=DIMENSION, **parameters)


def features(learner, X):
    """phi(x) = sqrt(2/D) cos(nu'x + omega) with the learner's own nu and omega (P5 eq. 8)."""
    frequency, phase, origin = learner.features[:3]
    return np.sqrt(2.0 / len(phase)) * np.cos((X - origin) @ frequency + phase)


def iterate(learner):
    """gamma_j of each class."""
    return learner.run.iterates.scale[:, None] * learner.run.iterates.direction


def learned(X, codes, length=256, **parameters):
    learner = made(**parameters)
    answers = [learner.absorb(X[part], codes[part]) for part in blocks(len(codes), length)]
    return learner, answers


def oracle_of(learner, X, codes, n_classes):
    oracle = oracle_asset.Asset(DIMENSION, n_classes, learner.run.rule.lam)
    for V, code in zip(features(learner, X), codes, strict=True):
        oracle.learn(V, code)
    return oracle


def assert_equal_iterates(learner, other, tolerance):
    for a, b in zip(learner.run.iterates, other.run.iterates, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


class TestSteps:
    @pytest.mark.parametrize("lam", [1e-4, 1.0, 1e4])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_every_iterate_is_that_of_the_paper(self, n_classes, lam):
        X, codes = clusters(seed=101, n=300, n_classes=n_classes)
        learner = made(lam=lam)
        oracle = oracle_asset.Asset(DIMENSION, n_classes, lam)
        for i in range(300):
            learner.absorb(X[i : i + 1], codes[i : i + 1])
            oracle.learn(features(learner, X[i : i + 1])[0], codes[i])
            known = learner.n_classes
            tolerance = {"rtol": 1e-9, "atol": 1e-9 * oracle.radius}
            np.testing.assert_allclose(
                iterate(learner)[:known], oracle.gamma[-1][:known], **tolerance
            )
            np.testing.assert_allclose(
                learner.run.iterates.b[:known], oracle.b[-1][:known], **tolerance
            )
        assert learner.steps == oracle.steps == 300

    def test_the_compared_runs_project_at_first_only_and_nearly_always(self):
        """The first steps are as long as the feasible set is wide (D_X / D_G), whatever lambda."""
        X, codes = clusters(seed=101, n=300)
        projections = {}
        for lam in (1e-4, 1e4):
            learner, _ = learned(X, codes, lam=lam)
            projections[lam] = oracle_of(learner, X, codes, 2).projections
        assert 0 < projections[1e-4] < 30
        assert projections[1e4] > 200

    @given(stream=small_streams(), lam=st.floats(1e-6, 1e3))
    def test_iterates_stay_in_the_feasible_set(self, stream, lam):
        learner, _ = learned(*stream, lam=lam)
        radius = 1.0 / np.sqrt(lam)
        for gamma, b in (
            (iterate(learner), learner.run.iterates.b),
            averaged(learner.run.iterates),
        ):
            assert np.linalg.norm(gamma, axis=1).max() <= radius * (1.0 + 1e-9)
            assert np.abs(b).max() <= max(radius, 1.0) * (1.0 + 1e-9)

    def test_step_lengths_follow_the_first_128_samples(self):
        X, codes = clusters(seed=102, n=200)
        learner, _ = learned(X, codes)
        V = features(learner, X[:128])
        assert learner.run.progress.square_norms[0] == pytest.approx(np.sum(V**2))


class TestAverages:
    @pytest.mark.sweep
    @pytest.mark.parametrize("average_from", AVERAGES)
    @pytest.mark.parametrize("lam", [1e-4, 1.0])
    def test_are_those_of_the_stored_iterates(self, average_from, lam):
        X, codes = clusters(seed=103, n=300, n_classes=3)
        learner = made(lam=lam, average_from=average_from)
        oracle = oracle_asset.Asset(DIMENSION, 3, lam)
        for i in range(300):
            learner.absorb(X[i : i + 1], codes[i : i + 1])
            oracle.learn(features(learner, X[i : i + 1])[0], codes[i])
            gamma, b = oracle.averaged(average_from)
            view = learner.view()
            tolerance = {"rtol": 1e-9, "atol": 1e-9 * oracle.radius}
            np.testing.assert_allclose(view.gamma, gamma[: view.n_classes], **tolerance)
            np.testing.assert_allclose(view.b, b[: view.n_classes], **tolerance)

    def test_of_windows_cover_the_last_half_to_three_quarters(self):
        oracle = oracle_asset.Asset(1, 2, 1.0)
        for steps in range(1, 70):
            oracle.learn(np.ones(1), 0)
            covered = steps - oracle._window_before(None) + 1
            assert 0.5 * steps <= covered <= 0.75 * steps + 1

    def test_are_nothing_before_they_begin(self):
        X, codes = clusters(seed=104, n=30)
        learner, answers = learned(X, codes, average_from=1000)
        assert np.all(learner.view().gamma == 0.0)
        assert np.all(learner.view().b == 0.0)
        decision = answers[0].decision
        assert np.all((decision == 0.0) | np.isnan(decision))


class TestBlocks:
    @pytest.mark.parametrize("average_from", [None, 100])
    @pytest.mark.parametrize("n_classes", [2, 5])
    def test_any_length_gives_the_model_of_one_at_a_time(self, n_classes, average_from):
        X, codes = clusters(seed=105, n=600, n_classes=n_classes)
        singly, said_singly = learned(X, codes, 1, average_from=average_from)
        for length in (7, 64, 256, 600):
            learner, said = learned(X, codes, length, average_from=average_from)
            assert_equal_iterates(learner, singly, tolerance=1e-9)
            np.testing.assert_array_equal(
                np.concatenate([answer.prediction for answer in said]),
                np.concatenate([answer.prediction for answer in said_singly]),
            )


class TestClasses:
    def test_a_late_one_is_as_if_known_from_the_start(self):
        X, codes = clusters(seed=106, n=500, n_classes=2)
        codes[400:] = np.where(np.arange(100) % 3 == 0, 2, codes[400:])
        learner, _ = learned(X, codes, 50)
        oracle = oracle_of(learner, X, codes, 3)
        gamma, b = oracle.averaged(None)
        np.testing.assert_allclose(iterate(learner)[:3], oracle.gamma[-1], atol=1e-9)
        np.testing.assert_allclose(learner.view().gamma, gamma, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(learner.view().b, b, rtol=1e-9, atol=1e-9)

    def test_the_iterate_of_the_unmet_class_has_only_seen_others(self):
        X, codes = clusters(seed=107, n=200)
        learner, _ = learned(X, codes)
        oracle = oracle_of(learner, X, codes, 3)
        assert len(iterate(learner)) == 3
        np.testing.assert_allclose(iterate(learner)[2], oracle.gamma[-1][2], atol=1e-9)

    def test_two_are_mirror_images(self):
        learner, _ = learned(*clusters(seed=108, n=200))
        view = learner.view()
        np.testing.assert_allclose(view.gamma[0], -view.gamma[1], atol=1e-9)
        np.testing.assert_allclose(view.b[0], -view.b[1], atol=1e-9)

    def test_several_new_ones_in_one_call(self):
        X, _ = clusters(seed=109, n=60)
        codes = np.arange(60) % 6
        together, _ = learned(X, codes)
        singly, _ = learned(X, codes, 1)
        assert together.n_classes == 6
        assert_equal_iterates(together, singly, tolerance=1e-12)


class TestAnswers:
    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_are_what_a_prediction_would_have_said(self, n_classes):
        X, codes = clusters(seed=110, n=200, n_classes=n_classes)
        learner, _ = learned(X[:40], codes[:40])
        assert learner.n_classes == n_classes
        for i in range(40, 200):
            said, decision = predict(learner.view(), X[i : i + 1])
            answer = learner.absorb(X[i : i + 1], codes[i : i + 1])
            np.testing.assert_array_equal(answer.prediction, said)
            np.testing.assert_allclose(answer.decision, decision, rtol=1e-9, atol=1e-9)

    def test_nothing_is_said_before_two_classes_are_known(self):
        X, _ = clusters(seed=111, n=6)
        _, (answer,) = learned(X, np.array([0, 0, 0, 1, 0, 1]))
        assert answer.prediction[:4].tolist() == [-1] * 4
        assert np.all(answer.prediction[4:] >= 0)
        assert np.isnan(answer.decision).tolist() == [True] * 4 + [False] * 2

    def test_a_single_class_gives_no_prediction(self):
        _, (answer,) = learned(np.eye(3), np.zeros(3, np.int64))
        assert answer.prediction.tolist() == [-1] * 3
        assert answer.decision.shape == (3,)
        assert np.all(np.isnan(answer.decision))

    def test_score_the_classes_known_at_the_time(self):
        X, _ = clusters(seed=112, n=6)
        _, (answer,) = learned(X, np.array([0, 1, 0, 2, 2, 1]))
        known = ~np.isnan(answer.decision)
        assert known.sum(axis=1).tolist() == [0, 0, 2, 2, 3, 3]
        assert known[2:4, :2].all()
        assert np.all(answer.prediction[2:4] < 2)


class TestViews:
    def test_decide_by_the_averaged_model_alone(self):
        X, codes = clusters(seed=113, n=300, n_classes=3)
        learner, _ = learned(X, codes)
        view = learner.view()
        said, scores = predict(view, X)
        expected = features(learner, X) @ view.gamma.T + view.b
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(said, expected.argmax(axis=1))

    def test_of_two_classes_decide_by_the_sign_for_the_second(self):
        X, codes = clusters(seed=114, n=300)
        learner, _ = learned(X, codes)
        view = learner.view()
        said, decision = predict(view, X)
        expected = features(learner, X) @ view.gamma[1] + view.b[1]
        np.testing.assert_allclose(decision, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(said, expected > 0.0)

    def test_do_not_change_after_publication(self):
        X, codes = clusters(seed=115, n=400, n_classes=3)
        learner, _ = learned(X[:100], codes[:100])
        view = learner.view()
        before = predict(view, X)[1]
        learner.absorb(X[100:], codes[100:])
        np.testing.assert_array_equal(predict(view, X)[1], before)

    def test_need_a_sample_and_to_predict_two_classes(self):
        learner = made()
        with pytest.raises(RuntimeError):
            learner.view()
        learner.absorb(np.eye(3), np.zeros(3, np.int64))
        with pytest.raises(ValueError, match="two classes"):
            predict(learner.view(), np.eye(3))

    def test_the_same_seed_gives_the_same_model(self):
        X, codes = clusters(seed=116, n=200)
        decisions = [predict(learned(X, codes, seed=seed)[0].view(), X)[1] for seed in (1, 1, 2)]
        np.testing.assert_array_equal(decisions[0], decisions[1])
        assert not np.allclose(decisions[0], decisions[2])


class TestState:
    @pytest.mark.parametrize("at", [0, 1, 63, 64, 100, 250])
    @pytest.mark.parametrize("average_from", [None, 90])
    def test_restored_goes_on_bit_for_bit(self, at, average_from):
        X, codes = clusters(seed=117, n=400, n_classes=4)
        live = made(average_from=average_from)
        for part in blocks(at, 30):
            live.absorb(X[part], codes[part])
        restored = made(average_from=average_from)
        restored.restore(live.state())
        for part in [slice(at, at + 1), slice(at + 1, at + 30), slice(at + 30, 400)]:
            ours = live.absorb(X[part], codes[part])
            theirs = restored.absorb(X[part], codes[part])
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(a, b)
        state, state_again = live.state(), restored.state()
        assert state.keys() == state_again.keys()
        for name in state:
            np.testing.assert_array_equal(state[name], state_again[name])
        np.testing.assert_array_equal(predict(live.view(), X)[1], predict(restored.view(), X)[1])

    def test_is_not_changed_by_further_learning_and_may_be_read_only(self):
        X, codes = clusters(seed=118, n=300)
        learner, _ = learned(X[:100], codes[:100])
        state = learner.state()
        copies = {name: array.copy() for name, array in state.items()}
        for array in state.values():
            array.flags.writeable = False
        restored = made()
        restored.restore(state)
        learner.absorb(X[100:], codes[100:])
        restored.absorb(X[100:], codes[100:])
        for name, array in state.items():
            np.testing.assert_array_equal(array, copies[name])
        assert_equal_iterates(learner, restored, tolerance=0.0)


class TestAccuracy:
    """Two passes over standardised data against LIBSVM with the same kernel."""

    @pytest.mark.parametrize(
        ("load", "test_size", "gamma", "margin"),
        [(load_breast_cancer, 200, 1 / 60, 0.03), (load_digits, 600, 1 / 120, 0.06)],
        ids=["breast-cancer", "digits"],
    )
    def test_comes_close_to_libsvm(self, load, test_size, gamma, margin):
        data = load()
        X = data.data - data.data.mean(axis=0)
        X /= np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
        order = np.random.default_rng(0).permutation(len(X))
        X, codes = X[order], in_order_of_appearance(data.target[order].tolist())
        train, test = slice(0, -test_size), slice(-test_size, None)
        learner = Asset(Kernel("rbf", gamma), dimension=1024, lam=1e-3)
        for _ in range(2):
            learner.absorb(X[train], codes[train])
        ours = np.mean(predict(learner.view(), X[test])[0] == codes[test])
        libsvm = SVC(C=10.0, gamma=gamma).fit(X[train], codes[train]).score(X[test], codes[test])
        assert libsvm > 0.95
        assert ours > libsvm - margin


class TestRows:
    @pytest.mark.parametrize("features", ["fourier", "nystrom"])
    def test_sparse_rows_give_the_decisions_of_dense_ones(self, features):
        """A decision may depend on nothing but the values of a row."""
        X, codes = clusters(7, 300, n_classes=3)
        X[np.abs(X) < 0.5] = 0.0
        dense_learner, other = (
            Asset(Kernel("rbf", 0.3), features=features, dimension=60) for _ in range(2)
        )
        of_dense = dense_learner.absorb(X, codes).decision
        of_sparse = other.absorb(sparse(X), codes).decision
        largest = np.nanmax(np.abs(of_dense))
        np.testing.assert_allclose(of_sparse, of_dense, rtol=0, atol=1e-7 * largest)

    @pytest.mark.parametrize("task", ["classification", "regression"])
    @pytest.mark.parametrize("after", [0, 40])
    def test_none_at_all_change_nothing(self, task, after):
        X, codes = clusters(7, 60)
        y = codes if task == "classification" else X[:, 0]
        learner = Asset(Kernel("rbf", 0.3), task=task, dimension=60)
        if after:
            learner.absorb(X[:after], y[:after])
        before = learner.state()
        answers = learner.absorb(X[:0], y[:0])
        assert len(answers.prediction) == len(answers.decision) == 0
        for name, array in learner.state().items():
            np.testing.assert_array_equal(array, before[name])

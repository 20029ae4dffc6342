"""Nystrom's landmarks and the targets' scale from the first samples of a stream."""

import numpy as np
import pytest

from tests.solver.streams import blocks, clusters, sparse, thin_clusters
from wolfstream.solver.asset.features import transform
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.nystrom import nystrom_map
from wolfstream.solver.asset.view import predict
from wolfstream.solver.kernels.bandwidth import AutoGamma, gamma_from_rows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import n_rows, take_rows
from wolfstream.solver.rows.targets import TARGET_SAMPLES

RBF = Kernel("rbf", 0.1)
for_both = pytest.mark.parametrize("rows", [np.asarray, sparse], ids=["dense", "sparse"])
for_each_task = pytest.mark.parametrize("task", ["classification", "regression"])


def made(**parameters):
    return Asset(RBF, **({"features": "nystrom", "dimension": 40, "lam": 1e-3} | parameters))


def samples(task, n=300):
    X, codes = thin_clusters(501, n, n_classes=3)
    return X, codes if task == "classification" else 1e5 + 3e4 * X[:, 0]


def absorbed(learner, X, y, lengths):
    start, answers = 0, []
    for length in lengths:
        part = slice(start, start + length)
        answers.append(learner.absorb(take_rows(X, part), y[part]))
        start += length
    return answers


def assert_equal_states(learner, other):
    state, expected = learner.state(), other.state()
    assert state.keys() == expected.keys()
    for name, array in state.items():
        np.testing.assert_array_equal(array, expected[name])


class TestLandmarks:
    @for_both
    @pytest.mark.parametrize("dimension", [1, 2, 3, 32, 40])
    def test_are_the_first_samples_learned_again_in_their_order(self, rows, dimension):
        X, y = samples("classification")
        learner, begun = made(dimension=dimension), made(dimension=dimension)
        learner.absorb(rows(X), y)
        begun.begin(take_rows(rows(X), slice(0, dimension)), y[:dimension])
        begun.absorb(take_rows(rows(X), slice(0, dimension)), y[:dimension])
        begun.absorb(take_rows(rows(X), slice(dimension, None)), y[dimension:])
        assert learner.steps == begun.steps == 300
        np.testing.assert_allclose(learner.view().gamma, begun.view().gamma, rtol=1e-9, atol=1e-9)

    @for_both
    def test_are_all_samples_so_far_at_powers_of_two(self, rows):
        X, y = samples("classification")
        learner = made()
        for i in range(60):
            learner.absorb(take_rows(rows(X), slice(i, i + 1)), y[i : i + 1])
            seen = i + 1
            made_of = 40 if seen >= 40 else 1 << (seen.bit_length() - 1)
            assert n_rows(learner.features.landmarks.exact) == made_of
            assert learner.frozen == (seen >= 40)
            expected = nystrom_map(RBF, take_rows(rows(X), slice(0, made_of)))
            np.testing.assert_array_equal(learner.features.whitening, expected.whitening)

    def test_alone_stay_when_the_map_is_frozen(self):
        X, y = samples("classification")
        learner = made()
        learner.absorb(X[:39], y[:39])
        assert len(learner.state()["rows"]) == len(learner.state()["y"]) == 39
        learner.absorb(X[39:], y[39:])
        assert "rows" not in learner.state()
        np.testing.assert_array_equal(learner.state()["landmarks"], X[:40])

    def test_are_copies(self):
        """What a caller does to its rows afterwards does not reach the learner."""
        X, y = samples("classification")
        for at in (1, 2, 30, 40, 60):
            learner, other = made(), made()
            given, labels = X[:at].copy(), y[:at].copy()
            learner.absorb(given, labels)
            given[:], labels[:] = 1e9, 0
            other.absorb(X[:at], y[:at])
            for one in (learner, other):
                one.absorb(X[at:], y[at:])
            assert_equal_states(learner, other)

    @for_each_task
    def test_memory_is_constant_from_then_on(self, task):
        X, y = samples(task, 1000)
        learner, sizes = made(task=task), set()
        for part in blocks(1000, 50):
            learner.absorb(X[part], y[part])
            if part.stop >= 128:
                sizes.add(learner.nbytes)
        assert len(sizes) == 1

    def test_that_are_all_equal_leave_one_feature(self):
        learner = made()
        learner.absorb(np.ones((100, 3)), np.arange(100) % 2)
        assert learner.view().dimension == 1
        learner.absorb(np.eye(3), np.array([0, 1, 0]))

    def test_without_any_kernel_value_leave_the_intercept(self):
        learner = Asset(Kernel("linear"), features="nystrom", dimension=4)
        learner.absorb(np.zeros((10, 2)), np.array([0, 1, 1, 1, 1, 1, 1, 1, 1, 1]))
        assert learner.view().dimension == 0
        assert predict(learner.view(), np.eye(2))[0].tolist() == [1, 1]

    def test_of_fewer_samples_than_landmarks_already_predict(self):
        X, y = clusters(502, 100, noise=0.0)
        learner = made(dimension=4096)
        learner.absorb(X, y)
        assert not learner.frozen
        assert learner.view().dimension <= 64
        assert np.mean(predict(learner.view(), X)[0] == y) > 0.8


class TestKinds:
    @pytest.mark.parametrize("at", [1, 30, 100])
    def test_rows_of_the_other_kind_are_refused_and_change_nothing(self, at):
        X, y = samples("classification")
        for ours, others in ((np.asarray, sparse), (sparse, np.asarray)):
            learner, other = made(), made()
            for one in (learner, other):
                one.absorb(ours(X[:at]), y[:at])
            with pytest.raises(TypeError, match="sparse"):
                learner.absorb(others(X[at:]), y[at:])
            assert_equal_states(learner, other)


class TestCuts:
    @for_both
    @for_each_task
    def test_into_calls_do_not_matter(self, rows, task):
        """Up to rounding in the matrix products; bit for bit for the same cuts."""
        X, y = samples(task)
        expected = None
        for lengths in ([300], [1] * 300, [39, 1, 260], [41, 100, 159]):
            learner = made(task=task)
            said = np.concatenate([a.prediction for a in absorbed(learner, rows(X), y, lengths)])
            decided = predict(learner.view(), rows(X))[1]
            if expected is None:
                expected, expected_decided = said, decided
            np.testing.assert_allclose(said, expected, rtol=1e-6)
            scale = np.abs(expected_decided).max()
            np.testing.assert_allclose(decided, expected_decided, rtol=0, atol=1e-6 * scale)


class TestRestore:
    @pytest.mark.sweep
    @for_both
    @for_each_task
    @pytest.mark.parametrize("algorithm", ["asset", "asset*"])
    def test_goes_on_bit_for_bit_at_every_moment(self, rows, task, algorithm):
        X, y = samples(task)
        live = made(task=task, algorithm=algorithm)
        for at in [*range(48), 100, 127, 128, 129, 200]:
            while live.steps < at:
                i = live.steps
                live.absorb(take_rows(rows(X), slice(i, i + 1)), y[i : i + 1])
            state = live.state()
            for array in state.values():
                array.flags.writeable = False
            restored = made(task=task, algorithm=algorithm)
            restored.restore(state)
            assert_equal_states(restored, live)
            reference = made(task=task, algorithm=algorithm)
            reference.restore(live.state())
            lengths = [1, 2, 45]
            rest = take_rows(rows(X), slice(at, None))
            ours = absorbed(reference, rest, y[at:], lengths)
            theirs = absorbed(restored, rest, y[at:], lengths)
            for answer, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(answer.prediction, other.prediction)
                np.testing.assert_array_equal(answer.decision, other.decision)
            assert_equal_states(restored, reference)

    @for_each_task
    def test_the_live_learner_and_the_restored_one_stay_equal(self, task):
        X, y = samples(task)
        live, restored = made(task=task), made(task=task)
        live.absorb(X[:30], y[:30])
        restored.restore(live.state())
        for part in (slice(30, 35), slice(35, 150), slice(150, 300)):
            live.absorb(X[part], y[part])
            restored.absorb(X[part], y[part])
        assert_equal_states(live, restored)

    def test_a_state_is_not_changed_by_further_learning(self):
        X, y = samples("classification")
        learner = made()
        learner.absorb(X[:30], y[:30])
        state = learner.state()
        copies = {name: array.copy() for name, array in state.items()}
        learner.absorb(X[30:], y[30:])
        for name, array in state.items():
            np.testing.assert_array_equal(array, copies[name])


class TestAutoGamma:
    @for_each_task
    def test_and_landmarks_warm_up_together(self, task):
        X, y = samples(task)

        def build(gamma):
            return Asset(Kernel("rbf", gamma), task=task, features="nystrom", dimension=200)

        auto = AutoGamma(build)
        for part in blocks(300, 41):
            auto.absorb(X[part], y[part])
        fixed = build(gamma_from_rows(X[:128]))
        fixed.absorb(X, y)
        assert auto.learner.frozen
        np.testing.assert_allclose(
            predict(auto.learner.view(), X)[1],
            predict(fixed.view(), X)[1],
            rtol=1e-6,
            atol=1e-6 * np.abs(y).max(),
        )

    def test_keeps_targets_in_its_state(self):
        X, y = samples("regression")

        def build(gamma):
            return Asset(Kernel("rbf", gamma), task="regression", features="nystrom", dimension=20)

        live, restored = AutoGamma(build), AutoGamma(build)
        live.absorb(X[:50], y[:50])
        restored.restore(live.state())
        for learner in (live, restored):
            learner.absorb(X[50:], y[50:])
        np.testing.assert_array_equal(
            predict(live.learner.view(), X)[1], predict(restored.learner.view(), X)[1]
        )


class TestTargetScale:
    def test_is_that_of_the_first_128(self):
        X, y = samples("regression")
        learner = made(task="regression")
        for i in range(200):
            learner.absorb(X[i : i + 1], y[i : i + 1])
            used = min(TARGET_SAMPLES, 1 << ((i + 1).bit_length() - 1))
            if i + 1 >= 40 > used:
                used = 40
            assert learner.scale.centre == pytest.approx(y[:used].mean())
            assert learner.scale.unit == pytest.approx(y[:used].std() or 1.0)

    @pytest.mark.parametrize("features", ["fourier", "nystrom"])
    def test_makes_the_model_follow_any_unit_and_offset(self, features):
        X, _ = samples("regression")
        z = X[:, 0]
        models = []
        for target in (z, 1e-3 * z, 1e6 + 1e3 * z, -5.0 * z):
            learner = made(task="regression", features=features)
            answers = learner.absorb(X, target)
            models.append((answers.prediction, predict(learner.view(), X)[1]))
        for a, of_z in zip(zip(*models, strict=True), models[0], strict=True):
            np.testing.assert_allclose(a[1], 1e-3 * of_z, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(a[2], 1e6 + 1e3 * of_z, rtol=1e-6)
            np.testing.assert_allclose(a[3], -5.0 * of_z, rtol=1e-6, atol=1e-6)

    def test_is_another_lambda_and_epsilon(self):
        """In units of y the problem is that of lambda / unit and epsilon unit."""
        X, y = samples("regression")
        learner = made(task="regression", epsilon=0.2)
        learner.begin(X[:40], y)
        learner.absorb(X, y)
        view, lam, unit = learner.view(), 1e-3, learner.scale.unit
        V = transform(view.features, X)
        value = V @ view.gamma[0] + view.b[0]
        loss = np.maximum(np.abs((y - view.centre) / unit - value) - 0.2, 0.0).mean()
        scaled = 0.5 * lam * view.gamma[0] @ view.gamma[0] + loss
        gamma, said = unit * view.gamma[0], predict(view, X)[1]
        raw_loss = np.maximum(np.abs(y - said) - 0.2 * unit, 0.0).mean()
        assert 0.5 * lam / unit * gamma @ gamma + raw_loss == pytest.approx(unit * scaled)

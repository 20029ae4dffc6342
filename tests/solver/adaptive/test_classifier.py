"""The bank for classification against a plain one that takes one sample at a time."""

import numpy as np
import pytest

from tests.solver import oracle_bank
from tests.solver.streams import blocks, clusters
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.features import transform
from wolfstream.solver.adaptive.view import predict_classes

LENGTHS = (1, 7, 32, 64, 300)


def learned(X, codes, length=64, external=None, **parameters):
    """A classifier that has absorbed the rows in blocks, and its probability of each row."""
    learner = AdaptiveClassifier(X.shape[1], **parameters)
    n_classes = int(codes.max()) + 1
    probability = np.zeros((len(codes), n_classes))
    for part in blocks(len(codes), length):
        given = None if external is None else external[part]
        answers = learner.absorb(X[part], codes[part], given)
        probability[part, : answers.probability.shape[1]] = answers.probability
    return learner, probability


class TestAnswers:
    @pytest.mark.parametrize("n_classes", [1, 2, 5])
    def test_are_those_of_one_sample_at_a_time(self, n_classes):
        X, codes = clusters(seed=1, n=300, n_features=3, n_classes=n_classes)
        learner, probability = learned(X, codes)
        oracle = oracle_bank.Bank(learner.settings, learner.inputs.features, n_classes)
        rows = zip(transform(learner.inputs.features, X), codes, strict=True)
        expected = np.array([oracle.learn(phi, code) for phi, code in rows])
        np.testing.assert_allclose(probability, expected, atol=1e-7)

    @pytest.mark.parametrize("length", LENGTHS)
    def test_do_not_depend_on_the_blocks(self, length):
        X, codes = clusters(seed=2, n=400, n_classes=3)
        _, once = learned(X, codes, len(codes))
        _, other = learned(X, codes, length)
        np.testing.assert_allclose(once, other, atol=1e-7)

    @pytest.mark.parametrize("at", [1, 20, 150])
    def test_have_no_bit_of_their_own_or_later_labels(self, at):
        X, codes = clusters(seed=3, n=200, n_classes=3)
        codes[:3] = 0, 1, 2
        changed = codes.copy()
        changed[at:] = np.random.default_rng(0).permutation((codes[at:] + 1) % 3)
        assert np.any(changed[at:] != codes[at:])
        _, given = learned(X, codes, 200)
        _, other = learned(X, changed, 200)
        np.testing.assert_array_equal(given[: at + 1], other[: at + 1])

    def test_of_no_rows_are_none(self):
        answers = AdaptiveClassifier(2).absorb(np.empty((0, 2)), np.empty(0, np.int64))
        assert answers.prediction.shape == (0,)
        assert answers.probability.shape == (0, 0)

    def test_before_two_classes_are_known(self):
        learner = AdaptiveClassifier(2)
        answers = learner.absorb(np.zeros((3, 2)), np.array([0, 0, 1]))
        assert answers.prediction.tolist() == [-1, 0, 0]
        assert answers.probability.tolist() == [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
        assert np.isnan(answers.decision).all()

    def test_of_separable_classes_become_right_and_sure(self):
        X, codes = clusters(seed=4, n=2000, n_classes=4, noise=0.0, apart=6.0)
        _, probability = learned(X, codes)
        late = probability[1000:]
        assert np.mean(late.argmax(axis=1) == codes[1000:]) > 0.99
        assert np.median(late.max(axis=1)) > 0.99

    def test_recover_after_all_labels_flip(self):
        X = np.random.default_rng(5).normal(size=(12_000, 2))
        codes = ((X**2).sum(axis=1) > 1.4).astype(np.int64)
        codes[:2] = 0, 1
        codes[10_000:] = 1 - codes[10_000:]
        _, probability = learned(X, codes)
        right = probability.argmax(axis=1) == codes
        assert right[10_500:11_000].mean() > right[9_000:10_000].mean() - 0.02


class TestView:
    def test_predicts_what_absorbing_would_answer_next(self):
        X, codes = clusters(seed=6, n=333, n_classes=3)
        learner, _ = learned(X[:-1], codes[:-1])
        predicted = predict_classes(learner.view(), X[-1:])
        absorbed = learner.absorb(X[-1:], codes[-1:])
        np.testing.assert_allclose(predicted.probability, absorbed.probability, atol=1e-12)
        assert predicted.prediction == absorbed.prediction

    def test_stays_what_it_was(self):
        X, codes = clusters(seed=7, n=300, n_classes=3)
        learner, _ = learned(X[:150], codes[:150])
        view = learner.view()
        before = predict_classes(view, X).probability
        learner.absorb(X[150:], codes[150:])
        np.testing.assert_array_equal(predict_classes(view, X).probability, before)

    def test_without_a_class_is_refused(self):
        with pytest.raises(ValueError, match="needs a class"):
            predict_classes(AdaptiveClassifier(2).view(), np.zeros((1, 2)))


class TestState:
    @pytest.mark.parametrize("at", [1, 40, 64])
    def test_goes_on_to_the_bit(self, at):
        X, codes = clusters(seed=8, n=400, n_classes=4)
        options = {"external_experts": ("other",), "seed": 3}
        given = np.random.default_rng(1).normal(size=(400, 1, 4))
        learner, _ = learned(X[:at], codes[:at], external=given[:at], **options)
        twin = AdaptiveClassifier(X.shape[1], **options)
        twin.restore(learner.state())
        for one in (learner, twin):
            one.absorb(X[at:], codes[at:], given[at:])
        states = learner.state(), twin.state()
        assert states[0].keys() == states[1].keys()
        for name, array in states[0].items():
            np.testing.assert_array_equal(array, states[1][name], err_msg=name)

    def test_is_a_copy(self):
        X, codes = clusters(seed=9, n=200)
        learner, _ = learned(X[:100], codes[:100])
        state = learner.state()
        before = {name: array.copy() for name, array in state.items()}
        learner.absorb(X[100:], codes[100:])
        for name, array in state.items():
            np.testing.assert_array_equal(array, before[name], err_msg=name)

    def test_differs_by_seed(self):
        X, codes = clusters(seed=10, n=100)
        first, second = (learned(X, codes, seed=seed)[1] for seed in (0, 1))
        assert np.any(first != second)


class TestExternalExperts:
    def test_are_combined_as_others_are(self):
        X, codes = clusters(seed=11, n=200, n_features=2, n_classes=3)
        random = np.random.default_rng(2)
        external = random.normal(size=(200, 2, 3)) + np.eye(3)[codes][:, None]
        external[random.random(200) < 0.3, 0] = np.nan
        learner, probability = learned(X, codes, external=external, external_experts=("a", "b"))
        oracle = oracle_bank.Bank(learner.settings, learner.inputs.features, 3)
        oracle.combination = oracle_bank.Combination(
            learner.learners.count + 2, learner.settings.stackers, oracle.prior
        )
        for i, phi in enumerate(transform(learner.inputs.features, X)):
            given = [None if np.isnan(s[0]) else s[: oracle.known] for s in external[i]]
            expected = oracle.learn(phi, codes[i], given)
            np.testing.assert_allclose(probability[i], expected, atol=1e-7)

    def test_that_are_right_win(self):
        X, codes = clusters(seed=12, n=600, noise=0.4)
        external = np.eye(2)[codes][:, None]
        _, probability = learned(X, codes, external=external, external_experts=("oracle",))
        assert np.mean(probability[100:].argmax(axis=1) == codes[100:]) > 0.97

    def test_that_know_fewer_classes_give_the_others_their_least_score(self):
        X, codes = clusters(seed=13, n=300, n_classes=3)
        short = np.random.default_rng(3).normal(size=(300, 1, 2))
        full = np.concatenate([short, short.min(axis=2, keepdims=True)], axis=2)
        answers = [learned(X, codes, external=e, external_experts=("e",))[1] for e in (short, full)]
        np.testing.assert_array_equal(*answers)

    def test_that_always_sleep_change_weights_alone(self):
        X, codes = clusters(seed=14, n=500)
        asleep = np.full((500, 1, 2), np.nan)
        _, probability = learned(X, codes, external=asleep, external_experts=("e",))
        _, without = learned(X, codes)
        right = [np.mean(p.argmax(axis=1) == codes) for p in (probability, without)]
        assert abs(right[0] - right[1]) < 0.01

    @pytest.mark.parametrize("columns", [3, 300])
    def test_of_a_view_have_the_same_bits_alone_and_among_others(self, columns):
        X, codes = clusters(seed=17, n=200, n_features=columns, n_classes=3)
        view = learned(X, codes)[0].view()
        together = predict_classes(view, X).probability
        alone = [predict_classes(view, X[i : i + 1]).probability[0] for i in range(len(X))]
        np.testing.assert_array_equal(together, alone)


class TestReport:
    def test_names_every_learner_with_weight_and_losses(self):
        X, codes = clusters(seed=15, n=1500)
        learner, _ = learned(X, codes, external_experts=("asset",))
        report = learner.expert_weights().rows()
        assert len(report) == len(learner.combination.weight)
        assert sum(line["weight"] for line in report) == pytest.approx(1.0)
        assert report[0]["horizon"] is None
        assert all(line["recent_loss"] < 5.0 for line in report if line["learner"] != "asset")
        silent = next(line for line in report if line["learner"] == "asset")
        assert silent["overall_loss"] is silent["recent_loss"] is None

    def test_losses_are_of_the_last_thousand_and_of_all(self):
        X, codes = clusters(seed=16, n=2930, noise=0.0)
        learner = AdaptiveClassifier(X.shape[1])
        lost, add = [], learner.losses.add
        learner.losses.add = lambda losses: lost.append(losses) or add(losses)
        for part in blocks(len(codes), 57):
            learner.absorb(X[part], codes[part])
        lost = np.concatenate(lost)
        report = learner.expert_weights().rows()
        recent, overall = ([line[f"{of}_loss"] for line in report] for of in ("recent", "overall"))
        np.testing.assert_allclose(recent, lost[-1000:].mean(axis=0))
        np.testing.assert_allclose(overall, np.nanmean(lost, axis=0))

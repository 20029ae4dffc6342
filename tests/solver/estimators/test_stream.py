"""The default model in process: scikit-learn's conventions, classes and numbers as they come."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from tests.solver.estimators.equivalence import not_equivalent
from wolfstream import StreamClassifier, StreamRegressor


def mixed_units(n, seed=0):
    """A linear concept of three classes in features whose units differ by 1e6 each."""
    X = np.random.default_rng(seed).standard_normal((n, 3))
    y = np.array(["down", "none", "up"])[np.digitize(X[:, 0] + X[:, 1], [-0.6, 0.6])]
    return X * [1e-6, 1.0, 1e6] + [0.0, 7.0, 0.0], y


def targets(X):
    return 1e4 + 100.0 * np.sin(X[:, 0] * 1e6) + 10.0 * X[:, 1]


def failed_checks(estimator):
    reason = "columns are put right by their names"
    return {"check_dataframe_column_names_consistency": reason, **not_equivalent(estimator)}


@parametrize_with_checks(
    [StreamClassifier(), StreamRegressor()], expected_failed_checks=failed_checks
)
def test_scikit_learn_checks_them(estimator, check):
    check(estimator)


@pytest.mark.hard
@pytest.mark.sweep
@pytest.mark.parametrize("variant", [StreamClassifier(head="asset", missing="indicator")], ids=repr)
def test_scikit_learn_checks_a_variant(variant):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # pandas and the array API
        check_estimator(variant, expected_failed_checks=failed_checks(variant))


def test_features_of_any_units_are_learned():
    X, y = mixed_units(2000)
    assert StreamClassifier().fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.9
    t = targets(X)
    assert StreamRegressor().fit(X[:1500], t[:1500]).score(X[1500:], t[1500:]) > 0.9


def test_classes_need_no_declaration():
    X, y = mixed_units(600)
    model = StreamClassifier()
    for label in ("up", "down", "none"):
        model.partial_fit(X[y == label][:50], y[y == label][:50])
    assert model.classes_.tolist() == ["up", "down", "none"]
    probability = model.predict_proba(X)
    assert probability.shape == (600, 3)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X))


def test_declared_classes_are_all_that_may_come():
    X, y = mixed_units(100)
    model = StreamClassifier().partial_fit(X, y, classes=["down", "none", "up", "never"])
    assert model.predict_proba(X)[:, model.classes_ == "never"].max() == 0.0
    assert np.isfinite(model.decision_function(X)).all()
    with pytest.raises(ValueError, match="outside classes"):
        model.partial_fit(X[:1], ["typo"])


def test_columns_follow_classes_and_not_their_appearance():
    X, y = mixed_units(400)
    order = np.argsort(y, kind="stable")[::-1]
    model = StreamClassifier().fit(X[order], y[order])
    assert model.classes_.tolist() == ["down", "none", "up"]
    probability = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X))


def test_the_decision_of_two_classes_is_for_the_second_one():
    X, y = mixed_units(400)
    model = StreamClassifier().fit(X, y == "up")
    np.testing.assert_array_equal(model.decision_function(X) > 0.0, model.predict(X))


@pytest.mark.parametrize("estimator", [StreamClassifier, StreamRegressor])
def test_missing_numbers_are_learned_and_predicted(estimator):
    X, y = mixed_units(500)
    y = y if estimator is StreamClassifier else targets(X)
    X[::7, 1] = np.nan
    model = estimator(missing="indicator").fit(X, y)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("estimator", [StreamClassifier, StreamRegressor])
def test_the_bits_are_those_of_the_blocks_again(estimator):
    X, y = mixed_units(500)
    y = y if estimator is StreamClassifier else targets(X)
    model, again = estimator(seed=3), clone(estimator(seed=3))
    for start in range(0, 500, 100):
        part = slice(start, start + 100)
        model.partial_fit(X[part], y[part])
        again.partial_fit(X[part], y[part])
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_sparse_rows_are_learned_as_sparse_ones():
    X, y = mixed_units(300)
    X = np.where(np.abs(X) > np.abs(X).mean(axis=0), X, 0.0) / [1e-6, 1.0, 1e6]
    model = StreamClassifier().fit(csr_matrix(X), y)
    np.testing.assert_array_equal(model.predict(csr_matrix(X)), model.predict(X))
    broken = csr_matrix(X)
    broken.data[3] = np.nan
    with pytest.raises(ValueError, match="leave out what is missing"):
        model.partial_fit(broken, y)


def test_learners_say_what_they_are_worth():
    X, y = mixed_units(300)
    model = StreamClassifier()
    with pytest.raises(NotFittedError):
        model.learners_  # noqa: B018
    model.fit(X, y)
    assert sum(learner["weight"] for learner in model.learners_) == pytest.approx(1.0)
    taught = {row["learner"] for row in model.learners_ if row.get("external")}
    assert taught == {"working_set", "asset"}


def test_deviations_come_with_values():
    X, _ = mixed_units(800)
    y = targets(X)
    value, deviation = StreamRegressor().fit(X, y).predict(X, return_std=True)
    assert deviation.shape == value.shape
    assert deviation.min() > 0.0


def test_targets_beyond_what_can_be_squared_teach_nothing():
    X, _ = mixed_units(50)
    model = StreamRegressor().fit(X, targets(X))
    before = model.predict(X)
    with pytest.raises(ValueError, match="1e\\+100"):
        model.partial_fit(X, np.full(50, 1e200))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("estimator", [StreamClassifier, StreamRegressor])
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_a_pickled_model_goes_on_bit_for_bit(estimator, kind):
    X, y = mixed_units(400)
    y = y if estimator is StreamClassifier else targets(X)
    X = kind(X / [1e-6, 1.0, 1e6])
    model = estimator().partial_fit(X[:250], y[:250])
    other = pickle.loads(pickle.dumps(model))  # noqa: S301
    for each in (model, other):
        each.partial_fit(X[250:], y[250:])
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


class TestPlainArrays:
    """Arrays of float64 are learned without scikit-learn's checks; the answers must not tell."""

    @pytest.fixture
    def learned(self):
        X, y = mixed_units(300)
        return StreamClassifier().partial_fit(X[:200], y[:200]), X, y

    def test_give_the_bits_of_lists(self, learned):
        model, X, y = learned
        other = copy.deepcopy(model)
        numbers = np.array([0, 1, 2])[np.searchsorted(["down", "none", "up"], y)]
        counted = StreamClassifier().partial_fit(X[:200].tolist(), numbers[:200].tolist())
        plain = StreamClassifier().partial_fit(X[:200], numbers[:200])
        for start in range(200, 300, 10):
            part = slice(start, start + 10)
            model.partial_fit(X[part], y[part])
            other.partial_fit(X[part].tolist(), y[part].tolist())
            plain.partial_fit(X[part], numbers[part])
            counted.partial_fit(X[part].tolist(), numbers[part].tolist())
        expected = model.predict_proba(X)
        assert (other.predict_proba(X.tolist()) == expected).all()
        assert (plain.predict_proba(X) == counted.predict_proba(X.tolist())).all()

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_with_infinite_numbers_are_refused(self, learned, value):
        model, X, y = learned
        X[0, 1] = value
        with pytest.raises(ValueError, match="infinity"):
            model.predict(X)
        with pytest.raises(ValueError, match="infinity"):
            model.partial_fit(X, y)

    def test_of_another_width_are_refused(self, learned):
        model, X, y = learned
        with pytest.raises(ValueError, match="features"):
            model.predict(X[:, :2].copy())
        with pytest.raises(ValueError, match="features"):
            model.partial_fit(X[:, :2].copy(), y)

    def test_with_labels_of_other_lengths_or_kinds_are_refused(self, learned):
        model, X, _ = learned
        with pytest.raises(ValueError, match="inconsistent"):
            model.partial_fit(X[:3], np.array([0, 1]))
        with pytest.raises(ValueError, match="numbers are not strings"):
            model.partial_fit(X[:2], np.array([0, 1]))

    def test_with_targets_that_are_no_numbers_are_refused(self, learned):
        _, X, _ = learned
        model = StreamRegressor().partial_fit(X, targets(X))
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(X[:2], np.array([0.0, np.nan]))

    def test_of_no_rows_are_refused(self, learned):
        model, X, _ = learned
        with pytest.raises(ValueError, match="minimum of 1"):
            model.predict(X[:0])
        with pytest.raises(ValueError, match="minimum of 1"):
            model.partial_fit(X[:0], np.empty(0, np.int64))

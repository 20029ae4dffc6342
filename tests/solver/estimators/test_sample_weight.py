"""`sample_weight` in every estimator: what it is equal to, and what is refused."""

import numpy as np
import pytest
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.svm import SVC

from tests.solver.streams import clusters
from wolfstream import (
    AssetClassifier,
    AssetRegressor,
    EnclosingBall,
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    SemiparametricSVR,
    SFWClassifier,
    SFWRegressor,
    StreamClassifier,
    StreamRegressor,
)

EXACT = {"gamma": 0.3, "algorithm": "smo", "tol": 0.0, "absolute_tol": 1e-11, "random_state": 0}
# Solved to their optimum, where a weight is a number of copies.
SOLVED = [
    FrankWolfeClassifier(**EXACT, C=2.0),
    FrankWolfeClassifier(**EXACT, C=2.0, class_weight="balanced"),
    FrankWolfeRegressor(**EXACT, C=100.0),
    EnclosingBall(**EXACT, C=0.05, contamination="auto"),
    SemiparametricSVR(gamma=0.3, tol=1e-9),
]
FAST = {"gamma": 0.3, "dimension": 30, "epochs": 2, "random_state": 0}
ALL = [
    *SOLVED,
    SFWClassifier(gamma=0.3, random_state=0, epochs=2),
    SFWRegressor(gamma=0.3, random_state=0, epochs=2),
    AssetClassifier(**FAST),
    AssetRegressor(**FAST),
    StreamClassifier(),
    StreamRegressor(),
]
ONLINE = [model for model in ALL if hasattr(model, "partial_fit")]

for_all = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
for_solved = pytest.mark.parametrize("model", SOLVED, ids=repr)
for_online = pytest.mark.parametrize("model", ONLINE, ids=lambda model: type(model).__name__)


def samples(model, n=90, seed=0):
    X, codes = clusters(seed, n, n_classes=3)
    if is_outlier_detector(model):
        return X, codes
    return X, codes if is_classifier(model) else X[:, 0] + np.sin(X[:, 1])


def said(model, X):
    name = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, name)(X)


@for_all
def test_weights_of_one_are_none(model):
    X, y = samples(model)
    expected = said(model.fit(X, y), X)
    np.testing.assert_array_equal(said(model.fit(X, y, sample_weight=np.ones(len(X))), X), expected)


@for_all
def test_a_sample_of_weight_zero_is_left_out(model):
    X, y = samples(model)
    counts = np.arange(len(X)) % 4 > 0
    expected = said(model.fit(X[counts], y[counts]), X)
    model.fit(X, y, sample_weight=counts.astype(np.float64))
    np.testing.assert_allclose(said(model, X), expected, rtol=1e-7, atol=1e-9)
    if hasattr(model, "support_"):
        np.testing.assert_array_equal(X[model.support_], model.support_vectors_)
        assert counts[model.support_].all()


@for_solved
def test_a_whole_weight_is_a_number_of_copies(model):
    X, y = samples(model)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    expected = said(model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)), X)
    found = said(model.fit(X, y, sample_weight=weight), X)
    np.testing.assert_allclose(found, expected, atol=2e-4 * np.ptp(expected))


def test_the_slack_of_a_sample_costs_as_in_libsvm():
    """LIBSVM's weights multiply C alike, though its slack is linear: heavy errors are mended."""
    X, y = clusters(1, 120)
    wrong = FrankWolfeClassifier(**EXACT).fit(X, y).predict(X) != y
    weight = np.where(wrong, 200.0, 1.0)
    for model in (FrankWolfeClassifier(**EXACT), SVC(gamma=0.3)):
        model.fit(X, y, sample_weight=weight)
        assert (model.predict(X) == y)[wrong].mean() > 0.9


@for_online
def test_a_stream_takes_weights_call_by_call(model):
    X, y = samples(model)
    weight = np.random.default_rng(0).uniform(0.2, 5.0, len(X))
    whole, parts = (type(model)(**model.get_params()) for _ in range(2))
    classes = {"classes": np.unique(y)} if is_classifier(model) else {}
    whole.partial_fit(X, y, **classes, sample_weight=weight)
    for part in (slice(0, 40), slice(40, None)):
        parts.partial_fit(X[part], y[part], **classes, sample_weight=weight[part])
        classes = {}
    np.testing.assert_allclose(said(parts, X), said(whole, X), rtol=1e-5, atol=1e-7)
    lighter = type(model)(**model.get_params()).partial_fit(X, y)
    assert np.abs(said(lighter, X) - said(whole, X)).max() > 1e-3


@pytest.mark.parametrize(
    "model",
    [FrankWolfeClassifier(**EXACT), SFWClassifier(random_state=0), AssetClassifier(**FAST)],
    ids=lambda model: type(model).__name__,
)
def test_a_class_weight_is_that_of_its_samples(model):
    X, y = samples(model)
    of_classes = {0: 1.0, 1: 4.0, 2: 0.5}
    weight = np.array([of_classes[label] for label in y])
    each = said(model.fit(X, y, sample_weight=weight), X)
    model.set_params(class_weight=of_classes)
    np.testing.assert_allclose(said(model.fit(X, y), X), each, atol=1e-5)


def test_asset_weights_classes_on_arrival():
    X, y = samples(AssetClassifier())
    order = np.argsort(y, kind="stable")
    weighted = AssetClassifier(**FAST, class_weight={1: 4.0, 2: 0.5, 9: 3.0})
    each = AssetClassifier(**FAST)
    for part in np.array_split(order, 5):
        weighted.partial_fit(X[part], y[part])
        each.partial_fit(X[part], y[part], sample_weight=np.array([1.0, 4.0, 0.5])[y[part]])
    np.testing.assert_array_equal(said(weighted, X), said(each, X))
    with pytest.raises(ValueError, match="balanced"):
        AssetClassifier(class_weight="balanced").partial_fit(X, y)


@for_all
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(90), "zero"),
        (np.full(90, -1.0), "[Nn]egative"),
        (np.full(90, np.nan), "NaN"),
        (np.ones(89), "sample"),
        (np.full(90, 1e13), "must be zero, or between"),
    ],
    ids=["zero", "negative", "nan", "short", "large"],
)
def test_other_weights_are_refused(model, weight, message):
    X, y = samples(model)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("model", [StreamClassifier(), StreamRegressor()], ids=repr)
def test_learn_one_takes_a_weight_as_river_gives_it(model):
    X, y = samples(model)
    other = type(model)()
    for x, target, weight in zip(X, y.tolist(), np.linspace(0.5, 2.0, len(X)), strict=True):
        model.learn_one(dict(zip("abcd", x.tolist(), strict=True)), target, weight)
        other.partial_fit(
            [dict(zip("abcd", x.tolist(), strict=True))], [target], sample_weight=[weight]
        )
    rows = [dict(zip("abcd", x.tolist(), strict=True)) for x in X]
    np.testing.assert_array_equal(said(model, rows), said(other, rows))

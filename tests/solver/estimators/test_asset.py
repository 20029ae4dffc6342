"""The estimators on ASSET: scikit-learn's conventions, fit and partial_fit, bad input."""

import pickle
import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.linear_model import SGDClassifier
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from tests.solver.estimators.equivalence import not_equivalent
from tests.solver.streams import clusters, thin_clusters
from wolfstream import AssetClassifier, AssetRegressor, FourierFeatures, NystromFeatures
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict
from wolfstream.solver.kernels.functions import Kernel

LEARNERS = (AssetClassifier, AssetRegressor)
TRANSFORMERS = (NystromFeatures, FourierFeatures)
LINEAR = {"kernel": "linear", "features": "identity"}

for_each = pytest.mark.parametrize("estimator", LEARNERS, ids=lambda cls: cls.__name__)
for_each_map = pytest.mark.parametrize("estimator", TRANSFORMERS, ids=lambda cls: cls.__name__)


def samples(estimator, n=200, seed=0):
    X, codes = clusters(seed, n)
    return X, codes if is_classifier(estimator()) else 100.0 + X[:, 0] + np.sin(X[:, 1])


def made(estimator, **parameters):
    return estimator(**({"dimension": 40, "epochs": 3, "random_state": 0} | parameters))


@parametrize_with_checks(
    [estimator() for estimator in LEARNERS + TRANSFORMERS], expected_failed_checks=not_equivalent
)
def test_scikit_learn_checks_the_defaults(estimator, check):
    check(estimator)


# With weights of 1000 and 1e-4: asset* has no intercept, and 500 steps of ASSET on rows with a
# deviation of 20 are too few for one (after 5,000 all of two classes are as the check wants them).
FAILED = {"check_class_weight_classifiers": "too few steps on rows that are not standardised"}


QUICK_VARIANTS = [
    AssetClassifier("asset*", **LINEAR),
    AssetClassifier(kernel="polynomial", degree=2, average_from=20),
    AssetRegressor(features="fourier", dimension=100),
    NystromFeatures(5, kernel="polynomial"),
]
VARIANTS = [
    *QUICK_VARIANTS,
    *(learner("asset*") for learner in LEARNERS),
    AssetClassifier(features="fourier", dimension=100),
    *(learner(**LINEAR) for learner in LEARNERS),
    AssetRegressor(kernel="polynomial", degree=2, horizon=50),
    NystromFeatures(kernel="linear"),
]


@pytest.mark.parametrize("variant", QUICK_VARIANTS, ids=repr)
def test_scikit_learn_checks_a_variant_of_each(variant):
    check_variant(variant)


@pytest.mark.hard
@pytest.mark.sweep
@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_scikit_learn_checks_variants(variant):
    check_variant(variant)


def check_variant(variant):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # pandas and the array API
        linear = FAILED if getattr(variant, "features", "") == "identity" else {}
        check_estimator(variant, expected_failed_checks=linear | not_equivalent(variant))


@pytest.mark.parametrize(
    "parameters", [{}, {"features": "fourier"}, {"algorithm": "asset*"}], ids=str
)
def test_the_classifier_comes_close_to_libsvm(parameters):
    X, y = clusters(3, 1000, n_classes=3, noise=0.0)
    libsvm = SVC(C=10.0, gamma=0.2).fit(X[:700], y[:700]).score(X[700:], y[700:])
    model = made(AssetClassifier, dimension=200, gamma=0.2, lam=1e-3, epochs=20, **parameters)
    assert libsvm > 0.75
    assert model.fit(X[:700], y[:700]).score(X[700:], y[700:]) > libsvm - 0.05


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_the_regressor_comes_close_to_libsvm_whatever_the_unit(unit):
    X, _ = clusters(4, 900)
    y = unit * (7.0 + X[:, 0] + 2.0 * np.sin(X[:, 1]))
    z = (y - y.mean()) / y.std()
    libsvm = SVR(C=10.0, gamma=0.1).fit(X[:600], z[:600]).score(X[600:], z[600:])
    model = made(AssetRegressor, dimension=200, gamma=0.1, epochs=20).fit(X[:600], y[:600])
    assert libsvm > 0.9
    assert model.score(X[600:], y[600:]) > libsvm - 0.05


def test_sgd_of_scikit_learn_finds_the_same_linear_model():
    """Another method for lambda/2 ||w||^2 + mean hinge: both near the optimum of the problem."""
    X, y = clusters(5, 600, apart=1.0)
    sign = 2.0 * y - 1.0

    def objective(w, b):
        return 0.05 * w @ w + np.maximum(1.0 - sign * (X @ w + b), 0.0).mean()

    sgd = SGDClassifier(alpha=0.1, max_iter=200, tol=None, average=True, random_state=0).fit(X, y)
    best = objective(sgd.coef_[0], sgd.intercept_[0])
    ours = made(AssetClassifier, lam=0.1, epochs=100, **LINEAR).fit(X, y)
    assert objective(ours.coef_, ours.intercept_) == pytest.approx(best, rel=0.01)


@for_each
def test_coefficients_are_those_of_the_decision(estimator):
    X, y = samples(estimator)
    model = made(estimator, **LINEAR).fit(X, y)
    said = model.decision_function(X) if is_classifier(model) else model.predict(X)
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, said, rtol=1e-9, atol=1e-9)
    assert model.dimension_ == X.shape[1]
    assert model.n_steps_ == 3 * len(y)


def test_coefficients_of_several_classes():
    X, y = clusters(6, 200, n_classes=3)
    model = made(AssetClassifier, **LINEAR).fit(X, y)
    np.testing.assert_allclose(
        X @ model.coef_.T + model.intercept_, model.decision_function(X), rtol=1e-9, atol=1e-9
    )


@for_each
@pytest.mark.parametrize("parameters", [{}, {"features": "fourier"}, LINEAR], ids=str)
def test_partial_fit_is_the_stream_of_the_learner(estimator, parameters):
    X, y = samples(estimator)
    task = "classification" if is_classifier(estimator()) else "regression"
    model = made(estimator, gamma=0.2, **parameters)
    more = {"classes": [0, 1]} if is_classifier(model) else {}
    for part in (slice(0, 30), slice(30, 31), slice(31, 200)):
        model.partial_fit(X[part], y[part], **more)
    kernel = Kernel(model.kernel, model.gamma_, 3, 1.0)
    seed = model._learner.parameters["seed"]
    learner = Asset(kernel, task=task, features=model.features, dimension=40, seed=seed)
    learner.absorb(X, y)
    expected = predict(learner.view(), X)[1]
    said = model.decision_function(X) if is_classifier(model) else model.predict(X)
    np.testing.assert_allclose(said, expected, rtol=1e-6, atol=1e-6)


def test_partial_fit_knows_all_classes_from_the_first_call():
    X, y = clusters(7, 60, n_classes=3)
    model = made(AssetClassifier).partial_fit(X[:20], y[:20] % 2, classes=[0, 1, 2])
    assert model.decision_function(X).shape == (60, 3)
    assert set(model.partial_fit(X[20:], y[20:]).predict(X)) == {0, 1, 2}


def test_new_classes_are_met_on_the_way():
    """The model is the one whose classes were all declared beforehand."""
    X, y = clusters(7, 90, n_classes=3)
    met = made(AssetClassifier).partial_fit(X[y > 0], y[y > 0])
    assert met.classes_.tolist() == [1, 2]
    met.partial_fit(X, y)
    assert met.classes_.tolist() == [1, 2, 0]
    declared = made(AssetClassifier).partial_fit(X[y > 0], y[y > 0], classes=[0, 1, 2])
    declared.partial_fit(X, y)
    np.testing.assert_array_equal(met.predict(X), declared.predict(X))
    np.testing.assert_allclose(
        met.decision_function(X), declared.decision_function(X)[:, [1, 2, 0]]
    )


def test_declared_classes_are_all_that_may_come():
    X, y = clusters(7, 60, n_classes=3)
    model = made(AssetClassifier).partial_fit(X[y < 2], y[y < 2], classes=[0, 1])
    with pytest.raises(ValueError, match="y has labels outside classes"):
        model.partial_fit(X, y)


@for_each
@pytest.mark.parametrize("features", ["nystrom", "fourier"])
def test_epochs_that_do_not_fit_into_memory_give_the_same_model(estimator, features, monkeypatch):
    X, y = samples(estimator)
    kept = made(estimator, features=features).fit(X, y)
    monkeypatch.setattr("wolfstream.solver.estimators.asset._KEPT_BYTES", 0)
    anew = made(estimator, features=features).fit(X, y)
    # The last digits of a product depend on the company of rows.
    np.testing.assert_allclose(
        anew.coef_, kept.coef_, rtol=1e-6, atol=1e-6 * np.abs(kept.coef_).max()
    )


@pytest.mark.parametrize("lam", [1e-2, 1e-4])
def test_decisions_on_sparse_rows_are_those_on_dense_ones(lam):
    """However long it learns: no rounding of float32 is magnified by a step at an edge."""
    X, y = thin_clusters(7, 800)
    dense, sparse = (
        AssetClassifier(lam=lam, random_state=0).fit(rows, y) for rows in (X, csr_array(X))
    )
    assert sparse.dimension_ == dense.dimension_
    expected = dense.decision_function(X)
    actual = sparse.decision_function(csr_array(X))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@for_each
@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
@pytest.mark.parametrize("parameters", [{}, LINEAR], ids=str)
def test_sparse_rows_give_the_model_of_dense_ones(estimator, kind, parameters):
    X, codes = thin_clusters(2, 150)
    y = codes if is_classifier(estimator()) else X[:, 0]
    dense, sparse = (made(estimator, **parameters).fit(rows, y) for rows in (X, kind(X)))
    for rows in (X, kind(X)):
        np.testing.assert_allclose(
            sparse.predict(rows), dense.predict(X), rtol=0, atol=1e-9 * np.abs(y).max()
        )


@for_each
def test_in_a_pipeline_and_a_grid_search(estimator):
    X, y = samples(estimator)
    name = estimator.__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), made(estimator)),
        {f"{name}__gamma": ["auto", 1e6], f"{name}__features": ["nystrom", "fourier"]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_[f"{name}__gamma"] == "auto"
    assert search.best_score_ > 0.6


@for_each
def test_clones_pickles_and_seeds(estimator):
    X, y = samples(estimator)
    model = made(estimator).fit(X, y)
    said = model.predict(X)
    copy = clone(model)
    with pytest.raises(NotFittedError):
        copy.predict(X)
    np.testing.assert_array_equal(copy.fit(X, y).coef_, model.coef_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), said)  # noqa: S301
    assert not np.array_equal(made(estimator, random_state=1).fit(X, y).coef_, model.coef_)


@for_each
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": 0.0}, "lam is 0.0; it must be a finite number above zero"),
        ({"lam": np.nan}, "lam is nan"),
        ({"dimension": 0}, "dimension is 0"),
        ({"epochs": 0}, "epochs is 0"),
        ({"average_from": 0}, "average_from is 0"),
        ({"horizon": 1.5}, "horizon is 1.5"),
        ({"algorithm": "pegasos"}, "asset, asset*"),
        ({"features": "rff"}, "nystrom, fourier, identity"),
        ({"kernel": "sigmoid"}, "rbf, polynomial, linear"),
        ({"gamma": "scale"}, "'auto' or a finite number above zero"),
        ({"features": "fourier", "kernel": "linear"}, "use nystrom for linear"),
        (
            {"features": "identity"},
            "identity features exist for the linear kernel only, not for rbf",
        ),
        ({"algorithm": "asset*", "average_from": 3}, "nothing is averaged"),
    ],
    ids=str,
)
def test_parameters_that_are_none(estimator, parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        estimator(**parameters).fit(*samples(estimator))


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf])
def test_an_epsilon_that_is_none(epsilon):
    with pytest.raises(ValueError, match="epsilon is"):
        AssetRegressor(epsilon=epsilon).fit(*samples(AssetRegressor))


@for_each
def test_a_row_too_large_is_named(estimator):
    X, y = samples(estimator)
    model = made(estimator).fit(X, y)
    X[5] = 1e200
    for call in (lambda: model.predict(X), lambda: estimator().fit(X, y)):
        with pytest.raises(ValueError, match=r"row 5 has a norm above"):
            call()


class TestTransformers:
    @for_each_map
    def test_products_are_about_the_kernel(self, estimator):
        X = clusters(8, 150)[0]
        model = estimator(4000, gamma=0.1, random_state=0)
        V = model.fit_transform(X)
        assert V.shape == (150, model.dimension_)
        tolerance = 1e-6 if estimator is NystromFeatures else 0.1
        np.testing.assert_allclose(V @ V.T, rbf_kernel(X, gamma=0.1), rtol=0, atol=tolerance)

    def test_nystrom_takes_other_kernels(self):
        X = clusters(9, 100)[0]
        model = NystromFeatures(100, kernel="polynomial", degree=2, gamma=0.1, random_state=0)
        V = model.fit_transform(X)
        K = polynomial_kernel(X, degree=2, gamma=0.1, coef0=1.0)
        assert model.dimension_ == 15  # all polynomials of degree 2 in 4 variables
        np.testing.assert_allclose(V @ V.T, K, rtol=1e-6, atol=1e-6)

    @for_each_map
    def test_rows_of_either_kind(self, estimator):
        X = thin_clusters(10, 80)[0]
        for rows, others in ((X, csr_matrix(X)), (csr_matrix(X), X)):
            model = estimator(20, random_state=0).fit(rows)
            np.testing.assert_allclose(
                model.transform(others), model.transform(rows), rtol=0, atol=1e-9
            )

    @for_each_map
    def test_names_its_features_and_can_be_cloned(self, estimator):
        X = clusters(11, 50)[0]
        model = estimator(7, random_state=0).fit(X)
        assert len(model.get_feature_names_out()) == model.dimension_ == 7
        np.testing.assert_array_equal(clone(model).fit_transform(X), model.transform(X))

    @for_each_map
    def test_before_a_linear_model(self, estimator):
        X, y = clusters(12, 300, noise=0.0)
        pipeline = make_pipeline(
            estimator(100, random_state=0), AssetClassifier(**LINEAR, random_state=0)
        )
        assert pipeline.fit(X, y).score(X, y) > 0.8

    @for_each_map
    def test_a_dimension_that_is_none(self, estimator):
        with pytest.raises(ValueError, match="dimension is 0"):
            estimator(0).fit(np.eye(3))


def test_a_batch_scales_its_targets_by_all_of_them():
    """Not by the first 128, which may be of another size than the rest."""
    random = np.random.default_rng(3)
    X = np.sort(random.uniform(-3.0, 3.0, (600, 1)), axis=0)
    y = np.where(X[:, 0] < 0.0, 1e-3, 1.0) * np.sin(3.0 * X[:, 0])
    shuffled = random.permutation(600)
    made = AssetRegressor(dimension=100, gamma=2.0, random_state=0)
    assert made.fit(X, y).score(X, y) > 0.95
    assert made.fit(X[shuffled], y[shuffled]).score(X, y) > 0.95


class TestParallelRuns:
    """`n_parallel`: P3's average of runs over the same features."""

    def few_epochs(self, estimator, **parameters):
        return made(estimator, features="nystrom", epochs=1, **parameters)

    @for_each
    def test_their_average_is_that_of_runs_in_other_orders(self, estimator):
        X, y = samples(estimator)
        several = self.few_epochs(estimator, n_parallel=4).fit(X, y)
        alone = self.few_epochs(estimator).fit(X, y)
        assert several.n_steps_ == 4 * alone.n_steps_
        assert several.variation_ > 0.0
        assert not hasattr(alone, "variation_")
        assert not np.allclose(several.coef_, alone.coef_)

    def test_the_average_has_so_much_less_variance(self):
        X, y = samples(AssetClassifier, 300)
        parameters = {"kernel": "linear", "features": "identity", "epochs": 1}

        def models(n_parallel):
            return [
                AssetClassifier(**parameters, n_parallel=n_parallel, random_state=seed).fit(X, y)
                for seed in range(40)
            ]

        def of(fitted):
            return np.array([np.append(model.coef_, model.intercept_) for model in fitted])

        averages = models(8)
        one, eight = (of(fitted).var(axis=0, ddof=1).sum() for fitted in (models(1), averages))
        assert eight == pytest.approx(one / 8.0, rel=0.5)
        # What one fit says of its own runs is what the seeds show.
        mean = of(averages).mean(axis=0)
        said = np.mean([model.variation_ for model in averages])
        assert said == pytest.approx(one / (mean @ mean), rel=0.3)

    @for_each
    def test_a_stream_has_one_order_only(self, estimator):
        X, y = samples(estimator)
        with pytest.raises(ValueError, match="partial_fit takes 1"):
            made(estimator, n_parallel=2).partial_fit(X, y)
        with pytest.raises(ValueError, match="n_parallel is 0"):
            made(estimator, n_parallel=0).fit(X, y)

    @for_each
    def test_an_average_goes_on_learning(self, estimator):
        X, y = samples(estimator)
        model = self.few_epochs(estimator, n_parallel=3).fit(X, y)
        steps = model.n_steps_
        model.set_params(n_parallel=1).partial_fit(X, y)
        assert model.n_steps_ == steps + len(y)

"""The estimators with support vectors: scikit-learn's conventions, rows of both kinds, errors."""

import pickle
import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from tests.solver.estimators.equivalence import not_equivalent
from tests.solver.streams import clusters, thin_clusters
from wolfstream import (
    EnclosingBall,
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    SFWClassifier,
    SFWRegressor,
)
from wolfstream.solver.frank_wolfe.driver import Progress

CLASSIFIERS = (SFWClassifier, FrankWolfeClassifier)
BATCH = (FrankWolfeClassifier, FrankWolfeRegressor, EnclosingBall)
ESTIMATORS = (SFWClassifier, SFWRegressor, *BATCH)
METHODS = ("fw", "mfw", "swap", "partan")

for_each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.__name__)
# Regression in the working set refuses kernels that may be indefinite.
for_each_of_any_kernel = pytest.mark.parametrize(
    "estimator", [SFWClassifier, *BATCH], ids=lambda cls: cls.__name__
)
for_each_batch = pytest.mark.parametrize("estimator", BATCH, ids=lambda cls: cls.__name__)
for_each_classifier = pytest.mark.parametrize(
    "estimator", CLASSIFIERS, ids=lambda cls: cls.__name__
)


def samples(estimator, n=80, seed=0):
    """Rows and what the estimator learns for them."""
    X, codes = clusters(seed, n)
    return X, codes if is_classifier(estimator()) else X[:, 0] + np.sin(X[:, 1])


def made(estimator, **parameters):
    return estimator(random_state=0, **parameters)


def answers(model, X):
    """Everything a fitted model says of rows."""
    names = ("predict", "decision_function", "score_samples")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


def assert_same_answers(model, other, X, X_other=None, rounding=0.0):
    X_other = X if X_other is None else X_other
    for one, two in zip(answers(model, X), answers(other, X_other), strict=True):
        np.testing.assert_allclose(one, two, rtol=rounding, atol=rounding)


# scikit-learn's own checks. Some of them set max_iter so low that no run can converge, and say
# so with ConvergenceWarning; tests of that warning are below.
converged_or_not = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


@converged_or_not
@parametrize_with_checks(
    [estimator() for estimator in ESTIMATORS], expected_failed_checks=not_equivalent
)
def test_scikit_learn_checks_the_defaults(estimator, check):
    check(estimator)


QUICK_VARIANTS = [
    FrankWolfeClassifier("fw"),
    SFWClassifier(kernel="linear"),
    FrankWolfeRegressor("swap", C=100.0),
    EnclosingBall(sampling=59),
]
VARIANTS = [
    *(FrankWolfeClassifier(method) for method in METHODS),
    *(FrankWolfeClassifier(m, sampling=59) for m in ("mfw", "partan")),
    FrankWolfeClassifier(kernel="polynomial", degree=2, trace=True),
    SFWClassifier("sfw"),
    SFWClassifier("msfw", corrective_steps=0),
    SFWClassifier(epochs=3, max_size=64),
    SFWClassifier(kernel="polynomial", degree=2),
    SFWClassifier(kernel="linear"),  # "balanced" refuses partial_fit, which is checked too
    SFWRegressor("sfw", corrective_steps=0),
    SFWRegressor(epochs=3, max_size=64, epsilon=0.0),
    SFWRegressor(kernel="polynomial", degree=2),
    SFWRegressor(kernel="linear"),
    *(FrankWolfeRegressor(method, C=100.0) for method in METHODS),
    FrankWolfeRegressor(sampling=59, C=100.0, tol=0.1),
    FrankWolfeRegressor(kernel="linear", C=100.0),
    *(EnclosingBall(method) for method in METHODS),
    EnclosingBall(sampling=59),
    EnclosingBall(kernel="polynomial", degree=2),
    EnclosingBall(kernel="linear", C=10.0),
]


@converged_or_not
@pytest.mark.parametrize("variant", QUICK_VARIANTS, ids=repr)
def test_scikit_learn_checks_an_algorithm_or_kernel_of_each(variant):
    check_variant(variant)


@pytest.mark.hard
@pytest.mark.sweep
@converged_or_not
@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_scikit_learn_checks_algorithms_and_kernels(variant):
    check_variant(variant)


def check_variant(variant):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # pandas and the array API
        check_estimator(variant, expected_failed_checks=not_equivalent(variant))


@for_each_classifier
def test_in_a_pipeline_and_a_grid_search(estimator):
    X, codes = clusters(1, 120, noise=0.0, apart=3.0)
    labels = np.array(["no", "yes"])[codes]
    name = estimator.__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), made(estimator)),
        {f"{name}__C": [0.1, 10.0], f"{name}__gamma": ["auto", 1e6]},
        cv=3,
    ).fit(X, labels)
    assert search.best_params_[f"{name}__gamma"] == "auto"
    assert search.best_score_ > 0.8
    assert set(search.predict(X)) == {"no", "yes"}
    assert cross_val_score(made(estimator), X, labels, cv=3).min() > 0.7


@for_each
def test_a_clone_has_the_parameters_and_nothing_learned(estimator):
    X, y = samples(estimator)
    model = made(estimator, C=7.0, gamma=0.3).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)
    assert_same_answers(model, copy.fit(X, y), X)


@for_each
def test_a_pickled_model_says_the_same(estimator):
    X, y = samples(estimator)
    model = made(estimator).fit(X, y)
    assert_same_answers(model, pickle.loads(pickle.dumps(model)), X)  # noqa: S301


@for_each
@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
def test_sparse_rows_give_the_model_of_dense_ones(estimator, kind):
    X, codes = thin_clusters(2, 90)
    y = codes if is_classifier(estimator()) else X[:, 0]
    dense, sparse = made(estimator).fit(X, y), made(estimator).fit(kind(X), y)
    assert issparse(sparse.support_vectors_)
    np.testing.assert_array_equal(sparse.support_vectors_.toarray(), X[sparse.support_])
    np.testing.assert_array_equal(dense.support_vectors_, X[dense.support_])
    # rbf's float32 values round differently, and a run may end at another point within tol.
    assert_same_answers(dense, sparse, X, kind(X), rounding=0.03)


@for_each
def test_a_model_predicts_rows_of_the_other_kind(estimator):
    X, codes = thin_clusters(2, 90)
    y = codes if is_classifier(estimator()) else X[:, 0]
    for rows, others in ((X, csr_matrix(X)), (csr_matrix(X), X)):
        model = made(estimator).fit(rows, y)
        assert_same_answers(model, model, rows, others, rounding=1e-12)


@for_each
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "sigmoid"}, "rbf, polynomial, linear"),
        ({"gamma": "scale"}, "'auto' or a finite number above zero"),
        ({"gamma": 0.0}, "gamma is 0.0"),
        ({"gamma": np.inf}, "gamma is inf"),
        ({"degree": 2.5}, "degree is 2.5"),
        ({"coef0": np.nan}, "coef0 is nan"),
        ({"C": 0.0}, "C is 0.0"),
        ({"C": np.nan}, "C is nan"),
        ({"C": "1"}, "C is '1'"),
    ],
    ids=str,
)
def test_parameters_that_are_none(estimator, parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        estimator(**parameters).fit(*samples(estimator))


@for_each_batch
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"algorithm": "newton"}, "fw, mfw, swap, partan, smo"),
        ({"sampling": 0}, "sampling is 0"),
        ({"tol": -1e-4}, "tol is -0.0001"),
        ({"tol": np.nan}, "tol is nan"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"start_size": 0}, "start_size is 0"),
        ({"cache_bytes": 1e9}, "cache_bytes is 1000000000.0"),
        ({"cache_bytes": 100}, "two kernel rows of"),
    ],
    ids=str,
)
def test_parameters_of_the_driver_that_are_none(estimator, parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        estimator(**parameters).fit(*samples(estimator))


@converged_or_not
@for_each_batch
def test_sampling_needs_no_cache(estimator):
    X, y = samples(estimator)
    estimator(sampling=20, cache_bytes=1, max_iter=20).fit(X, y)


@for_each
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_must_be_finite(estimator, value):
    X, y = samples(estimator)
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        estimator().fit(X, y)


@for_each
def test_shapes_that_do_not_fit(estimator):
    X, y = samples(estimator)
    with pytest.raises(ValueError, match="0 sample"):
        estimator().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="expecting 4 features"):
        estimator().fit(X, y).predict(X[:, :3])


@for_each
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_a_row_too_large_is_named_with_its_cure(estimator, kind):
    X, y = samples(estimator)
    model = made(estimator).fit(kind(X), y)
    X[5] = 1e200
    with pytest.raises(ValueError, match=r"row 5 has a norm above 1e\+50.*scale the features$"):
        estimator().fit(kind(X), y)
    with pytest.raises(ValueError, match="row 5"):
        model.predict(kind(X))
    with pytest.raises(ValueError, match="or choose a smaller gamma or degree"):
        estimator(kernel="polynomial", gamma=1.0).fit(kind(X), y)


@for_each
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("scale", [1e-60, 1e-150, 1e-300])
def test_rows_too_small_are_refused_with_their_cure(estimator, kind, scale):
    X, y = samples(estimator)
    with pytest.raises(ValueError, match=r"products of values below 1e-50.*scale the features$"):
        estimator().fit(kind(scale * X), y)
    with pytest.raises(ValueError, match="scale the features"):
        estimator(kernel="linear").fit(kind(scale * X), y)
    estimator().fit(kind(0.0 * X), y)


@for_each
def test_the_scale_of_the_rows_does_not_matter_with_gamma_auto(estimator):
    X, y = samples(estimator)
    model, large = made(estimator).fit(X, y), made(estimator).fit(2.0**100 * X, y)
    for one, other in zip(answers(model, X), answers(large, 2.0**100 * X), strict=True):
        np.testing.assert_allclose(one, other, atol=0.03)


@for_each
def test_kernel_values_that_are_rounded_away_are_told_of(estimator):
    X, y = samples(estimator)
    parameters = {"max_iter": 100} if estimator in BATCH else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made(estimator, kernel="linear", **parameters).fit(X + 1e8, y)
    assert any("are rounded by about" in str(warning.message) for warning in caught)


@for_each_of_any_kernel
@converged_or_not
def test_an_indefinite_kernel_is_told_of(estimator):
    X, y = samples(estimator)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = made(estimator, kernel="polynomial", coef0=-1.0, gamma=1.0).fit(X, y)
    assert np.isnan(model.gap_).all()
    assert all(np.isfinite(said).all() for said in answers(model, X))


@for_each_of_any_kernel
def test_a_large_ridge_makes_an_indefinite_kernel_definite(estimator):
    """It is A that must be, not K alone; no warning then. (For the ball 1/(4C) on the diagonal.)"""
    X, y = samples(estimator)
    parameters = {"tol": 1.0} if estimator in BATCH else {}
    made(estimator, kernel="polynomial", coef0=-0.1, degree=2, C=1e-4, **parameters).fit(X, y)


@pytest.mark.sweep
@for_each
@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
def test_rows_that_are_all_equal(estimator, value, kernel):
    X, y = samples(estimator)
    parameters = {"tol": 1e-3} if estimator in BATCH else {}
    model = made(estimator, kernel=kernel, **parameters).fit(np.full_like(X, value), y)
    assert all(np.isfinite(said).all() for said in answers(model, X))
    assert len(set(model.predict(np.full_like(X, value)))) == 1


@for_each
def test_a_fit_that_fails_leaves_no_model(estimator):
    X, y = samples(estimator)
    model = made(estimator).fit(X, y)
    with pytest.raises(ValueError, match="row 0"):
        model.fit(1e200 * X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@for_each_batch
def test_progress_is_told_and_can_end_the_fit(estimator):
    X, y = samples(estimator)
    told = []
    model = made(estimator, progress=told.append).fit(X, y)
    assert all(isinstance(progress, Progress) for progress in told)
    assert told[-1].iteration == model.n_iter_
    assert {(progress.problem, progress.problems) for progress in told} == {(0, 1)}

    def stop(progress):
        raise KeyboardInterrupt(progress.iteration)

    with pytest.raises(KeyboardInterrupt):
        model.set_params(progress=stop).fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@for_each_batch
def test_max_iter_ends_a_run_with_a_warning(estimator):
    X, y = samples(estimator)
    with pytest.warns(ConvergenceWarning, match="max_iter=3 .* above tol") as caught:
        model = made(estimator, max_iter=3, tol=1e-9).fit(X, y)
    assert model.n_iter_ == 3
    assert model.gap_ > 1e-9
    assert caught[0].filename == __file__


@for_each_batch
def test_a_trace_is_kept_where_asked_for(estimator):
    X, y = samples(estimator)
    model = made(estimator, trace=True).fit(X, y)
    trace = model.trace_
    assert {len(column) for column in trace} == {model.n_iter_ + 1}
    assert np.diff(trace.seconds).min() >= 0.0
    assert trace.seconds[-1] > 0.0
    assert trace.objective[-1] == pytest.approx(model.objective_, abs=1e-7)
    assert not hasattr(model.set_params(trace=False).fit(X, y), "trace_")


@for_each
def test_the_seed_decides(estimator):
    X, y = samples(estimator)
    for seed in (0, np.random.RandomState(0)):
        same = estimator(random_state=seed).fit(X, y)
        again = estimator(random_state=0).fit(X, y)
        assert_same_answers(same, again, X)
    generated = [estimator(random_state=np.random.default_rng(1)).fit(X, y) for _ in range(2)]
    assert_same_answers(*generated, X)
    estimator(random_state=None).fit(X, y)


@for_each_classifier
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(80), "only one class"),
        (np.linspace(0.0, 1.0, 80), "Unknown label type: continuous"),
    ],
)
def test_labels_that_are_none(estimator, y, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(clusters(0, 80)[0], y)


@for_each_classifier
@pytest.mark.parametrize("C", [np.inf, 1e400])
def test_the_classifiers_need_a_finite_cost(estimator, C):
    with pytest.raises(ValueError, match="C is inf; it must be a finite number"):
        estimator(C=C).fit(*samples(estimator))


@for_each_classifier
@pytest.mark.parametrize("weights", [{0: 0.0}, {0: -1.0}, {0: np.inf}])
def test_class_weights_must_be_positive(estimator, weights):
    with pytest.raises(ValueError, match="class weights must be finite numbers above zero"):
        estimator(class_weight=weights).fit(*samples(estimator))

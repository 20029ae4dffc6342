"""SemiparametricSVR: scikit-learn's conventions, the forms of a basis, what its attributes mean."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import check_estimator

from tests.solver.estimators.equivalence import not_equivalent
from tests.solver.semiparametric_problems import HAT_BASES, mexican_hat
from wolfstream import SemiparametricSVR
from wolfstream.solver.semiparametric.basis import Basis

HAT = {"C": 1.0, "epsilon": 0.05, "gamma": 0.25}

VARIANTS = [
    SemiparametricSVR(),
    SemiparametricSVR(solver="mpd", trace=True),
    SemiparametricSVR(decomposition=False),
    SemiparametricSVR(solver="mpd", decomposition=False),
    SemiparametricSVR(working_set_size=20),
    SemiparametricSVR(()),
    SemiparametricSVR(kernel="linear", basis=("constant", {"type": "trend"})),
    SemiparametricSVR(kernel="polynomial", degree=2),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_scikit_learn_checks(variant):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # pandas and the array API
        check_estimator(variant, expected_failed_checks=not_equivalent(variant))


def test_the_parts_of_the_mexican_hat_are_found():
    X, y = mexican_hat(1000)
    model = SemiparametricSVR(HAT_BASES, **HAT).fit(X, y)
    np.testing.assert_allclose(model.beta_, 1.0, atol=0.05)
    assert model.kkt_violation_ <= model.tol
    X_new, _ = mexican_hat(300, seed=1)
    u = 2.0 * np.pi * (X_new[:, 0] - 5.0)
    np.testing.assert_allclose(model.predict(X_new), np.sin(X_new[:, 0]) + np.sin(u) / u, atol=0.1)


def test_predictions_are_the_sum_over_support_vectors_and_basis():
    X, y = mexican_hat(200)
    model = SemiparametricSVR(HAT_BASES, **HAT).fit(X, y)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.dual_coef_.shape == (1, len(model.support_))
    assert np.all(np.abs(model.dual_coef_) <= 1.0 / 200)
    K = np.exp(-0.25 * (X - model.support_vectors_.T) ** 2)
    u = 2.0 * np.pi * (X - 5.0)
    by_hand = K @ model.dual_coef_[0] + np.hstack([np.sin(X), np.sin(u) / u]) @ model.beta_
    np.testing.assert_allclose(model.predict(X), by_hand, atol=1e-9)


def test_with_a_constant_it_is_the_usual_regression():
    X, y = mexican_hat(150)
    model = SemiparametricSVR(C=300.0, epsilon=0.1, gamma=2.0, tol=1e-6).fit(X, y)
    unit = y.std()
    peer = SVR(C=2.0, epsilon=0.1, gamma=2.0, tol=1e-8).fit(X, y / unit)
    np.testing.assert_allclose(model.predict(X), unit * peer.predict(X), atol=1e-4)
    assert model.beta_[0] == pytest.approx(unit * peer.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_the_unit_of_the_targets_does_not_matter(scale):
    X, y = mexican_hat(150)
    model, other = (SemiparametricSVR(HAT_BASES, tol=1e-6, trace=True, **HAT) for _ in range(2))
    model.fit(X, y)
    other.fit(X, scale * y)
    np.testing.assert_allclose(other.predict(X) / scale, model.predict(X), atol=1e-4)
    np.testing.assert_allclose(other.beta_ / scale, model.beta_, atol=1e-4)
    np.testing.assert_allclose(other.trace_.beta[-1], other.beta_, rtol=1e-9)


@pytest.mark.parametrize(
    "basis",
    [
        [Basis("sin", 0), Basis("constant")],
        [{"type": "sin", "feature": 0}, {"type": "constant"}],
        ["sin", "constant"],
        (lambda X: np.sin(X[:, 0]), "constant"),
    ],
)
def test_a_basis_may_be_given_in_any_form(basis):
    X, y = mexican_hat(80)
    first = SemiparametricSVR(["sin", "constant"], **HAT).fit(X, y)
    model = SemiparametricSVR(basis, **HAT).fit(X, y)
    np.testing.assert_allclose(model.predict(X), first.predict(X), atol=1e-3)


def test_a_pickled_model_says_the_same():
    X, y = mexican_hat(80)
    model = SemiparametricSVR(HAT_BASES, **HAT).fit(X, y)
    other = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_a_clone_has_the_parameters_and_nothing_learned():
    X, y = mexican_hat(80)
    model = SemiparametricSVR(HAT_BASES, **HAT).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)


@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
def test_sparse_rows_give_the_model_of_dense_ones(kind):
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 5)) * (random.random((90, 5)) < 0.4)
    y = np.sin(X[:, 0]) + 2.0 * X[:, 3]
    made = SemiparametricSVR(["constant", Basis("trend", 3)], gamma=0.5, tol=1e-6)
    dense, sparse = clone(made).fit(X, y), clone(made).fit(kind(X), y)
    assert issparse(sparse.support_vectors_)
    np.testing.assert_allclose(sparse.beta_, dense.beta_, atol=1e-4)
    np.testing.assert_allclose(sparse.predict(kind(X)), dense.predict(X), atol=1e-4)
    np.testing.assert_allclose(sparse.predict(X), sparse.predict(kind(X)), atol=1e-12)
    with pytest.raises(ValueError, match="is a function and takes dense rows only"):
        SemiparametricSVR([np.sin]).fit(kind(X), y)


def test_a_run_that_max_iter_ends_warns():
    X, y = mexican_hat(100)
    model = SemiparametricSVR(HAT_BASES, max_iter=3, **HAT)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 steps .* above tol=0.001"):
        model.fit(X, y)
    assert model.kkt_violation_ > 1e-3
    assert model.n_iter_ == 3


def test_an_indefinite_kernel_warns():
    X, y = mexican_hat(40)
    model = SemiparametricSVR(kernel="polynomial", degree=3, gamma=0.01, coef0=-1.0, C=0.1)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model.fit(X, y)


def test_a_trace_is_kept_when_asked():
    X, y = mexican_hat(100)
    model = SemiparametricSVR(HAT_BASES, trace=True, **HAT).fit(X, y)
    assert model.trace_.iteration[-1] == model.n_iter_
    assert not hasattr(SemiparametricSVR(HAT_BASES, **HAT).fit(X, y), "trace_")


def test_in_a_grid_search():
    X, y = mexican_hat(150)
    search = GridSearchCV(
        SemiparametricSVR(HAT_BASES, **HAT),
        {"C": [1.0, 10.0], "basis": [HAT_BASES, ("constant",)]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_["basis"] == HAT_BASES
    assert search.best_score_ > 0.85


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"solver": "smo"}, "solver is 'smo'; it must be one of pdsg, mpd"),
        ({"epsilon": -0.1}, "epsilon is -0.1; it must be a number, not below zero"),
        ({"tol": np.nan}, "tol is nan"),
        ({"C": 0.0}, "C is 0.0"),
        ({"C": np.inf}, "C is inf; it must be a finite number above zero"),
        ({"working_set_size": 0}, "working_set_size is 0; it must be an integer, at least 1"),
        ({"fresh": 0}, "fresh is 0"),
        ({"max_iter": 1.5}, "max_iter is 1.5"),
        ({"cache_bytes": 100}, "cache_bytes is 100, two kernel rows of 40 samples take 640"),
        ({"kernel": "sigmoid"}, "kernel is 'sigmoid'"),
        ({"basis": [3]}, "3 is no basis function: give a type's name, a mapping"),
        ({"basis": ["tan"]}, "type is 'tan'"),
        ({"basis": [Basis("sin", period=-1.0)]}, "period is -1.0"),
        ({"basis": ["constant", "constant"]}, r"basis 1 \(constant\) is a combination of basis 0"),
        ({"basis": [lambda X: np.log(X[:, 0] - X[0, 0])]}, r"basis 0 \(<lambda>\) is"),
        ({"basis": [Basis("trend", 1)]}, "the rows have 1 features only"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_parameters_are_refused(parameters, words):
    X, y = mexican_hat(40)
    with pytest.raises(ValueError, match=words):
        SemiparametricSVR(**parameters).fit(X, y)


def test_targets_that_would_overflow_are_refused():
    X, y = mexican_hat(40)
    with pytest.raises(ValueError, match=r"y has values up to .*: scale y"):
        SemiparametricSVR().fit(X, 1e200 * y)


def test_as_many_bases_as_rows_are_refused():
    X, y = mexican_hat(2)
    with pytest.raises(ValueError, match="2 basis functions need more than 2 rows"):
        SemiparametricSVR(["constant", "trend"]).fit(X, y)


def test_a_fit_that_fails_leaves_no_model():
    X, y = mexican_hat(40)
    model = SemiparametricSVR().fit(X, y)
    with pytest.raises(ValueError, match="combination"):
        model.set_params(basis=["constant", "constant"]).fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)

"""SFWRegressor: accuracy, the tube, the order of samples, what its attributes mean."""

import numpy as np
import pytest
from sklearn.svm import SVR

from wolfstream import SFWRegressor
from wolfstream.solver.working_set.regression import RegressionSet


def waves(n=400, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 2))
    return X, 100.0 + 20.0 * (np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2)


def made(**parameters):
    return SFWRegressor(**({"gamma": 0.5, "random_state": 0} | parameters))


@pytest.fixture(scope="module")
def fitted():
    return made(C=100.0, epochs=3).fit(*waves())


def test_it_is_as_accurate_as_libsvm(fitted):
    X, y = waves(300, seed=1)
    train, truth = waves()
    unit = truth.std()
    libsvm = SVR(gamma=0.5, C=10.0, epsilon=0.1).fit(train, (truth - truth.mean()) / unit)
    theirs = np.abs(truth.mean() + unit * libsvm.predict(X) - y).mean()
    assert np.abs(fitted.predict(X) - y).mean() < 1.1 * theirs
    assert fitted.score(X, y) > 0.95


def test_dual_coef_and_intercept_are_the_model_in_units_of_y(fitted):
    X = waves(20, seed=2)[0]
    distance = ((X[:, None] - fitted.support_vectors_[None]) ** 2).sum(axis=2)
    expected = np.exp(-0.5 * distance) @ fitted.dual_coef_[0] + fitted.intercept_
    np.testing.assert_allclose(fitted.predict(X), expected, rtol=1e-9)


def test_support_names_the_rows_of_the_training_set(fitted):
    X, _ = waves()
    np.testing.assert_array_equal(X[fitted.support_], fitted.support_vectors_)


def test_more_passes_bring_the_gap_down():
    X, y = waves()
    gaps = [made(C=100.0, epochs=n).fit(X, y).gap_ for n in (1, 8)]
    assert 0.0 <= gaps[1] < 0.5 * gaps[0]


def test_a_wider_tube_has_fewer_support_vectors():
    X, y = waves()
    sizes = [len(made(epsilon=e).fit(X, y).support_vectors_) for e in (0.0, 0.1, 0.5)]
    assert sizes[0] > sizes[1] > sizes[2] > 0


def test_partial_fit_learns_in_order_what_a_stream_would():
    X, y = waves()
    model = made(max_size=100)
    for start in range(0, 400, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
    learner = RegressionSet(model.learner.kernel, max_size=100)
    for start in range(0, 400, 50):
        learner.absorb(X[start : start + 50], y[start : start + 50])
    assert model.gap_ == learner.view().gap[0]
    assert len(model.support_vectors_) <= 100
    assert not hasattr(model, "support_")


def test_a_kernel_that_may_be_indefinite_is_refused():
    with pytest.raises(ValueError, match="coef0 >= 0"):
        SFWRegressor(kernel="polynomial", coef0=-1.0).fit(*waves(20))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": -0.1}, "epsilon is -0.1"),
        ({"algorithm": "swap"}, "must be one of sfw, msfw"),
        ({"corrective_steps": -1}, "corrective_steps is -1"),
        ({"max_size": 1}, "max_size is 1"),
        ({"gram_bytes_max": 1}, "gram_bytes_max is 1"),
        ({"epochs": 0}, "epochs is 0"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        SFWRegressor(**parameters).fit(*waves(20))

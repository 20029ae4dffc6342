"""FrankWolfeClassifier: what its attributes mean, class weights, warm starts, several classes."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import recall_score
from sklearn.model_selection import cross_val_score

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.problems import gap_at
from tests.solver.streams import clusters
from wolfstream import FrankWolfeClassifier, SFWClassifier
from wolfstream.solver.kernels.functions import Kernel

# Kernel values of rbf are float32.
ROUNDING = 2e-6


def kernel_of(model):
    return Kernel(model.kernel, model.gamma_, model.degree, model.coef0)


def matrix_of(model, X, y):
    """A of two classes, in float64, from the definition."""
    sign = np.where(y == model.classes_[1], 1.0, -1.0)
    K = kernel_matrix(kernel_of(model), X, X)
    return np.outer(sign, sign) * (K + 1.0) + np.eye(len(y)) / (2.0 * model.C)


def weights_of(model, n):
    alpha = np.zeros(n)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha


@pytest.mark.sweep
@pytest.mark.parametrize("algorithm", ["fw", "mfw", "swap", "partan"])
@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
@pytest.mark.parametrize("sampling", [None, 30])
def test_gap_and_objective_are_those_of_all_training_rows(algorithm, kernel, sampling):
    X, y = clusters(0, 70)
    model = FrankWolfeClassifier(
        algorithm, kernel=kernel, degree=2, sampling=sampling, tol=1e-2, random_state=0
    ).fit(X, y)
    A, alpha = matrix_of(model, X, y), weights_of(model, 70)
    assert alpha.sum() == pytest.approx(1.0, abs=1e-9)
    assert model.objective_ == pytest.approx(-alpha @ A @ alpha, abs=ROUNDING)
    assert model.gap_ == pytest.approx(gap_at(A, alpha), abs=ROUNDING)
    assert sampling is not None or model.gap_ <= 1e-2


def test_support_vectors_are_training_rows():
    X, codes = clusters(1, 90)
    labels = np.array(["no", "yes"])[codes]
    model = FrankWolfeClassifier(random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(model.support_labels_, labels[model.support_])
    np.testing.assert_array_equal(np.sign(model.dual_coef_[0]), 2.0 * codes[model.support_] - 1.0)
    np.testing.assert_array_equal(model.n_support_, np.bincount(codes[model.support_]))
    assert np.all(np.diff(model.support_) > 0)
    assert list(model.classes_) == ["no", "yes"]


def test_decisions_are_the_sum_over_support_vectors():
    X, y = clusters(2, 90)
    model = FrankWolfeClassifier(random_state=0).fit(X[:60], y[:60])
    K = kernel_matrix(kernel_of(model), X, model.support_vectors_)
    by_hand = K @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), by_hand, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(by_hand > 0).astype(int)])
    assert model.intercept_[0] == pytest.approx(model.dual_coef_.sum(), abs=1e-12)


def test_several_classes_are_machines_of_two_each():
    X, y = clusters(3, 150, n_classes=4, noise=0.0)
    model = FrankWolfeClassifier(gamma=0.2, tol=1e-8, random_state=0).fit(X, y)
    assert model.pairs_ == [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]
    assert model.dual_coef_.shape == (6, len(model.support_))
    assert model.n_iter_.shape == model.gap_.shape == model.objective_.shape == (6,)
    full = np.zeros((6, 150))
    full[:, model.support_] = model.dual_coef_
    for i, pair in enumerate(model.pairs_):
        of_pair = np.flatnonzero(np.isin(y, pair))
        two = FrankWolfeClassifier(gamma=0.2, tol=1e-8, random_state=0).fit(X[of_pair], y[of_pair])
        coefficients = np.zeros(150)
        coefficients[of_pair[two.support_]] = two.dual_coef_[0]
        np.testing.assert_allclose(full[i], coefficients, atol=1e-3)
        assert model.objective_[i] == pytest.approx(two.objective_, abs=1e-6)
        np.testing.assert_allclose(
            kernel_matrix(kernel_of(model), X, X) @ full[i] + model.intercept_[i],
            two.decision_function(X),
            atol=1e-3,
        )
    scores = model.decision_function(X)
    assert scores.shape == (150, 4)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


def test_several_classes_tell_their_progress_and_traces():
    X, y = clusters(3, 60, n_classes=3)
    told = []
    model = FrankWolfeClassifier(trace=True, progress=told.append, random_state=0).fit(X, y)
    assert {(now.problem, now.problems) for now in told} == {(0, 3), (1, 3), (2, 3)}
    assert [len(trace.gap) - 1 for trace in model.trace_] == list(model.n_iter_)


def test_an_integer_class_weight_repeats_samples():
    """Of w copies, each with ridge 1/(2C), the optimum weighs one sample with ridge 1/(2Cw)."""
    X, y = clusters(4, 60)
    weighted = FrankWolfeClassifier(
        C=2.0, gamma=0.3, class_weight={0: 1, 1: 2}, tol=1e-8, random_state=0
    ).fit(X, y)
    repeat = np.repeat(np.arange(60), 1 + y)
    repeated = FrankWolfeClassifier(C=2.0, gamma=0.3, tol=1e-8, random_state=0)
    repeated.fit(X[repeat], y[repeat])
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-6)
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-3
    )


def test_balanced_weights_find_more_of_a_rare_class():
    random = np.random.default_rng(0)
    y = (np.arange(400) < 12).astype(int)  # 3%
    X = random.standard_normal((400, 2)) + 1.2 * y[:, None]
    recall = {
        weight: recall_score(
            y, FrankWolfeClassifier(class_weight=weight, random_state=0).fit(X, y).predict(X)
        )
        for weight in (None, "balanced")
    }
    assert recall["balanced"] > recall[None] + 0.2


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("first", [SFWClassifier, FrankWolfeClassifier])
def test_a_warm_start_needs_fewer_iterations(first, n_classes):
    X, y = clusters(5, 200, n_classes=n_classes)
    init = first(gamma=0.3, random_state=0).fit(X, y)
    cold = FrankWolfeClassifier(gamma=0.3, tol=1e-5, random_state=0).fit(X, y)
    warm = FrankWolfeClassifier(gamma=0.3, tol=1e-5, init=init, random_state=0).fit(X, y)
    assert np.sum(warm.n_iter_) < np.sum(cold.n_iter_)
    np.testing.assert_allclose(warm.objective_, cold.objective_, atol=2e-5)


def test_a_warm_start_from_its_own_solution_is_there_at_once():
    X, y = clusters(5, 100)
    done = FrankWolfeClassifier(gamma=0.3, random_state=0).fit(X, y)
    again = FrankWolfeClassifier(gamma=0.3, init=done, random_state=0).fit(X[::-1], y[::-1])
    assert again.n_iter_ == 0
    assert again.objective_ == pytest.approx(done.objective_, abs=1e-7)


def test_a_warm_start_that_does_not_fit():
    X, y = clusters(5, 60)
    for init, message in [
        (SFWClassifier().fit(X, np.array(["a", "b"])[y]), "init knows the classes"),
        (SFWClassifier().fit(X[:, :3], y), "init knows 3 features, X has 4"),
        (SFWClassifier(), "not fitted"),
    ]:
        with pytest.raises(ValueError, match=message):
            FrankWolfeClassifier(init=init).fit(X, y)


def test_a_warm_start_survives_cloning_where_frozen():
    X, y = clusters(5, 90)
    init = FrozenEstimator(SFWClassifier(random_state=0).fit(X, y))
    assert len(cross_val_score(FrankWolfeClassifier(init=init), X, y, cv=3)) == 3


def test_samples_unknown_to_the_warm_start_leave_the_random_ball():
    X, y = clusters(5, 60)
    init = SFWClassifier(random_state=0).fit(X, y)
    one = FrankWolfeClassifier(gamma=0.3, init=init, random_state=0).fit(X + 0.1, y)
    other = FrankWolfeClassifier(gamma=0.3, random_state=0).fit(X + 0.1, y)
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


def extremes():
    X, y = clusters(6, 60)
    yield "small C", X, y, {"C": 1e-6}
    yield "large C", X, y, {"C": 1e6}
    yield "small gamma", X, y, {"gamma": 1e-12}
    yield "large gamma", X, y, {"gamma": 1e12}
    yield "both labels on each row", np.repeat(X[:30], 2, axis=0), np.tile([0, 1], 30), {}
    yield "constant features", np.hstack([X, np.ones((60, 2))]), y, {}
    yield "all rows equal", np.ones_like(X), y, {}
    yield "far away", 1e30 * X, y, {"gamma": 1.0}
    yield "two samples", X[:2], np.array([0, 1]), {}


@pytest.mark.parametrize(
    ("X", "y", "parameters"), [pytest.param(*case, id=name) for name, *case in extremes()]
)
def test_certificates_of_extreme_problems_are_true(X, y, parameters):
    model = FrankWolfeClassifier(random_state=0, **parameters).fit(X, y)
    A = matrix_of(model, X, y)
    gap = gap_at(A, weights_of(model, len(y)))
    assert model.gap_ <= 0.1 * abs(model.objective_)
    assert gap == pytest.approx(model.gap_, abs=ROUNDING)
    assert np.isfinite(model.decision_function(X)).all()


def test_indefinite_objective_without_gap():
    X, y = clusters(6, 60)
    with pytest.warns(UserWarning, match="nothing bounds"):
        model = FrankWolfeClassifier(
            kernel="polynomial", degree=3, coef0=-1.0, gamma=1.0, random_state=0
        ).fit(X, y)
    A, alpha = matrix_of(model, X, y), weights_of(model, 60)
    assert np.isnan(model.gap_)
    assert model.objective_ == pytest.approx(-alpha @ A @ alpha, rel=1e-9)


def test_few_kernel_rows_in_the_cache_are_enough():
    X, y = clusters(7, 100)
    two = FrankWolfeClassifier(cache_bytes=2 * 100 * 4, random_state=0).fit(X, y)
    all_of_them = FrankWolfeClassifier(random_state=0).fit(X, y)
    assert two.objective_ == pytest.approx(all_of_them.objective_, abs=2e-4)
    with pytest.raises(ValueError, match=r"cache_bytes is 799, two kernel rows .* take 800"):
        FrankWolfeClassifier(cache_bytes=799).fit(X, y)


@pytest.mark.parametrize("C", [1.0, 10.0])
@pytest.mark.parametrize("algorithm", ["fw", "mfw", "swap", "partan"])
def test_the_default_tolerance_follows_the_objective(algorithm, C):
    """An absolute one stops before it learns: the objective falls with C and with samples."""
    X, y = clusters(9, 400, apart=2.0, noise=0.0)
    model = FrankWolfeClassifier(algorithm, C=C, random_state=0).fit(X, y)
    assert model.gap_ <= 0.1 * -model.objective_
    assert -model.objective_ < 0.05
    exact = FrankWolfeClassifier(algorithm, C=C, tol=0.0, absolute_tol=1e-3, random_state=0)
    assert exact.fit(X, y).gap_ <= 1e-3
    assert model.n_iter_ > exact.n_iter_

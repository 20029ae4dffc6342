"""SFWClassifier: what its attributes mean, passes, streams in pieces, the bound on the set."""

import pickle
import re
import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import recall_score

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.problems import gap_at
from tests.solver.streams import clusters
from wolfstream import SFWClassifier
from wolfstream.solver.kernels.functions import Kernel

ROUNDING = 2e-6


def made(**parameters):
    return SFWClassifier(**({"gamma": 0.3, "random_state": 0} | parameters))


def matrix_of(model, X, y):
    sign = np.where(y == model.classes_[1], 1.0, -1.0)
    K = kernel_matrix(Kernel(model.kernel, model.gamma_, model.degree, model.coef0), X, X)
    return np.outer(sign, sign) * (K + 1.0) + np.eye(len(y)) / (2.0 * model.C)


def weights_of(model, n):
    alpha = np.zeros(n)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha


def assert_same_model(one, other, rounding=0.0):
    for name in ("support_vectors_", "dual_coef_", "intercept_", "objective_", "gap_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rounding, rounding)


@pytest.mark.parametrize("algorithm", ["sfw", "msfw"])
def test_support_vectors_are_training_rows(algorithm):
    X, codes = clusters(0, 150)
    labels = np.array(["no", "yes"])[codes]
    model = made(algorithm=algorithm).fit(X, labels)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(model.support_labels_, labels[model.support_])
    np.testing.assert_array_equal(np.sign(model.dual_coef_[0]), 2.0 * codes[model.support_] - 1.0)
    np.testing.assert_array_equal(model.n_support_, np.bincount(codes[model.support_]))
    assert np.abs(model.dual_coef_).sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
def test_decisions_and_objective_are_those_of_the_support_vectors(kernel):
    X, y = clusters(1, 120)
    model = made(kernel=kernel, degree=2).fit(X[:90], y[:90])
    K = kernel_matrix(Kernel(kernel, 0.3, 2, 1.0), X, model.support_vectors_)
    by_hand = K @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), by_hand, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(by_hand > 0).astype(int)])
    A, alpha = matrix_of(model, X[:90], y[:90]), weights_of(model, 90)
    assert model.objective_[0] == pytest.approx(-alpha @ A @ alpha, rel=1e-6, abs=ROUNDING)
    # The gap of the working set is at most that of all rows, and at least the support's own.
    S = model.support_
    own = gap_at(A[np.ix_(S, S)], alpha[S])
    assert own - ROUNDING <= model.gap_[0] <= gap_at(A, alpha) * (1.0 + 1e-9) + ROUNDING


def test_several_classes_are_machines_of_two_each():
    X, y = clusters(2, 200, n_classes=3)
    model = made().partial_fit(X, y, classes=[0, 1, 2])
    assert model.pairs_ == [(0, 1), (0, 2), (1, 2)]
    K = kernel_matrix(Kernel("rbf", 0.3), X, model.support_vectors_)
    for i, pair in enumerate(model.pairs_):
        of_pair = np.isin(y, pair)
        two = made().partial_fit(X[of_pair], y[of_pair], classes=pair)
        used = model.dual_coef_[i] != 0.0
        np.testing.assert_array_equal(model.support_vectors_[used], two.support_vectors_)
        np.testing.assert_allclose(model.dual_coef_[i][used], two.dual_coef_[0], atol=1e-5)
        decision = K @ model.dual_coef_[i] + model.intercept_[i]
        np.testing.assert_allclose(decision, two.decision_function(X), atol=1e-5)
        assert model.objective_[i] == pytest.approx(two.objective_[0], abs=1e-6)
    scores = model.decision_function(X)
    assert scores.shape == (200, 3)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


def test_more_passes_lower_the_gap_over_all_samples():
    X, y = clusters(3, 300)
    gaps = []
    for epochs in (1, 2, 4, 16):
        model = made(epochs=epochs).fit(X, y)
        gaps.append(gap_at(matrix_of(model, X, y), weights_of(model, 300)))
    assert gaps[2] < gaps[1] < gaps[0]
    # What is left is the rounding of float32 kernel values, up to one, in max g and in 2 q.
    assert gaps[3] < 4.0 * np.finfo(np.float32).eps


def test_a_stream_in_pieces_is_the_stream():
    X, y = clusters(4, 150)
    whole = made().partial_fit(X, y, classes=[0, 1])
    pieces = made().partial_fit(X[:1], y[:1], classes=[0, 1])
    for start in range(1, 150, 37):
        pieces.partial_fit(X[start : start + 37], y[start : start + 37])
    assert_same_model(whole, pieces, rounding=1e-5)


def test_attributes_are_computed_when_they_are_read():
    """With many classes they cost many times what a sample costs."""
    X, y = clusters(4, 150, n_classes=3)
    model = made().partial_fit(X, y)
    computed = {"dual_coef_", "support_vectors_", "objective_", "_view"}
    assert not computed & set(vars(model))
    decision = model.decision_function(X)
    assert computed & set(vars(model)) == {"_view"}
    by_hand = made().partial_fit(X, y)
    assert by_hand.dual_coef_.shape == (3, len(by_hand.support_vectors_))
    np.testing.assert_array_equal(by_hand.decision_function(X), decision)
    assert not hasattr(model, "support_")


def test_what_is_read_between_two_calls_is_not_kept():
    X, y = clusters(4, 150)
    model = made().partial_fit(X[:100], y[:100])
    before = model.objective_, model.decision_function(X)
    model.partial_fit(X[100:], y[100:])
    assert model.objective_[0] != before[0][0]
    assert np.any(model.decision_function(X) != before[1])


def test_partial_fit_goes_on_after_fit():
    X, y = clusters(5, 200)
    model = made().fit(X[:100], y[:100])
    before = model.objective_[0]
    model.partial_fit(X[100:], y[100:])
    assert not hasattr(model, "support_")
    assert model.objective_[0] != before
    assert model.fit(X[:100], y[:100]).objective_[0] == before


def test_new_classes_are_met_on_the_way():
    X, y = clusters(2, 200, n_classes=3, noise=0.0)
    y = np.array(["b", "c", "a"])[y]
    first = np.isin(y, ["b", "c"])
    met = made().partial_fit(X[first], y[first])
    assert met.classes_.tolist() == ["b", "c"]
    met.partial_fit(X[~first], y[~first]).partial_fit(X, y)
    assert met.classes_.tolist() == ["b", "c", "a"]
    assert met.pairs_ == [(0, 1), (0, 2), (1, 2)]
    assert met.n_support_.tolist() == [np.sum(met.support_labels_ == label) for label in "bca"]
    assert np.mean(met.predict(X) == y) > 0.85


def test_a_stream_may_begin_with_one_class():
    X, y = clusters(4, 150)
    by_class = np.argsort(y, kind="stable")
    met = made().partial_fit(X[y == 0], y[y == 0]).partial_fit(X[y == 1], y[y == 1])
    declared = made().partial_fit(X[by_class], y[by_class], classes=[0, 1])
    assert_same_model(met, declared, rounding=1e-5)


def test_new_classes_are_met_after_fit():
    X, y = clusters(2, 200, n_classes=3)
    known = y < 2
    model = made().fit(X[known], y[known]).partial_fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert set(model.predict(X)) == {0, 1, 2}


def test_a_class_that_comes_later_has_its_weight():
    X, y = clusters(2, 200, n_classes=3)
    weight = {0: 1.0, 2: 50.0}
    met = made(class_weight=weight).partial_fit(X[y < 2], y[y < 2]).partial_fit(X, y)
    assert met._learner.ridges.class_ridge(2) == pytest.approx(
        met._learner.ridges.class_ridge(0) / 50.0
    )
    assert met._learner.ridges.class_ridge(1) == met._learner.ridges.class_ridge(0)


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_partial_fit_goes_on_after_unpickling(kind):
    X, y = clusters(5, 200)
    model = made().partial_fit(kind(X[:100]), y[:100], classes=[0, 1])
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    model.partial_fit(kind(X[100:]), y[100:])
    copy.partial_fit(kind(X[100:]), y[100:])
    np.testing.assert_array_equal(model.dual_coef_, copy.dual_coef_)
    np.testing.assert_array_equal(model.decision_function(X), copy.decision_function(X))


def test_a_stream_may_go_on_with_rows_of_the_other_kind():
    X, y = clusters(5, 200)
    one, other = (made().partial_fit(X[:100], y[:100], classes=[0, 1]) for _ in range(2))
    one.partial_fit(X[100:], y[100:])
    other.partial_fit(csr_matrix(X[100:]), y[100:])
    assert_same_model(one, other)


def test_the_working_set_stays_within_its_bound():
    X, y = clusters(6, 300, n_classes=3)
    for max_size in (2, 40):
        model = made(max_size=max_size, epochs=2).fit(X, y)
        assert len(model.support_) <= max_size
        np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert np.mean(model.predict(X) == y) > 0.6


def test_the_seed_shuffles_fit_and_not_partial_fit():
    X, y = clusters(7, 100)
    fits = [made(random_state=seed).fit(X, y).objective_[0] for seed in (0, 0, 1)]
    assert fits[0] == fits[1] != fits[2]
    streams = [made(random_state=seed).partial_fit(X, y, [0, 1]).objective_[0] for seed in (0, 1)]
    assert streams[0] == streams[1]


def test_gamma_auto_is_that_of_the_first_rows():
    X, y = clusters(7, 100)
    distances = np.sum((X[:40, None] - X[None, :40]) ** 2, axis=2)
    model = made(gamma="auto").partial_fit(X[:40], y[:40], [0, 1]).partial_fit(X[40:], y[40:])
    assert model.gamma_ == pytest.approx(40 * 39 / distances.sum(), rel=1e-9)


def test_class_weights_are_costs_of_the_classes():
    X, y = clusters(8, 150)
    model = made(class_weight={0: 1.0, 1: 3.0}, epochs=5).fit(X, y)
    A, alpha = matrix_of(model, X, y), weights_of(model, 150)
    A += np.diag(np.where(y == 1, 0.5 / 3.0 - 0.5, 0.0))
    assert model.objective_[0] == pytest.approx(-alpha @ A @ alpha, abs=ROUNDING)


def test_balanced_weights_find_more_of_a_rare_class():
    random = np.random.default_rng(0)
    y = (np.arange(400) < 12).astype(int)  # 3%
    X = random.standard_normal((400, 2)) + 1.2 * y[:, None]
    plain, balanced = (
        recall_score(y, made(class_weight=weight, epochs=10).fit(X, y).predict(X))
        for weight in (None, "balanced")
    )
    assert balanced > plain + 0.2


def test_a_pair_without_samples_has_no_gap_yet():
    X, y = clusters(9, 60)
    model = made().partial_fit(X, y, classes=[0, 1, 2, 3])
    assert np.isnan(model.gap_[5])  # the pair (2, 3)
    assert np.isnan(model.objective_[5])
    assert np.isfinite(model.gap_[:5]).all()
    assert set(model.predict(X)) <= {0, 1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, y: m.partial_fit(X, y).partial_fit(X, y.astype(str)), "not strings"),
        (lambda m, X, y: m.partial_fit(X, y).partial_fit(X, y, [0, 2]), "not the same"),
        (lambda m, X, y: m.partial_fit(X, y).partial_fit(X, y + 0.5), "Unknown label type"),
        (lambda m, X, y: m.partial_fit(X, 0 * y).predict(X), "needs two classes"),
        (lambda m, X, y: m.partial_fit(X, y, [0]), "only one class"),
        (lambda m, X, y: m.partial_fit(X, y + 1, [0, 1]), "labels outside classes"),
        (lambda m, X, y: m.partial_fit(X, y, [0, 1]).partial_fit(X, y, [0, 2]), "not the same"),
        (lambda m, X, y: m.partial_fit(X, y, [0, 1]).partial_fit(X, y + 0.5), "outside classes"),
        (lambda m, X, y: m.partial_fit(X, y, [0, 1]).partial_fit(1e200 * X, y), "row 0"),
        (lambda m, X, y: m.partial_fit(X, y, [0, 1]).partial_fit(X[:, :2], y), "2 features"),
        (
            lambda m, X, y: m.set_params(class_weight="balanced").partial_fit(X, y, [0, 1]),
            "needs all samples: use fit",
        ),
        (lambda m, X, y: m.set_params(algorithm="fw").fit(X, y), "sfw, msfw"),
        (lambda m, X, y: m.set_params(corrective_steps=-1).fit(X, y), "corrective_steps is -1"),
        (lambda m, X, y: m.set_params(max_size=1).fit(X, y), "max_size is 1"),
        (lambda m, X, y: m.set_params(epochs=0).fit(X, y), "epochs is 0"),
    ],
)
def test_what_cannot_be_learned(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(made(), *clusters(9, 60))


def test_a_refused_first_call_leaves_nothing_behind():
    X, y = clusters(9, 60)
    model = made(gamma="auto")
    with pytest.raises(ValueError, match="outside classes"):
        model.partial_fit(5.0 * X, y + 1, classes=[0, 1])
    model.partial_fit(X, y, classes=[0, 1])
    assert_same_model(model, made(gamma="auto").partial_fit(X, y, classes=[0, 1]))


def test_a_refused_call_learns_nothing():
    X, y = clusters(9, 60)
    model, other = (made().partial_fit(X, y, [0, 1]) for _ in range(2))
    with pytest.raises(ValueError, match="outside classes"):
        model.partial_fit(X, np.where(np.arange(60) == 59, 7, y))
    assert_same_model(model.partial_fit(X, y), other.partial_fit(X, y))


def test_a_sample_makes_fewer_calls_than_there_are_pairs():
    """Attributes of the pairs of classes are computed when they are read, and not at each call."""
    classes, rng = 60, np.random.default_rng(0)
    centres, y = 3.0 * rng.normal(size=(classes, 10)), np.tile(np.arange(classes), 12)
    X = centres[y] + rng.normal(size=(len(y), 10))
    model = SFWClassifier(max_size=500).partial_fit(X[:600], y[:600])
    model.partial_fit(X[600:601], y[600:601])
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        model.partial_fit(X[601:602], y[601:602])
    finally:
        sys.setprofile(None)
    assert calls < classes * (classes - 1) / 2
    assert len(model.dual_coef_) == classes * (classes - 1) // 2

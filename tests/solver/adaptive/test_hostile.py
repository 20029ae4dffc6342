"""Whatever finite rows come, in whatever order: states and answers stay finite."""

import numpy as np
import pytest

from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor, predict_values
from wolfstream.solver.adaptive.view import predict_classes
from wolfstream.solver.prepare.scale import COMPRESSED, no_moments, standardise

N = 1500


def hostile_streams():
    random = np.random.default_rng(0)
    X = random.normal(size=(N, 4))
    scales = 10.0 ** random.uniform(-300, 300, (N, 4))
    jumps = X * np.where(np.arange(N) < N // 2, 1e-9, 1e9)[:, None]
    spikes = np.where(random.random((N, 4)) < 0.01, 1e300, X)
    return {
        "ordinary": X,
        "all scales": X * scales,
        "jumps": jumps,
        "spikes": spikes,
        "constant": np.full((N, 4), 7.0),
        "zeros": np.zeros((N, 4)),
        "tiny": X * 1e-300,
        "largest": np.where(X > 0, 1.7e308, -1.7e308),
        "one column": X[:, :1],
        "missing": np.where(random.random((N, 4)) < 0.5, np.nan, X),
        "all missing": np.full((N, 4), np.nan),
        "repeated": np.repeat(X[: N // 500], 500, axis=0),
        "offset": X * 1e-3 + 1e9,
    }


STREAMS = hostile_streams()
LABELS = {
    "random": np.random.default_rng(1).permutation(np.arange(N) % 3),
    "equal": np.zeros(N, np.int64),
    "sorted": np.arange(N) // 500,
    "rare": (np.arange(N) == N - 1).astype(np.int64),
}


def assert_finite(state):
    for name, array in state.items():
        if name != "losses_recent":
            assert np.isfinite(array).all(), name


@pytest.mark.sweep
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("rows", STREAMS)
def test_a_classifier_stays_finite(rows, labels):
    X, y = STREAMS[rows], np.asarray(LABELS[labels], np.int64)
    y = first_seen(y)
    moments, learner = no_moments(X.shape[1]), AdaptiveClassifier(X.shape[1])
    answers = learner.absorb(standardise(moments, X, COMPRESSED), y)
    assert_finite(learner.state() | {"mean": moments.mean, "square": moments.square})
    np.testing.assert_allclose(answers.probability[1:].sum(axis=1), 1.0)
    predicted = predict_classes(learner.view(), standardise(moments, X, COMPRESSED)[-50:])
    assert np.isfinite(predicted.probability).all()


TARGETS = {
    "ordinary": np.random.default_rng(4).normal(size=N),
    "constant": np.full(N, 3.0),
    "spikes": np.where(np.arange(N) % 97 == 5, 1e300, 1.0),
    "jumps": np.random.default_rng(5).normal(size=N) * 10.0 ** (np.arange(N) // 100 % 3 * 100),
    "shrinks": np.random.default_rng(5).normal(size=N) * np.where(np.arange(N) < 99, 1e200, 1e-9),
    "late": np.where(np.arange(N) < 1000, 0.0, np.arange(N) * 1e10),
    "alternating": np.where(np.arange(N) % 2, 1.7e308, -1.7e308),
}


@pytest.mark.sweep
@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("rows", ["ordinary", "all scales", "constant", "missing"])
def test_a_regressor_stays_finite(rows, targets):
    X, y = STREAMS[rows], TARGETS[targets]
    moments, learner = no_moments(X.shape[1]), AdaptiveRegressor(X.shape[1], temporal=True)
    values = learner.absorb(standardise(moments, X, COMPRESSED), y)
    assert_finite(learner.state())
    assert np.isfinite(values[1:]).all()
    assert np.isfinite(
        predict_values(learner.view(), standardise(moments, X, COMPRESSED)[-50:]).prediction
    ).all()


def first_seen(codes):
    number = {}
    return np.array([number.setdefault(code, len(number)) for code in codes.tolist()], np.int64)


def test_rows_that_nobody_prepared_do_no_harm():
    X = np.random.default_rng(2).normal(size=(N, 3)) * [1e200, 1.0, 1e-200]
    learner = AdaptiveClassifier(3)
    learner.absorb(X, first_seen(X[:, 1] > 0))
    assert_finite(learner.state())


def test_an_external_expert_may_have_scores_of_any_size():
    random = np.random.default_rng(3)
    X, y = random.normal(size=(N, 2)), first_seen(random.integers(0, 3, N))
    external = random.normal(size=(N, 2, 3)) * 10.0 ** random.uniform(-300, 300, (N, 2, 1))
    external[::7, 0, 1] = np.inf
    learner = AdaptiveClassifier(2, external_experts=("a", "b"))
    answers = learner.absorb(X, y, external)
    assert_finite(learner.state())
    assert np.isfinite(answers.probability).all()

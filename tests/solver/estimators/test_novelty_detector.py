"""NoveltyDetector: scikit-learn's conventions, a stream's order, its threshold."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.solver.estimators.equivalence import not_equivalent
from tests.solver.streams import clusters
from wolfstream import EnclosingBall, NoveltyDetector


@parametrize_with_checks(
    [NoveltyDetector(), NoveltyDetector("sfw", contamination=0.2, max_size=None)],
    expected_failed_checks=not_equivalent,
)
def test_scikit_learn_checks_it(estimator, check):
    check(estimator)


def samples(n=600, seed=0):
    """Rows of three clusters in space, the last one for the samples that are new."""
    X, y = clusters(seed, n, n_classes=3, noise=0.0, apart=6.0)
    return X[y < 2], X[y == 2]


def test_a_class_that_was_left_out_is_new():
    X, new = samples()
    known, held = X[:300], X[300:]
    model = NoveltyDetector(gamma=0.2).fit(known)
    scores = model.score_samples(np.concatenate([held, new]))
    truth = np.repeat([1, 0], [len(held), len(new)])
    online = roc_auc_score(truth, scores)
    batch = EnclosingBall(C=1.0, gamma=0.2, random_state=0).fit(known)
    offline = roc_auc_score(truth, batch.score_samples(np.concatenate([held, new])))
    assert online > 0.9
    assert online > offline - 0.02


def test_contamination_is_of_recent_unlearned_samples():
    X, _ = samples(3000)
    model = NoveltyDetector(contamination=0.2).partial_fit(X)
    recent = model.novelty_[-1000:]
    assert np.mean(-recent < model.offset_) == pytest.approx(0.2, abs=0.005)
    inside = NoveltyDetector(contamination="auto").fit(X)
    assert inside.offset_ == 0.0
    np.testing.assert_array_equal(inside.predict(X) == 1, inside.score_samples(X) >= 0.0)


def test_calls_of_other_lengths_give_the_same_ball():
    X, new = samples()
    whole, parts = NoveltyDetector(gamma=0.2).partial_fit(X), NoveltyDetector(gamma=0.2)
    for part in np.array_split(X, 7):
        parts.partial_fit(part)
    np.testing.assert_allclose(parts.score_samples(new), whole.score_samples(new), atol=1e-6)
    assert parts.offset_ == pytest.approx(whole.offset_, abs=1e-6)
    assert len(parts.support_vectors_) == len(whole.support_vectors_)


def test_weights_pull_the_ball():
    X, new = samples()
    both = np.concatenate([X, new])
    light, heavy = (
        NoveltyDetector(gamma=0.2, C=0.05).fit(
            both, sample_weight=np.repeat([1.0, weight], [len(X), len(new)])
        )
        for weight in (0.01, 100.0)
    )
    assert heavy.score_samples(new).mean() > light.score_samples(new).mean() + 0.01


def test_sparse_rows_and_pickles_say_the_same():
    X, new = samples()
    X, new = np.where(np.abs(X) > 1.0, X, 0.0), np.where(np.abs(new) > 1.0, new, 0.0)
    dense, thin = NoveltyDetector().fit(X), NoveltyDetector().fit(csr_matrix(X))
    np.testing.assert_allclose(thin.score_samples(new), dense.score_samples(new), atol=1e-5)
    again = pickle.loads(pickle.dumps(dense))  # noqa: S301
    np.testing.assert_array_equal(again.score_samples(new), dense.score_samples(new))
    np.testing.assert_array_equal(again.partial_fit(new).novelty_, dense.partial_fit(new).novelty_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"contamination": 0.0}, "contamination"),
        ({"algorithm": "fw"}, "algorithm"),
        ({"max_size": 1}, "max_size"),
        ({"C": 0.0}, "C is"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        NoveltyDetector(**parameters).fit(samples()[0])

"""Classifiers that learned parts of a stream side by side become one."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tests.solver.streams import clusters
from wolfstream import StreamClassifier, load, merge, save


def samples():
    X, codes = clusters(19, 900, n_features=3, n_classes=3, noise=0.0, apart=4.0)
    return X, np.array(["low", "middle", "high"])[codes]


def test_merge_maps_labels_of_other_orders():
    X, y = samples()
    low, high = np.flatnonzero(y != "high"), np.flatnonzero(y != "low")
    first = StreamClassifier().partial_fit(X[low], y[low])
    second = first.sibling()
    second.partial_fit(X[high[::-1]], y[high[::-1]])
    merged = merge([first, second])
    assert merged.classes_.tolist() == ["high", "low", "middle"]
    one = StreamClassifier().partial_fit(X, y)
    assert merged.score(X, y) >= one.score(X, y) - 0.02
    np.testing.assert_allclose(merged.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("head", ["working_set", "asset"])
def test_a_merged_model_is_saved_as_any_other(head, tmp_path):
    X, y = samples()
    first = StreamClassifier(head=head).partial_fit(X[:300], y[:300])
    second = first.sibling().partial_fit(X[300:], y[300:])
    merged = merge([first, second])
    save(merged, tmp_path / "model")
    found = load(tmp_path / "model")
    np.testing.assert_array_equal(found.predict_proba(X), merged.predict_proba(X))


def test_a_sibling_has_learned_nothing():
    X, y = samples()
    first = StreamClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="no sample"):
        first.sibling().predict(X)
    with pytest.raises(NotFittedError):
        StreamClassifier().sibling()
    with pytest.raises(ValueError, match="no model to merge"):
        merge([])

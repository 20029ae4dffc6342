"""Data frames as rows of the default model in process: names, texts and missing values."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

from wolfstream import StreamClassifier, StreamRegressor

CITIES = ["Oslo", "Rome", "Lima"]


class Series:
    def __init__(self, values):
        self._values = values

    def to_numpy(self):
        return self._values


class Frame:
    """What pandas' and polars' data frames have in common, as far as an estimator looks."""

    def __init__(self, columns, rows):
        self.columns, self._rows = columns, rows

    def to_numpy(self):
        return self._rows if isinstance(self._rows, np.ndarray) else np.array(self._rows, object)

    def __getitem__(self, name):
        return Series(self.to_numpy()[:, self.columns.index(name)])

    def __len__(self):
        return len(self._rows)

    def rows(self, start, stop):
        return Frame(self.columns, self._rows[start:stop])

    def reordered(self, columns):
        order = [self.columns.index(name) for name in columns]
        return Frame(columns, [[row[j] for j in order] for row in self._rows])


class Missing:
    """As pandas' own."""


Missing.__name__ = "NAType"


def rooms(n, seed=0):
    random = np.random.default_rng(seed)
    city = [CITIES[k] for k in random.integers(3, size=n)]
    warmth, is_open = random.normal(20.0, 3.0, n), random.random(n) < 0.5
    y = np.where((warmth > 20.0) != (np.array(city) == "Oslo"), "hot", "cold")
    rows = [list(row) for row in zip(warmth.tolist(), city, is_open.tolist(), strict=True)]
    return Frame(["warmth", "city", "open"], rows), y


def fitted(n=300, **parameters):
    X, y = rooms(n)
    return StreamClassifier(head="asset", **parameters).fit(X, y)


def test_categories_and_numbers_are_learned_together():
    X, y = rooms(800)
    model = StreamClassifier(head="asset").fit(X.rows(0, 600), y[:600])
    assert np.mean(model.predict(X.rows(600, 800)) == y[600:]) > 0.9
    assert model.feature_names_in_.tolist() == ["warmth", "city", "open"]
    assert model.n_features_in_ == 3


def test_columns_in_another_order_are_put_right():
    model, (X, _) = fitted(), rooms(50, seed=1)
    turned = X.reordered(["open", "warmth", "city"])
    np.testing.assert_array_equal(model.predict_proba(turned), model.predict_proba(X))
    again, (more, y) = clone(model), rooms(300)
    again.partial_fit(more, y)
    other = clone(model).partial_fit(more.rows(0, 1), y[:1])
    other.partial_fit(more.rows(1, 300).reordered(["city", "open", "warmth"]), y[1:])
    np.testing.assert_allclose(other.predict_proba(X), again.predict_proba(X), atol=1e-6)


def test_an_unknown_name_is_refused_with_the_close_one():
    model, (X, y) = fitted(), rooms(5, seed=1)
    X.columns[0] = "warmt"
    for refused in (lambda: model.predict(X), lambda: model.partial_fit(X, y)):
        with pytest.raises(ValueError, match=r"row 0 of X: 'warmt' .* did you mean 'warmth'"):
            refused()


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_what_is_missing_and_an_absent_column_are_the_same(missing):
    model = fitted(missing=missing)
    absent = model.predict_proba(Frame(["city", "open"], [["Rome", True]]))
    for value in (None, np.nan, Missing()):
        told = model.predict_proba(Frame(["warmth", "city", "open"], [[value, "Rome", True]]))
        np.testing.assert_array_equal(told, absent)


def test_what_cannot_be_learned_teaches_nothing():
    model, (X, y) = fitted(), rooms(20, seed=1)
    before = model.predict_proba(X)
    wrong = [[np.inf, "Oslo", True], [10**400, "Oslo", True]]
    for row in wrong:
        good = [1.0, "Oslo", True]
        with pytest.raises(ValueError, match=r"infinity|beyond float64"):
            model.partial_fit(Frame(X.columns, [good, row]), ["hot", "cold"])
    with pytest.raises(ValueError, match="same name"):
        model.partial_fit(Frame(["city", "city"], [["Oslo", "Rome"]]), ["hot"])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.partial_fit(X, y[:5])
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_targets_are_learned_from_tables():
    X, _ = rooms(600)
    values = X.to_numpy()
    y = values[:, 0].astype(float) + 10.0 * (values[:, 1] == "Oslo")
    model = StreamRegressor().fit(X.rows(0, 500), y[:500])
    said = model.predict(X.rows(500, 600).reordered(["city", "open", "warmth"]))
    assert np.abs(said - y[500:]).mean() < 1.0


def test_a_frame_of_numbers_has_the_bits_of_an_array():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = X[:, 0] > X[:, 1]
    by_name = StreamClassifier(head="asset").partial_fit(Frame(["a", "b"], X.tolist()), y)
    by_place = StreamClassifier(head="asset").partial_fit(X, y)
    turned = Frame(["b", "a"], X[:, ::-1].tolist())
    np.testing.assert_array_equal(by_name.predict_proba(turned), by_place.predict_proba(X))


def test_columns_without_names_are_taken_by_their_places():
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = StreamClassifier(head="asset").fit(Frame([0, 1], X), X[:, 0] > 0.0)
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(X), model.predict(Frame([0, 1], X)))
    words = Frame([0, 1], [["a", 1.0], ["b", 2.0]] * 10)
    assert StreamClassifier(head="asset").fit(words, [0, 1] * 10).score(words, [0, 1] * 10) == 1.0


def test_a_model_of_sparse_rows_has_no_names():
    X = csr_matrix(np.eye(4))
    model = StreamClassifier(head="asset").fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="sparse rows without names"):
        model.predict([{"a": 1.0}])


@pytest.mark.parametrize("learned", [40, 200])
def test_a_pickled_model_goes_on_bit_for_bit(learned):
    X, y = rooms(300)
    model = StreamClassifier(head="asset").partial_fit(X.rows(0, learned), y[:learned])
    other = pickle.loads(pickle.dumps(model))  # noqa: S301
    for each in (model, other):
        rows = [dict(zip(X.columns, row, strict=True)) for row in X.rows(learned, 300).to_numpy()]
        rows[0]["new" if learned == 40 else "open"] = 1.0
        each.partial_fit(rows, y[learned:])
    assert model.n_features_in_ == other.n_features_in_ == (4 if learned == 40 else 3)
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))

"""River's form of the default model in process: dicts, one sample at a time."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from wolfstream import StreamClassifier, StreamRegressor


def pairs(n, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 3)) * [1e-3, 1.0, 1e3]
    y = np.where(X[:, 1] > 0.0, "up", "down").tolist()
    return [dict(zip("abc", row, strict=True)) for row in X.tolist()], y


def taught(model, n=60):
    for x, y in zip(*pairs(n), strict=True):
        model.learn_one(x, y)
    return model


def test_named_row_in_first_order():
    model, other = taught(StreamClassifier()), StreamClassifier()
    rows, y = pairs(60)
    for x, label in zip(rows, y, strict=True):
        other.partial_fit([list(x.values())], [label])
    turned = dict(reversed(rows[0].items()))
    X = [list(rows[0].values())]
    assert model.predict_proba_one(turned) == dict(
        zip(other.classes_.tolist(), other.predict_proba(X)[0].tolist(), strict=True)
    )
    assert model.predict_one(turned) == other.predict(X)[0]


def test_it_is_tested_then_trained():
    model, rows, y = StreamClassifier(), *pairs(300)
    said = []
    for x, label in zip(rows, y, strict=True):
        said.append(model.predict_one(x))
        model.learn_one(x, label)
    assert said[0] is None
    assert np.mean([a == b for a, b in zip(said[100:], y[100:], strict=True)]) > 0.85


def test_before_the_first_sample_there_is_nothing_to_say():
    assert StreamClassifier().predict_proba_one({"a": 1.0}) == {}
    assert StreamRegressor().predict_one({"a": 1.0}) == 0.0


def test_numbers_come_back_as_floats():
    model = StreamRegressor()
    for k in range(100):
        model.learn_one({"x": k % 10, "even": k % 2 == 0}, 3.0 * (k % 10))
    said = model.predict_one({"x": 4, "even": True})
    assert type(said) is float
    assert said == pytest.approx(12.0, abs=3.0)


@pytest.mark.parametrize("x", [{"a": 0.1, "c": 2.0}, {"a": 0.1, "b": None, "c": 2.0}])
def test_what_is_absent_is_missing(x):
    model = taught(StreamClassifier())
    assert model.predict_proba_one(x) == model.predict_proba_one({**x, "b": np.nan})
    assert model.predict_proba_one(x) != model.predict_proba_one({**x, "b": 0.0})


def test_what_no_row_can_have_teaches_nothing():
    model = taught(StreamClassifier(), 140)
    before = model.predict_proba_one({"a": 0.0})
    with pytest.raises(ValueError, match=r"'aa' is no name .* did you mean 'a'"):
        model.learn_one({"a": 0.0, "aa": 1.0}, "up")
    with pytest.raises(ValueError, match="infinity"):
        model.learn_one({"a": np.inf}, "up")
    with pytest.raises(TypeError, match="neither a number nor a text"):
        model.learn_one({"a": []}, "up")
    assert model.predict_proba_one({"a": 0.0}) == before


def test_rows_without_names_are_predicted_by_another_method():
    model = StreamClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="are arrays of numbers"):
        model.predict_one({"a": 0.0})
    with pytest.raises(ValueError, match="are arrays of numbers"):
        model.learn_one({"a": 0.0}, 1)


def test_words_booleans_and_none_are_learned():
    random, cities = np.random.default_rng(0), ["Oslo", "Rome", "Lima"]
    model, right = StreamClassifier(head="asset"), []
    for k in range(400):
        x = {"city": cities[random.integers(3)], "open": bool(k % 2), "warmth": random.normal()}
        y = (x["city"] == "Oslo") == x["open"]
        x |= {"warmth": None} if k % 5 == 0 else {}
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    assert np.mean(right[200:]) > 0.95


def test_names_that_are_no_texts_are_those_of_a_table():
    rows, y = pairs(140)
    by_name, by_number = taught(StreamClassifier(), 140), StreamClassifier()
    for x, label in zip(rows, y, strict=True):
        by_number.learn_one(dict(enumerate(x.values())), label)
    x = {1: 0.5, 0: 1e-3}
    assert by_number.predict_proba_one(x) == by_name.predict_proba_one({"a": 1e-3, "b": 0.5})
    with pytest.raises(ValueError, match="no name that the model knows"):
        by_number.learn_one({3: 1.0}, "up")


def test_words_that_are_counted_are_sparse_rows():
    texts = [{"sun": 1, "sand": 2}, {"rain": 1, "fog": 1}, {"sun": 2, "sea": 1}, {"fog": 3}] * 30
    model = StreamClassifier(head="asset")
    for x, y in zip(texts, ["dry", "wet"] * 60, strict=True):
        model.learn_one(x, y)
    assert model.n_features_in_ == 5
    assert model.predict_one({"sand": 1, "sun": 1, "never met": 1}) == "dry"


def test_river_is_told_where_it_is_loaded(monkeypatch):
    registered = []
    kinds = {
        kind: SimpleNamespace(register=registered.append) for kind in ("Classifier", "Regressor")
    }
    monkeypatch.setitem(sys.modules, "river.base", SimpleNamespace(**kinds))
    StreamClassifier()
    StreamRegressor()
    assert registered == [StreamClassifier, StreamRegressor]


def test_river_evaluates_them():
    pytest.importorskip("river")
    from river import evaluate, metrics

    rows, y = pairs(200)
    score = evaluate.progressive_val_score(
        zip(rows, [label == "up" for label in y], strict=True),
        StreamClassifier(),
        metrics.LogLoss(),
    )
    assert score.get() < np.log(2.0)
    values = [1e3 * x["b"] for x in rows]
    error = evaluate.progressive_val_score(
        zip(rows, values, strict=True), StreamRegressor(), metrics.MAE()
    )
    assert error.get() < np.abs(values).mean()

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


def test_a_row_is_one_of_an_array_in_the_order_of_the_first_names():
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
    model = taught(StreamClassifier())
    before = model.predict_proba_one({"a": 0.0})
    with pytest.raises(ValueError, match="'d' is not one of the first row's"):
        model.learn_one({"a": 0.0, "d": 1.0}, "up")
    with pytest.raises(TypeError, match=r"feature 'a' is 'Oslo'.*OneHotEncoder"):
        model.learn_one({"a": "Oslo"}, "up")
    assert model.predict_proba_one({"a": 0.0}) == before


def test_rows_without_names_are_predicted_by_another_method():
    model = StreamClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="have no names"):
        model.predict_one({"a": 0.0})
    with pytest.raises(ValueError, match="have no names"):
        model.learn_one({"a": 0.0}, 1)


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

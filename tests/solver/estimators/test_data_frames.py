"""Data frames of pandas and polars as rows of the default model in process."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

from wolfstream import StreamClassifier, StreamRegressor

frame_of_either = pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.DataFrame])
NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)


def rooms(n, seed=0):
    """Columns of numbers, texts and booleans, some missing, and which rooms are hot."""
    random = np.random.default_rng(seed)
    city = random.choice(["Oslo", "Rome", "Lima"], n).tolist()
    warmth, is_open = random.normal(20.0, 3.0, n), random.random(n) < 0.5
    y = np.where((warmth > 20.0) != (np.array(city) == "Oslo"), "hot", "cold")
    some = [
        None if lost else value for value, lost in zip(warmth, random.random(n) < 0.02, strict=True)
    ]
    return {"warmth": some, "city": city, "open": is_open.tolist()}, y


@frame_of_either
def test_categories_booleans_and_missing_values_are_learned(frame_of):
    columns, y = rooms(800)
    X = frame_of(columns)
    model = StreamClassifier(head="asset").fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > 0.9
    assert model.feature_names_in_.tolist() == ["warmth", "city", "open"]


@frame_of_either
def test_columns_in_another_order_are_put_right(frame_of):
    columns, y = rooms(300)
    X = frame_of(columns)
    model = StreamClassifier(head="asset").fit(X, y)
    turned = X[["open", "warmth", "city"]]
    np.testing.assert_array_equal(model.predict_proba(turned), model.predict_proba(X))
    with pytest.raises(ValueError, match="did you mean 'warmth'"):
        model.predict(frame_of({"warmt": columns["warmth"], "city": columns["city"]}))


def test_types_of_either_have_the_same_bits():
    columns, y = rooms(300)
    of_pandas, of_polars = pd.DataFrame(columns), pl.DataFrame(columns)
    frames = [
        of_pandas,
        of_pandas.convert_dtypes(),
        of_pandas.astype({"city": "category", "open": "Int8"}),
        of_polars,
        of_polars.with_columns(pl.col("city").cast(pl.Categorical), pl.col("open").cast(pl.Int8)),
    ]
    said = [StreamClassifier(head="asset").fit(X, y).predict_proba(X) for X in frames]
    for other in said[1:]:
        np.testing.assert_array_equal(other, said[0])


@frame_of_either
def test_targets_are_learned_from_frames(frame_of):
    columns, _ = rooms(600)
    y = np.nan_to_num(np.array(columns["warmth"], float), nan=20.0)
    y += 10.0 * (np.array(columns["city"]) == "Oslo")
    X = frame_of(columns)
    model = StreamRegressor().fit(X[:500], y[:500])
    assert np.median(np.abs(model.predict(X[500:]) - y[500:])) < 1.0


def evenings(n, seed=0):
    """Moments of a year, and whether they are in an evening."""
    minutes = np.random.default_rng(seed).integers(0, 365 * 24 * 60, n).tolist()
    at = [NOON + timedelta(minutes=value) for value in minutes]
    return at, np.array([moment.hour >= 17 for moment in at])


@frame_of_either
def test_timestamps_are_learned_by_their_hours(frame_of):
    at, y = evenings(900)
    X = frame_of({"at": at})
    model = StreamClassifier(head="asset", timestamps=["at"]).fit(X[:700], y[:700])
    assert model.score(X[700:], y[700:]) > 0.95


def test_timestamps_of_all_types_are_the_same():
    at, y = evenings(200)
    naive = [moment.replace(tzinfo=None) for moment in at]
    frames = [
        pd.DataFrame({"at": at, "one": 1.0}),
        pd.DataFrame({"at": pd.to_datetime(naive)}).assign(one=1.0),
        pd.DataFrame({"at": [moment.isoformat() for moment in at], "one": 1.0}),
        pd.DataFrame({"at": [moment.timestamp() for moment in at], "one": 1.0}),
        pl.DataFrame({"at": naive, "one": [1.0] * len(at)}),
        [{"at": np.datetime64(moment, "ns"), "one": 1.0} for moment in naive],
    ]
    made = [StreamClassifier(head="asset", timestamps=["at"]).fit(X, y) for X in frames]
    said = [model.predict_proba(X) for model, X in zip(made, frames, strict=True)]
    for other in said[1:]:
        np.testing.assert_array_equal(other, said[0])
    missing = pd.DataFrame({"at": [pd.NaT], "one": [1.0]})
    absent = made[0].predict_proba([{"one": 1.0}])
    np.testing.assert_array_equal(made[0].predict_proba(missing), absent)


@frame_of_either
def test_a_date_that_was_not_asked_for_is_refused(frame_of):
    at, y = evenings(20)
    with pytest.raises(TypeError, match="name its column in timestamps"):
        StreamClassifier(head="asset").fit(frame_of({"at": at}), y)
    with pytest.raises(ValueError, match="must be a list of names"):
        StreamClassifier(head="asset", timestamps="at").fit(frame_of({"at": at}), y)

"""Samples as callers have them, as they are sent, and what comes back as arrays."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgpack
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.client.frames import Frame
from wolfstream.service.client import batches as client_batches
from wolfstream.service.client.batches import Batches, as_rows, one_batch, row_fields
from wolfstream.service.client.errors import ClientError
from wolfstream.service.client.results import join_learned, join_predictions, read_result
from wolfstream.service.client.wire import pack
from wolfstream.service.samples.validation import read_rows, read_samples

FORMS: list[Callable[[Any, Any], tuple[Any, Any]]] = [
    lambda X, y: (X, y),
    lambda X, y: (X.tolist(), y.tolist()),
    lambda X, y: (X.tolist(), y),
    lambda X, y: (tuple(map(tuple, X.tolist())), tuple(y)),
    lambda X, y: (iter(X), iter(y)),
    lambda X, y: (zip(X, y, strict=True), None),
    lambda X, y: (list(zip(X.tolist(), y.tolist(), strict=True)), None),
    lambda X, y: ((row for row in X), y),
    lambda X, y: (X.astype(object), y.astype(object)),
    lambda X, y: (X.astype(np.float16), y.astype(np.uint8)),
]


class TestBatches:
    @pytest.mark.parametrize("form", FORMS)
    @given(rows=st.integers(1, 30), most=st.integers(1, 12))
    def test_all_arrive_in_order(self, form: Any, rows: int, most: int):
        X = np.arange(2.0 * rows).reshape(rows, 2)
        y = np.arange(rows)
        batches = Batches(*form(X, y), most)
        read = []
        while batch := batches.take():
            assert len(batch.y) <= most
            body = msgpack.unpackb(pack({"x": batch.X, "y": batch.y}))
            read.append(read_samples(body))
        assert np.array_equal(np.concatenate([part.X for part in read]), X)
        assert [label for part in read for label in part.y] == y.tolist()

    def test_labels_stay_what_they_are(self):
        labels = ["a", 1, True, np.str_("b"), np.int32(4), np.bool_(False)]
        batch = one_batch(np.zeros((6, 1)), labels)
        read = read_samples(msgpack.unpackb(pack({"x": batch.X, "y": batch.y})))
        assert read.y == ["a", 1, True, "b", 4, False]
        assert [type(label) for label in read.y] == [str, int, bool, str, int, bool]

    def test_one_sample(self):
        for row in ([1.0, 2.0], np.array([1, 2]), (1, 2)):
            batch = one_batch(row, "a")
            assert (batch.X.tolist(), batch.y) == ([[1, 2]], ["a"])
        assert one_batch({"a": 1.5}, 2.5)[:2] == ([{"a": 1.5}], [2.5])

    def test_float32_stays_half_as_large(self):
        assert len(pack(np.zeros((100, 10), np.float32))) < 4100

    def test_wide_rows_make_small_batches(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(client_batches, "MAX_BYTES", 1000)
        batches = Batches(np.zeros((10, 50)), range(10), 1024)
        batch = batches.take()
        assert batch
        assert len(batch.y) == 2
        with pytest.raises(ValueError, match="send fewer rows"):
            one_batch(np.zeros((10, 50)), range(10))

    @pytest.mark.parametrize(
        ("X", "y", "says"),
        [
            (np.zeros((3, 2)), [1, 2], "3 rows in X and 2 values in y"),
            ([1.0, 2.0, 3.0], [1, 2, 3], "1 rows in X and 3"),
            (np.zeros((2, 2, 2)), [1, 2], "two dimensions"),
            (np.zeros((2, 2)), [[1], [2]], "is a list, neither a number nor a text"),
            (np.zeros((2, 2)), np.zeros((2, 1)), "one dimension"),
            (iter([[1.0], [2.0]]), [1], "different lengths"),
            ([], [], "two dimensions, rows of values, not 1; X has no rows"),
            (None, [1], "X is of type NoneType: give a list of rows, an array, a data frame, or"),
            (7, [1], "X is of type int: give a list of rows"),
            ({1, 2}, [1], "X is of type set"),
            ([[1.0, 2.0], [3.0]], [1, 2], "the first has 2 values, row 2 has 1"),
            ([[1.0, [2.0]], [1.0, 2.0]], [1, 2], "row 1 of X has a list or an array for a value"),
            ([{"a": 1, "y": 2}] * 2, "y", "2 rows in X and 1 values in y; if y is a column of X, "),
            ({"a": [1, 2], "b": ["u", "v"]}, [1, 2], "write pandas.DataFrame"),
        ],
    )
    def test_what_is_no_samples(self, X: Any, y: Any, says: str):
        def take_all() -> None:
            batches = Batches(X, y, 10)
            while batches.take():
                pass

        with pytest.raises((ValueError, TypeError), match=says):
            take_all()

    def test_rows_are_read_by_the_server_as_they_were(self):
        named = [{"a": np.float32(1.5), "b": np.int64(2)}]
        rows = read_rows(msgpack.unpackb(pack({"x": as_rows(named)})))
        assert rows.value.tolist() == [1.5, 2.0]
        with pytest.raises(TypeError, match="cannot be sent"):
            pack({"x": [{"a": object()}]})


@pytest.mark.parametrize(
    "X", [[[1, 2, 3], [4, 5, 6]], [[1, 2], [3, 4]], np.zeros((3, 4)), [1, 2, 3]], ids=str
)
def test_rows_without_labels_are_refused(X: Any):
    with pytest.raises(ValueError, match=r"without y, .* \(row, label\) pairs"):
        Batches(X, None, 10).take()


@pytest.mark.parametrize(("rows", "labels"), [(2, 1), (1, 2)])
def test_iterators_of_other_lengths_are_refused(rows: int, labels: int):
    batches = Batches(iter([[1, 2]] * rows), iter([0] * labels), 10)
    with pytest.raises(ValueError, match="X and y have different lengths"):
        batches.take()


class TestTables:
    def read(self, X: Any) -> Any:
        batch = one_batch(X, [0] * len(X))
        body = msgpack.unpackb(pack({**row_fields(batch.X), "y": batch.y}))
        return read_samples(body, prepared=True).X

    def test_a_data_frame_keeps_its_names(self):
        table = self.read(Frame({"b": [1, 2], "a": [0.5, float("nan")]}))
        assert table.names == ("b", "a")
        np.testing.assert_array_equal(table.numbers, [[1.0, 0.5], [2.0, np.nan]])

    def test_texts_and_holes_arrive(self):
        when = datetime(2026, 5, 17, 8, tzinfo=UTC)
        frame = Frame(
            {
                "room": ["hall", None],
                "warm": [True, 7],
                "at": [when, when],
                "n": [Decimal("1.5"), 2],
            }
        )
        table = self.read(frame)
        assert [table.texts[k] for k in table.text[:, 0] if k >= 0] == ["hall"]
        assert table.numbers[:, 1].tolist() == [1.0, 7.0]
        assert table.texts[table.text[0, 2]] == "2026-05-17T08:00:00+00:00"
        assert table.numbers[:, 3].tolist() == [1.5, 2.0]

    def test_it_is_sent_in_batches(self):
        batches = Batches(Frame({"a": list(range(5)), "b": ["x"] * 5}), range(5), 2)
        parts = []
        while batch := batches.take():
            parts.append(row_fields(batch.X))
        assert [part["names"] for part in parts] == [["a", "b"]] * 3
        assert [row for part in parts for row in part["x"]] == [[k, "x"] for k in range(5)]

    def test_columns_without_names_are_an_array(self):
        assert as_rows(Frame({0: [1, 2], 1: [3, 4]})).tolist() == [[1.0, 3.0], [2.0, 4.0]]

    def test_lists_of_values_stay_what_they_are(self):
        assert as_rows([[1, "a"], [None, "b"]]) == [[1, "a"], [None, "b"]]
        with pytest.raises(TypeError, match="neither a number nor a text"):
            as_rows([[1, {}], [2, "b"]])


def told(prediction: list[Any], decision: list[Any], **more: Any) -> dict[str, Any]:
    results = {"prediction": prediction, "decision": decision, **more}
    n = len(prediction)
    return {"sequence": n, "learned": n, "results": results, "head": {"size": n}}


class TestResults:
    def test_kinds_of_arrays(self):
        assert join_learned([told([1.5, None], [1.5, None])]).predictions.dtype == np.float64
        assert join_learned([told([1, 2], [0.5, -1.0])]).predictions.dtype.kind == "i"
        assert join_learned([told(["a", "b"], [0, 1])]).predictions.dtype.kind == "U"
        assert join_learned([told([True], [0.5])]).predictions.dtype == np.bool_
        mixed = join_learned([told([None, 1, "1", True], [None] * 4)])
        assert mixed.predictions.tolist() == [None, 1, "1", True]
        assert np.isnan(mixed.decisions).all()

    def test_decisions_over_more_classes_as_they_come(self):
        result = join_learned(
            [told(["a"] * 2, [None, 0.5]), told(["a"] * 2, [[1, 2, 3], [3, 2, 1]])]
        )
        assert (result.learned, result.sequence, result.decisions.shape) == (4, 2, (4,))
        assert result.decisions[0] is None
        assert result.decisions[3].tolist() == [3, 2, 1]
        square = join_learned([told(["a"] * 3, [[1, 2, 3]] * 3)])
        assert square.decisions.shape == (3, 3)

    def test_steps_of_all_batches(self):
        part = told(["a"], [1.0], admitted=[True], step=["toward"])
        result = join_learned([part, {**part, "replayed": True}])
        assert result.admitted is not None
        assert result.admitted.tolist() == [True, True]
        assert (result.steps, result.replayed) == (["toward", "toward"], True)

    @pytest.mark.parametrize("answer", [{}, {"results": {}}, {"results": 3}, {"sequence": None}])
    def test_answers_that_lack_something(self, answer: dict[str, Any]):
        for read in (lambda: join_learned([answer]), lambda: join_predictions([answer])):
            with pytest.raises(ClientError, match="lacks"):
                read()
        with pytest.raises(ClientError):
            read_result(answer)


@pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.DataFrame])
def test_data_frames_are_tables_with_their_dates_as_texts(frame_of: Any):
    at = datetime(2026, 5, 17, 12, 30)
    table = as_rows(frame_of({"at": [at, None], "level": [1.5, 2.0], "open": [True, None]}))
    assert table.names == ["at", "level", "open"]
    assert table.rows == [["2026-05-17T12:30:00", 1.5, True], [None, 2.0, None]]
    (row,) = as_rows(frame_of({"at": [at], "level": [1.5]})).rows
    assert row == ["2026-05-17T12:30:00", 1.5]
    numbers = as_rows(frame_of({"a": [1, 2], "b": [0.5, None]})).rows
    np.testing.assert_array_equal(numbers, [[1.0, 0.5], [2.0, np.nan]])


def test_a_name_that_comes_twice_is_refused():
    frame = Frame({"a": [1.0]})
    frame.columns = ["a", "a"]
    with pytest.raises(ValueError, match="columns 1 and 2 of X have the same name, 'a'"):
        as_rows(frame)


class TestWeights:
    """One number for all samples, or one for each, whatever forms the samples have."""

    def test_one_number_is_sent_as_it_is(self):
        batches = Batches(np.zeros((5, 1)), range(5), 2, np.float64(3.0))
        assert [batches.take().fields()["weight"] for _ in range(3)] == [3.0, 3.0, 3.0]

    @pytest.mark.parametrize("form", [list, tuple, np.array, iter], ids=lambda form: form.__name__)
    def test_each_batch_has_those_of_its_samples(self, form):
        weight = [0.5, 1.0, 1.5, 2.0, 2.5]
        rows = np.zeros((5, 1))
        for X, y in ((rows, range(5)), (zip(rows, range(5), strict=True), None)):
            batches = Batches(X, y, 2, form(weight))
            assert [batches.take().weight for _ in range(3)] == [[0.5, 1.0], [1.5, 2.0], [2.5]]
            assert batches.take() is None

    def test_halves_share_them(self):
        halves = one_batch(np.zeros((4, 1)), range(4), [1.0, 2.0, 3.0, 4.0]).halves()
        assert [half.weight for half in halves] == [[1.0, 2.0], [3.0, 4.0]]
        assert [half.weight for half in one_batch(np.zeros((4, 1)), range(4), 2.0).halves()] == [
            2,
            2,
        ]

    def test_without_weights_there_is_no_field(self):
        assert set(one_batch(np.zeros((4, 1)), range(4)).fields()) == {"x", "y"}

    @pytest.mark.parametrize(("weight", "message"), [([1.0], "fewer"), ([1.0] * 3, "more")])
    def test_as_many_weights_as_samples(self, weight, message):
        with pytest.raises(ValueError, match=message):
            one_batch(np.zeros((2, 1)), [1, 2], weight)

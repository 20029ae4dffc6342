"""What y is: labels of every type, numbers of every size, what is neither, and what all share."""

import math
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from wolfstream.service.errors import Refusal
from wolfstream.service.samples.numbers import LARGEST_TARGET
from wolfstream.service.samples.tasks import TASKS, Task, task_of, unpack
from wolfstream.service.samples.validation import read_samples
from wolfstream.service.spec.heads import TaskName
from wolfstream.service.web.formats.wire import JSON, MSGPACK

MOST_ERRORS = 20
LONGEST_LABEL = 256
MISSING = "is missing: leave the row out, or predict it with an id and label it later"
HINT = 'numbers are learned by a model whose spec says "task": "regression"'


def raw(values: Any, dtype: str = "<f8") -> dict[str, Any]:
    array = np.array(values, dtype)
    return {"dtype": dtype, "shape": list(array.shape), "data": array.tobytes()}


def refused(body: Any, task: TaskName = "classification") -> Refusal:
    with pytest.raises(Refusal) as caught:
        read_samples(body, task)
    return caught.value


def places(error: Refusal) -> list[tuple[int | None, str]]:
    return [(item.get("row"), item["pointer"]) for item in error.errors]


def refused_at(x: Any, y: Any, task: TaskName = "classification") -> list[tuple[int | None, str]]:
    return places(refused({"x": x, "y": y}, task))


class TestLabels:
    def of(self, *labels: Any) -> list[Any]:
        return read_samples({"x": [[0]] * len(labels), "y": list(labels)}).y

    def test_true_and_one_are_kept_apart(self):
        labels = self.of(True, 1, False, 0, "1")
        assert [type(label) for label in labels] == [bool, int, bool, int, str]
        assert labels == [True, 1, False, 0, "1"]

    @pytest.mark.parametrize("label", [-(2**63), 2**63 - 1, 0, "", "é\0", "x" * LONGEST_LABEL])
    def test_a_label_comes_back_as_it_came(self, label: Any):
        assert self.of(label) == [label]
        assert read_samples({"x": [0], "y": label}).y == [label]

    @pytest.mark.parametrize(
        ("label", "detail"),
        [
            (2**63, "does not fit into 64 bits"),
            (-(2**63) - 1, "does not fit into 64 bits"),
            (10**400, "does not fit into 64 bits"),
            ("x" * (LONGEST_LABEL + 1), "is longer than 256 characters"),
            ("\ud800", "is not valid Unicode"),
            ("a\udfff", "is not valid Unicode"),
            (None, MISSING),
            (math.nan, MISSING),
            (1.5, f"must be a string, a whole number or a boolean; {HINT}"),
            (2.0**60, f"must be a string, a whole number or a boolean; {HINT}"),
            (b"a", "must be a string, a whole number or a boolean"),
            ([1], "must be a string, a whole number or a boolean"),
        ],
    )
    def test_what_is_not_a_label(self, label: Any, detail: str):
        error = refused({"x": [[0], [1], [2]], "y": ["a", "b", label]})
        assert error.errors == [{"row": 2, "pointer": "/y/2", "detail": detail}]
        error = refused({"x": [0], "y": label})
        assert error.errors == [{"row": 0, "pointer": "/y", "detail": detail}]

    def test_an_object_is_not_a_label(self):
        assert refused_at([[0], [1]], ["a", {}]) == [(1, "/y/1")]

    def test_every_wrong_label_is_named_up_to_a_bound(self):
        assert refused_at([[0]] * 4, [None, 1, 2.5, "a"]) == [(0, "/y/0"), (2, "/y/2")]
        assert len(refused_at([[0]] * 100, [None] * 100)) == MOST_ERRORS

    @pytest.mark.parametrize("y", [[], ["a"], ["a", "b", "c"]])
    def test_one_label_for_each_row(self, y: list[str]):
        error = refused({"x": [[0], [1]], "y": y})
        assert places(error) == [(None, "/y")]
        assert f"x has 2 and y has {len(y)}" in error.detail

    @pytest.mark.parametrize("y", [None, "a", 1, True])
    def test_labels_of_a_list_of_rows_are_a_list(self, y: Any):
        error = refused({"x": [[0]], "y": y})
        assert places(error) == [(None, "/y")]

    def test_the_label_of_one_row_is_not_a_list(self):
        assert refused_at([0, 1], ["a"]) == [(0, "/y")]

    def test_raw_labels(self):
        values = [-(2**63), 2**63 - 1, 5]
        labels = read_samples({"x": [[0]] * 3, "y": raw(values, "<i8")}).y
        assert labels == values
        assert {type(label) for label in labels} == {int}

    @pytest.mark.parametrize("dtype", ["<f8", "<f4"])
    def test_whole_numbers_of_floats_are_labels(self, dtype: str):
        raws = read_samples({"x": [[0]] * 3, "y": raw([0.0, 1.0, -7.0], dtype)}).y
        labels = self.of(0.0, 1.0, -7.0)
        assert raws == labels == [0, 1, -7]
        assert {type(label) for label in raws + labels} == {int}

    @pytest.mark.parametrize(
        ("y", "pointer"),
        [
            (raw([[1]], "<i8"), "/y"),
            (raw([1, 2], "<i8"), "/y"),
            (raw([1], "<i8") | {"dtype": "<i4"}, "/y/dtype"),
            (raw([1], "<i8") | {"shape": [-1]}, "/y/shape"),
            (raw([1], "<i8") | {"data": b""}, "/y/data"),
            (raw([1], "<i8") | {"data": "text"}, "/y/data"),
            ({}, "/y"),
        ],
    )
    def test_raw_labels_are_one_dimension_of_whole_numbers(self, y: Any, pointer: str):
        assert refused_at([[0]], y) == [(None, pointer)]

    def test_raw_numbers_are_regression(self):
        assert HINT in refused({"x": [[0]], "y": raw([1.5])}).errors[0]["detail"]


class TestTargets:
    """y of a model whose task is regression."""

    def of(self, *values: Any) -> Any:
        return read_samples({"x": [[0]] * len(values), "y": list(values)}, "regression").y

    @given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=5))
    def test_every_bit_is_kept(self, values: list[float]):
        y = self.of(*values)
        assert y.dtype == np.float64
        assert y.tobytes() == np.array(values).tobytes()
        for spoken in (JSON, MSGPACK):
            body = spoken.decode(spoken.encode({"x": [[0]] * len(values), "y": values}), BOUNDS)
            assert read_samples(body, "regression").y.tobytes() == y.tobytes()

    def test_texts_with_one_number_are_numbers(self):
        y = ["$1,234.50", "1.5", " 55.0% ", 2, "(1,200)"]
        samples = read_samples({"x": [[0]] * len(y), "y": y}, "regression")
        assert samples.y.tolist() == [1234.5, 1.5, 55.0, 2.0, -1200.0]

    def test_whole_numbers_are_numbers(self):
        assert self.of(1, -2.5, 10**30, -(2**63)).tolist() == [1.0, -2.5, 1e30, -(2.0**63)]

    def test_the_target_of_one_row_is_one_number(self):
        assert read_samples({"x": [0, 1], "y": 2.5}, "regression").y.tolist() == [2.5]
        assert refused_at([0, 1], [2.5], "regression") == [(0, "/y")]

    @pytest.mark.parametrize(
        ("value", "detail"),
        [
            ("soon", "must be a number, not text"),
            ("2025-03-01", "must be a number, not text"),
            ("", "must be a number, not text"),
            (True, "must be a number, not a boolean"),
            (None, "must be a number, not null"),
            ([1.5], "must be a number, not an array"),
            ({}, "must be a number"),
            (b"1", "must be a number"),
            (math.nan, "is NaN or infinite"),
            (-math.inf, "is NaN or infinite"),
            (1.01e100, "is beyond 1e+100"),
            (-(10**101), "is beyond 1e+100"),
            (10**400, "is beyond 1e+100"),
        ],
    )
    def test_what_is_not_a_target(self, value: Any, detail: str):
        error = refused({"x": [[0], [1], [2]], "y": [1, 2.5, value]}, "regression")
        assert error.errors == [{"row": 2, "pointer": "/y/2", "detail": detail}]
        assert "task is regression" in error.detail
        if value != {}:
            error = refused({"x": [0], "y": value}, "regression")
            assert error.errors == [{"row": 0, "pointer": "/y", "detail": detail}]

    def test_the_largest_target_is_one(self):
        assert self.of(LARGEST_TARGET, -LARGEST_TARGET).tolist() == [1e100, -1e100]

    def test_every_wrong_target_is_named_up_to_a_bound(self):
        assert refused_at([[0]] * 3, ["a", 1, None], "regression") == [(0, "/y/0"), (2, "/y/2")]
        assert len(refused_at([[0]] * 100, ["a"] * 100, "regression")) == MOST_ERRORS

    @pytest.mark.parametrize("y", [[], [1.0], [1.0, 2.0, 3.0], raw([1.0])])
    def test_one_target_for_each_row(self, y: Any):
        assert refused_at([[0], [1]], y, "regression") == [(None, "/y")]

    @pytest.mark.parametrize("y", [None, "a", 1.5, True])
    def test_targets_of_a_list_of_rows_are_a_list(self, y: Any):
        assert refused_at([[0]], y, "regression") == [(None, "/y")]

    @pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i8"])
    def test_raw_targets(self, dtype: str):
        values = [-3, 0, 2**20]
        body = msgpack.unpackb(msgpack.packb({"x": [[0]] * 3, "y": raw(values, dtype)}))
        y = read_samples(body, "regression").y
        assert y.dtype == np.float64
        assert y.tolist() == values
        assert y.flags.writeable

    @pytest.mark.parametrize(
        ("y", "places"),
        [
            (raw([1.0, math.nan]), [(1, "/y/1")]),
            (raw([math.inf, 1.0], "<f4"), [(0, "/y/0")]),
            (raw([2e100, -2e100]), [(0, "/y/0"), (1, "/y/1")]),
            (raw([[1.0, 2.0]]), [(None, "/y")]),
            (raw([1.0, 2.0]) | {"data": b""}, [(None, "/y/data")]),
            ({}, [(None, "/y")]),
        ],
    )
    def test_what_are_not_raw_targets(self, y: Any, places: Any):
        assert refused_at([[0], [1]], y, "regression") == places


@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
class TestEachTask:
    """What `samples.tasks.Task` promises, of every task."""

    def test_example_is_valid(self, task: Task):
        y = task.example(5, ["a", "b"])
        assert len(y) == 5
        assert task.plain(task.read(task.plain(y), single=False)) == task.plain(y)

    def test_record_round_trip(self, task: Task):
        y = task.example(5, ["a", True])
        packed = msgpack.unpackb(msgpack.packb(task.pack(y)))
        for again in (task.unpack(packed), unpack(packed), task.recorded(y)):
            assert task_of(again) is task
            assert list(map(type, task.plain(again))) == list(map(type, task.plain(y)))
            assert task.pack(again) == task.pack(y)

    def test_parts_join(self, task: Task):
        y = task.example(5, ["a", "b"])
        parts = [task.take(y, [0, 1]), task.take(y, [2]), y[3:]]
        assert task.pack(task.join(parts)) == task.pack(y)
        assert task.plain(task.take(y, [4, 0])) == [y[4], y[0]]

    def test_losses_of_right_and_missing_predictions(self, task: Task):
        y = task.example(3, ["a", "b"])
        first, second, third = task.plain(y)
        losses = task.losses([first, None, second], y)
        assert losses.dtype == np.float64
        assert losses[0] == 0.0
        assert np.isnan(losses[1])
        assert losses[2] == (second != third)

    def test_samples_have_one_key_however_they_are_read(self, task: Task):
        y = [1, 0, 1]
        keys = list(map(task.key, task.plain(task.read(y, single=False))))
        assert keys == list(map(task.key, task.plain(task.read(list(map(str, y)), single=False))))
        assert len(set(keys)) == 2
        assert 1 <= task.n_classes(task.read(y, single=False)) <= 2


def test_losses():
    labels, numbers = TASKS["classification"], TASKS["regression"]
    assert labels.losses(["a", None, True], ["a", "b", 1]).tolist()[::2] == [0.0, 1.0]
    assert numbers.losses([1.0, 2.0], np.array([3.0, 2.0])).tolist() == [2.0, 0.0]

"""Samples: what is taken as rows and labels, and where each refusal points."""

import math
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from wolfstream.service.errors import Invalid, InvalidSamples, Refusal
from wolfstream.service.samples.record import to_record
from wolfstream.service.samples.validation import Samples, read_rows, read_samples
from wolfstream.service.spec.heads import TaskName
from wolfstream.service.web.formats.wire import JSON, MSGPACK, Format, problem
from wolfstream.solver.prepare.named_rows import NamedRows, n_rows

DTYPES = ("<f4", "<f8", "<i8")
MOST_ERRORS = 20
LONGEST_LABEL = LONGEST_NAME = 256


def raw(values: Any, dtype: str = "<f8", **other: Any) -> dict[str, Any]:
    array = np.array(values, dtype)
    return {"dtype": dtype, "shape": list(array.shape), "data": array.tobytes()} | other


def refused(body: Any, read: Any = read_samples) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(body)
    return caught.value


def named(x: Any) -> tuple[list[str], list[list[float]]]:
    """Names and, with all their zeros, the rows of named numbers."""
    rows = read_rows({"x": x})
    assert isinstance(rows, NamedRows)
    return rows.names, dense(rows)


def dense(rows: NamedRows) -> list[list[float]]:
    full = np.zeros((n_rows(rows), len(rows.names)))
    full[np.repeat(np.arange(n_rows(rows)), rows.lengths), rows.place] = rows.value
    return full.tolist()


def attempt(call: Callable[[], Any]) -> Any:
    """What a call returns, or the refusal that it raises; any other exception goes on."""
    try:
        return call()
    except Refusal as error:
        return error


def places(error: Refusal) -> list[tuple[int | None, str]]:
    return [(item.get("row"), item["pointer"]) for item in error.errors]


def refused_at(x: Any, y: Any = None) -> list[tuple[int | None, str]]:
    """Where a body with this x, and a label that fits, is refused as wrong samples."""
    error = refused({"x": x, "y": [0] if y is None else y})
    assert isinstance(error, InvalidSamples)
    assert all(item["detail"] for item in error.errors)
    return places(error)


class TestRows:
    def test_rows_and_labels_in_their_order(self):
        samples = read_samples({"x": [[1, 2.5], [-3, 4e-3]], "y": ["a", "b"]})
        np.testing.assert_array_equal(samples.X, [[1.0, 2.5], [-3.0, 4e-3]])
        assert samples.y == ["a", "b"]

    def test_one_sample_needs_no_lists_around_it(self):
        samples = read_samples({"x": [1, 2], "y": "a"})
        np.testing.assert_array_equal(samples.X, [[1.0, 2.0]])
        assert samples.y == ["a"]

    def test_one_row_of_one_number(self):
        assert read_rows({"x": [7]}).tolist() == [[7.0]]

    def test_rows_alone_for_a_prediction(self):
        assert read_rows({"x": [[1, 2], [3, 4]]}).tolist() == [[1.0, 2.0], [3.0, 4.0]]

    @pytest.mark.parametrize("x", [[[1, 2], [3, 4]], [1, 2], raw([[1, 2], [3, 4]], "<f4")])
    def test_rows_are_contiguous_float64(self, x: Any):
        X = read_rows({"x": x})
        assert X.dtype == np.float64
        assert X.flags.c_contiguous
        assert X.flags.aligned

    def test_whole_numbers_may_be_larger_than_64_bits(self):
        assert read_rows({"x": [[2**100, -(10**300)]]}).tolist() == [[2.0**100, -1e300]]

    @pytest.mark.parametrize(
        ("x", "where"),
        [
            (None, (None, "/x")),
            (5, (None, "/x")),
            ("12", (None, "/x")),
            (b"12", (None, "/x")),
            (True, (None, "/x")),
            ([], (None, "/x")),
            ([[]], (None, "/x/0")),
            ([[], []], (None, "/x/0")),
        ],
    )
    def test_there_must_be_rows_with_numbers(self, x: Any, where: Any):
        assert refused_at(x) == [where]

    @pytest.mark.parametrize(
        "wrong",
        [None, True, "1", b"1", [1], {}, math.nan, math.inf, -math.inf, 10**400, -(10**400)],
    )
    def test_only_finite_numbers(self, wrong: Any):
        assert refused_at([[1, 2], [3, wrong], [5, 6]], [0, 1, 2]) == [(1, "/x/1/1")]
        assert refused_at([1, 2, wrong], 0) == [(0, "/x/2")]

    @pytest.mark.parametrize(
        ("wrong", "detail"),
        [
            ("1", "must be a number, not text"),
            (None, "must be a number, not null"),
            (True, "must be a number, not a boolean"),
            ([1], "must be a number, not an array"),
            (math.nan, "is NaN or infinite"),
            (10**400, "is too large for a 64-bit floating-point number"),
        ],
    )
    def test_it_says_what_is_wrong(self, wrong: Any, detail: str):
        for x in ([[1, wrong]], [{"a": wrong}]):
            assert [p["detail"] for p in refused({"x": x, "y": ["a"]}).errors] == [detail]

    def test_a_number_beyond_float64_in_json_is_infinite(self):
        assert places(refused(JSON.decode(b'{"x": [[0, 1e400]], "y": [1]}', BOUNDS))) == [
            (0, "/x/0/1")
        ]

    @pytest.mark.parametrize("wrong", [None, 3, "12", b"12", {"a": 1}, {}])
    def test_every_row_is_a_list(self, wrong: Any):
        assert refused_at([[1, 2], wrong], [0, 1]) == [(1, "/x/1")]

    def test_every_wrong_number_is_named(self):
        x = [[None, 1], [2, 3], [4, "5"], ["6", 7]]
        assert refused_at(x, [0] * 4) == [(0, "/x/0/0"), (2, "/x/2/1"), (3, "/x/3/0")]

    def test_every_row_of_another_length_is_named(self):
        error = refused({"x": [[1, 2], [3], [4, 5], [6, 7, 8], []], "y": [0] * 5})
        assert places(error) == [(1, "/x/1"), (3, "/x/3"), (4, "/x/4")]
        assert [e["detail"] for e in error.errors][:2] == [
            "has 1 numbers, row 0 has 2",
            "has 3 numbers, row 0 has 2",
        ]

    @pytest.mark.parametrize(
        "x",
        [[[None]] * 100, [[1]] + [[1, 2]] * 100, [None] * 100, raw([[math.nan]] * 100)],
        ids=["numbers", "lengths", "single", "raw"],
    )
    def test_a_long_list_of_errors_is_cut(self, x: Any):
        assert len(refused({"x": x}, read_rows).errors) == MOST_ERRORS


class TestNamedRows:
    def test_names_are_numbered_as_they_appear(self):
        rows = [{"b": 1, "a": 2.5}, {"c": -3, "a": 4e-3}]
        assert named(rows) == (["b", "a", "c"], [[1.0, 2.5, 0.0], [0.0, 0.004, -3.0]])

    def test_one_sample_needs_no_lists_around_it(self):
        samples = read_samples({"x": {"a": 1}, "y": "yes"})
        assert isinstance(samples.X, NamedRows)
        assert (samples.X.names, dense(samples.X)) == (["a"], [[1.0]])
        assert samples.y == ["yes"]

    def test_a_zero_is_an_absent_name(self):
        assert named([{"a": 0, "b": 1}, {"c": -0.0}, {"a": 2, "d": 0.0}]) == (
            ["b", "a"],
            [[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]],
        )

    @pytest.mark.parametrize("x", [{}, [{}], {"a": 0.0}])
    def test_a_row_may_be_zero(self, x: Any):
        assert named(x) == ([], [[]])

    def test_whole_numbers_may_be_larger_than_64_bits(self):
        assert named({"a": 2**100, "b": -(10**300)})[1] == [[2.0**100, -1e300]]

    @pytest.mark.parametrize("name", ["a", "é/~\0\U0001f600", " ", "0", "x" * LONGEST_NAME])
    @pytest.mark.parametrize("spoken", [JSON, MSGPACK], ids=["json", "msgpack"])
    def test_a_name_is_any_text_in_any_format(self, name: str, spoken: Format):
        assert named(spoken.decode(spoken.encode([{name: 1.5}]), BOUNDS)) == ([name], [[1.5]])

    @pytest.mark.parametrize(
        ("name", "detail"),
        [
            ("", "has a name that does not have 1 to 256 characters"),
            ("x" * (LONGEST_NAME + 1), "has a name that does not have 1 to 256 characters"),
            ("\ud800", "has a name that is not valid Unicode"),
            (b"a", "has a name that is not text"),
        ],
    )
    @pytest.mark.parametrize("value", [1, 0])
    def test_what_is_not_a_name(self, name: Any, detail: str, value: int):
        error = refused({"x": [{"a": 1}, {"b": 2, name: value}]}, read_rows)
        assert error.errors == [{"row": 1, "pointer": "/x/1", "detail": detail}]
        error = refused({"x": {name: value}}, read_rows)
        assert error.errors == [{"row": 0, "pointer": "/x", "detail": detail}]

    @pytest.mark.parametrize(
        "wrong",
        [None, True, "1", b"1", [1], {}, math.nan, math.inf, -math.inf, 10**400, -(10**400)],
    )
    def test_only_finite_numbers(self, wrong: Any):
        assert refused_at([{"a": 1}, {"a": 3, "b": wrong}], [0, 1]) == [(1, "/x/1/b")]
        assert refused_at({"a": wrong, "b": 1}, 0) == [(0, "/x/a")]

    def test_a_number_beyond_float64_in_json_is_infinite(self):
        assert places(refused(JSON.decode(b'{"x": {"a": 1e400}, "y": 1}', BOUNDS))) == [(0, "/x/a")]

    def test_a_pointer_escapes_the_name(self):
        assert refused_at([{"a/b~c": None}]) == [(0, "/x/0/a~1b~0c")]

    def test_everything_wrong_is_named_up_to_a_bound(self):
        x = [{"a": None, "b": 1, "c": "1"}, {"a": 1}, {"": 1, "b": True}]
        assert refused_at(x) == [(0, "/x/0/a"), (0, "/x/0/c"), (2, "/x/2"), (2, "/x/2/b")]
        assert len(refused_at([{"a": None}] * 100)) == MOST_ERRORS
        assert len(refused_at({str(k): None for k in range(100)})) == MOST_ERRORS

    @pytest.mark.parametrize("wrong", [None, 3, "12", [1.0], []])
    def test_every_row_is_an_object(self, wrong: Any):
        assert refused_at([{"a": 1}, wrong, {}], [0, 1, 2]) == [(1, "/x/1")]

    def test_the_number_of_labels_is_that_of_the_rows(self):
        assert refused_at([{"a": 1}, {}], [0]) == [(None, "/y")]

    @given(
        st.lists(
            st.dictionaries(st.text("ab/~", min_size=1, max_size=2), st.floats(-9, 9)), min_size=1
        )
    )
    def test_every_number_is_where_its_name_is(self, x: list[dict[str, float]]):
        names, rows = named(x)
        assert rows == [[row.get(name, 0.0) for name in names] for row in x]
        assert names == list(dict.fromkeys(n for row in x for n, value in row.items() if value))


class TestRaw:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_two_dimensions_are_rows(self, dtype: str):
        samples = read_samples({"x": raw([[1, 2, 3], [4, 5, 6]], dtype), "y": ["a", "b"]})
        assert samples.X.tolist() == [[1, 2, 3], [4, 5, 6]]

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_one_dimension_is_one_row(self, dtype: str):
        samples = read_samples({"x": raw([1, 2, 3], dtype), "y": "a"})
        assert samples.X.tolist() == [[1, 2, 3]]
        assert samples.y == ["a"]

    def test_the_bytes_are_little_endian(self):
        x = {"dtype": "<i8", "shape": [1, 1], "data": b"\x01\x02" + bytes(6)}
        assert read_rows({"x": x}).tolist() == [[0x201]]

    def test_float64_comes_through_bit_for_bit(self):
        values = [[5e-324, -0.0, 1.7976931348623157e308, 0.1]]
        X = read_rows({"x": raw(values)})
        assert X.tobytes() == np.array(values).tobytes()

    def test_the_rows_are_a_copy_that_may_be_written(self):
        X = read_rows({"x": raw([[1.0]])})
        X[0, 0] = 2.0
        assert X.tolist() == [[2.0]]

    @pytest.mark.parametrize("dtype", ["<f4", "<f8"])
    @pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
    def test_only_finite_numbers(self, dtype: str, wrong: float):
        assert refused_at(raw([[1, 2], [wrong, 4]], dtype), [0, 1]) == [(1, "/x/1/0")]

    @pytest.mark.parametrize("dtype", [">f8", "f8", "<f2", "<i4", "<u8", "|O", "O", "", None, 8])
    def test_three_dtypes_are_known(self, dtype: Any):
        assert refused_at(raw([[1.0]]) | {"dtype": dtype}) == [(None, "/x/dtype")]

    @pytest.mark.parametrize(
        "shape",
        [
            None,
            2,
            "2",
            {},
            [],
            [1, 1, 1],
            [-1],
            [1, -1],
            [True],
            [1, True],
            [1.0],
            ["1"],
            [None],
            [2**31],
            [1, 2**63],
            [10**400],
        ],
    )
    def test_a_shape_is_one_or_two_lengths(self, shape: Any):
        assert refused_at(raw([[1.0]]) | {"shape": shape}) == [(None, "/x/shape")]

    @pytest.mark.parametrize("data", [None, 8, "8 bytes!", [0] * 8, bytearray(8)])
    def test_data_is_bytes(self, data: Any):
        assert refused_at(raw([[1.0]]) | {"data": data}) == [(None, "/x/data")]

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("length_change", [-1, 1, 8])
    def test_the_bytes_must_fit_dtype_and_shape(self, dtype: str, length_change: int):
        x = raw([[1, 2], [3, 4]], dtype)
        x["data"] = (x["data"] + bytes(8))[: len(x["data"]) + length_change]
        assert refused_at(x, [0, 1]) == [(None, "/x/data")]

    @pytest.mark.parametrize("shape", [[2**31 - 1], [2**31 - 1, 2**31 - 1]])
    def test_a_huge_shape_reserves_nothing(self, shape: list[int]):
        assert refused_at({"dtype": "<f8", "shape": shape, "data": b""}) == [(None, "/x/data")]

    @pytest.mark.parametrize(
        ("shape", "pointer"),
        [
            ([0], "/x/0"),
            ([0, 3], "/x"),
            ([3, 0], "/x/0"),
            ([0, 0], "/x"),
            ([2**31 - 1, 0], "/x/0"),
        ],
    )
    def test_there_must_be_rows_with_numbers(self, shape: list[int], pointer: str):
        assert refused_at({"dtype": "<f8", "shape": shape, "data": b""}) == [(None, pointer)]

    @pytest.mark.parametrize(
        ("x", "pointers"),
        [
            ({"dtype": "<f8", "shape": [1]}, ["/x/dtype", "/x/shape"]),
            (raw([1.0], order="C"), ["/x/dtype", "/x/shape", "/x/data", "/x/order"]),
            ({b"dtype": "<f8", b"shape": [1], b"data": bytes(8)}, ["/x"] * 3),
        ],
    )
    def test_any_other_object_is_a_row_of_named_numbers(self, x: Any, pointers: list[str]):
        assert refused_at(x, 0) == [(0, pointer) for pointer in pointers]

    def test_a_row_may_have_numbers_of_these_names(self):
        x = {"dtype": 1, "shape": 2.5, "data": -3}
        assert named(x) == (["dtype", "shape", "data"], [[1.0, 2.5, -3.0]])
        assert named([x]) == named(x)


class TestBody:
    @pytest.mark.parametrize("body", [None, 1, "x", b"x", [], [[1], [2]], True])
    def test_a_body_is_an_object(self, body: Any):
        for read in (read_samples, read_rows):
            error = refused(body, read)
            assert isinstance(error, Invalid)
            assert "must be an object" in error.detail

    def test_every_missing_and_unknown_field_is_named(self):
        error = refused({"X": [[1]], "y": [1], "cost": 2})
        assert error.errors == [
            {"pointer": "/X", "detail": "unknown field; the body has x and y"},
            {"pointer": "/cost", "detail": "unknown field; the body has x and y"},
            {"pointer": "/x", "detail": "field is missing"},
        ]

    def test_a_prediction_has_no_labels(self):
        error = refused({"x": [[1]], "y": [1]}, read_rows)
        assert error.errors == [{"pointer": "/y", "detail": "unknown field; the body has x"}]

    def test_samples_have_labels(self):
        error = refused({"x": [[1]]})
        assert error.errors == [{"pointer": "/y", "detail": "field is missing"}]

    def test_names_are_text_not_bytes(self):
        assert "/x" in [pointer for _, pointer in places(refused({b"x": [[1]]}, read_rows))]


LABELS = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=LONGEST_LABEL))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 10),
    st.integers(),
    st.floats(),
    st.text(st.characters(exclude_categories=()), max_size=5),
    st.binary(max_size=5),
    st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=3)),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)
NUMBERS = st.one_of(st.integers(), st.floats(), SCALARS)
ALMOST_RAW = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from([*DTYPES, "<i4", None]),
        "shape": st.lists(st.integers(-1, 3) | SCALARS, max_size=3) | SCALARS,
        "data": st.integers(0, 9).map(lambda n: bytes(4 * n)) | SCALARS,
    }
)
ALMOST_ROWS = st.one_of(
    ANYTHING,
    ALMOST_RAW,
    st.lists(NUMBERS, max_size=4),
    st.lists(st.lists(st.integers(), min_size=2, max_size=2), max_size=4),
    st.lists(st.lists(NUMBERS, max_size=3), max_size=4),
    st.dictionaries(st.text(max_size=2), NUMBERS, max_size=3),
    st.lists(st.dictionaries(st.text(max_size=2), st.integers() | st.floats(-1, 1)), max_size=3),
    st.lists(st.dictionaries(st.text(max_size=2), NUMBERS, max_size=3), max_size=3),
)
ALMOST_LABELS = st.one_of(
    ANYTHING,
    ALMOST_RAW,
    st.lists(LABELS, max_size=4),
    st.lists(st.floats() | st.integers(), max_size=4),
    LABELS,
)
ALMOST_BODIES = st.fixed_dictionaries({"x": ALMOST_ROWS, "y": ALMOST_LABELS})

# Bytes that often continue a body so that it can be read.
BODIES_AS_BYTES = st.one_of(
    st.tuples(st.just(MSGPACK), st.binary(max_size=40).map(lambda b: b"\x82\xa1y\x01\xa1x" + b)),
    st.tuples(
        st.just(MSGPACK),
        ALMOST_BODIES.map(
            lambda body: msgpack.packb(body, default=repr, unicode_errors="surrogatepass")
        ),
    ),
    st.tuples(
        st.just(JSON),
        st.text('[]{},:"\\ue0123456789-.NaInfty ', max_size=30).map(
            lambda text: ('{"y": 1, "x": ' + text + "}").encode()
        ),
    ),
)


def check_samples(samples: Samples) -> None:
    if isinstance(samples.X, NamedRows):
        assert np.isfinite(samples.X.value).all()
        assert np.all(samples.X.value != 0.0)
        assert set(samples.X.place.tolist()) == set(range(len(samples.X.names)))
        assert samples.X.lengths.sum() == len(samples.X.place) == len(samples.X.value)
        assert all(type(name) is str and name.encode() for name in samples.X.names)
    else:
        assert samples.X.dtype == np.float64
        assert samples.X.ndim == 2
        assert samples.X.size > 0
        assert np.isfinite(samples.X).all()
    assert len(samples.y) == n_rows(samples.X) > 0
    if isinstance(samples.y, list):
        assert {type(label) for label in samples.y} <= {bool, int, str}
    else:
        assert samples.y.dtype == np.float64
        assert (np.abs(samples.y) <= 1e100).all()


class TestAnything:
    @given(st.one_of(ALMOST_BODIES, ANYTHING), st.sampled_from(["classification", "regression"]))
    def test_is_samples_or_a_refusal_that_says_where(self, body: Any, task: TaskName):
        result = attempt(lambda: read_samples(body, task))
        if isinstance(result, Samples):
            check_samples(result)
            return
        assert isinstance(result, Invalid)
        assert result.detail
        assert result.errors or not isinstance(result, InvalidSamples)
        for item in result.errors:
            assert item["detail"]
            assert item["pointer"].startswith("/")
            assert item.get("row", 0) >= 0

    @given(ALMOST_ROWS)
    def test_rows_alone_are_the_rows_of_samples(self, x: Any):
        rows = attempt(lambda: read_rows({"x": x}))
        if isinstance(rows, InvalidSamples):
            assert places(rows) == refused_at(x)
        else:
            samples = attempt(lambda: read_samples({"x": x, "y": [0] * n_rows(rows)}))
            if isinstance(samples, Samples):
                assert to_record(samples) == to_record(Samples(rows, samples.y))
            else:  # one row without a list, whose label has none either
                assert places(samples) == [(0, "/y")]

    @given(BODIES_AS_BYTES)
    def test_from_bytes_to_a_problem_that_can_be_sent(self, sent: tuple[Format, bytes]):
        body_format, body = sent
        result = attempt(lambda: read_samples(body_format.decode(body, BOUNDS)))
        if isinstance(result, Samples):
            check_samples(result)
            return
        for answer_format in (JSON, MSGPACK):
            answer = answer_format.encode(problem(result, 422))
            assert answer_format.decode(answer, BOUNDS)["detail"] == result.detail

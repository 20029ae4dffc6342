"""Samples in the journal: every bit and every type comes back."""

import msgpack
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.service.streams import plain_rows
from wolfstream.service.samples.record import (
    as_recorded,
    concatenate_samples,
    from_record,
    slice_samples,
    to_record,
)
from wolfstream.service.samples.validation import Samples, read_samples
from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.named_rows import NamedRows, n_rows

LABELS = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=256))
NUMBERS = st.floats(-1e100, 1e100)


SAMPLES = st.integers(1, 5).flatmap(
    lambda n: st.builds(
        Samples,
        arrays.arrays(
            np.float64,
            st.tuples(st.just(n), st.integers(1, 4)),
            elements=st.floats(allow_nan=False, allow_infinity=False),
        ),
        st.lists(LABELS, min_size=n, max_size=n),
    )
)


NAMED_SAMPLES = st.integers(1, 5).flatmap(
    lambda n: st.builds(
        lambda x, y: read_samples({"x": x, "y": y}),
        st.lists(
            st.dictionaries(
                st.text(min_size=1, max_size=3),
                st.floats(allow_nan=False, allow_infinity=False),
                max_size=4,
            ),
            min_size=n,
            max_size=n,
        ),
        st.lists(LABELS, min_size=n, max_size=n),
    )
)


VALUES = st.none() | st.booleans() | st.text(max_size=3) | st.floats(allow_infinity=False)
TABLES = st.integers(1, 5).flatmap(
    lambda n: (
        st.builds(
            lambda x, names, y: read_samples({"x": x, "names": names, "y": y}, prepared=True),
            st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=n, max_size=n),
            st.sampled_from([["a", "b"], None]),
            st.lists(LABELS, min_size=n, max_size=n),
        )
        | st.builds(
            lambda x, y: read_samples({"x": x, "y": y}, prepared=True),
            st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), min_size=n, max_size=n),
            st.lists(LABELS, min_size=n, max_size=n),
        )
    )
)


TARGETS = st.integers(1, 5).flatmap(
    lambda n: st.builds(
        lambda x, y: read_samples({"x": x, "y": y}, "regression"),
        st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=2), min_size=n, max_size=n)
        | st.lists(st.dictionaries(st.sampled_from("abc"), NUMBERS), min_size=n, max_size=n),
        st.lists(NUMBERS, min_size=n, max_size=n),
    )
)


class TestRecordOfTargets:
    def test_its_form(self):
        record = to_record(Samples(np.array([[1.0, 2.0]]), np.array([-0.0])))
        numbers = np.array([1.0, 2.0], "<f8").tobytes()
        assert msgpack.unpackb(record) == [[1, 2], numbers, np.array([-0.0], "<f8").tobytes()]

    @given(TARGETS)
    def test_the_log_gives_back_every_bit(self, samples: Samples):
        y = from_record(to_record(samples)).y
        assert y.dtype == np.float64
        assert y.tobytes() == samples.y.tobytes()
        assert y.flags.writeable
        assert to_record(from_record(to_record(samples))) == to_record(samples)

    @given(st.lists(TARGETS, min_size=1, max_size=3))
    def test_joined_they_stand_one_after_another(self, parts: list[Samples]):
        kind = isinstance(parts[0].X, NamedRows)
        parts = [part for part in parts if isinstance(part.X, NamedRows) == kind]
        together = concatenate_samples(parts)
        assert together.y.tobytes() == b"".join(part.y.tobytes() for part in parts)
        assert n_rows(together.X) == len(together.y)


class TestRecordOfNamedRows:
    @given(NAMED_SAMPLES)
    def test_the_log_gives_back_every_bit_and_every_type(self, samples: Samples):
        again = from_record(to_record(samples))
        assert isinstance(again.X, NamedRows)
        assert again.X.names == samples.X.names
        assert again.X.lengths.tolist() == samples.X.lengths.tolist()
        assert again.X.place.tolist() == samples.X.place.tolist()
        assert again.X.value.tobytes() == samples.X.value.tobytes()
        assert [(type(label), label) for label in again.y] == [
            (type(label), label) for label in samples.y
        ]

    @given(NAMED_SAMPLES)
    def test_a_record_of_what_was_logged_is_the_same_record(self, samples: Samples):
        record = to_record(samples)
        assert to_record(from_record(record)) == record

    def test_a_record_is_small(self):
        x = [{f"the name of feature {k}": 1.0 for k in range(20)}] * 100
        record = to_record(read_samples({"x": x, "y": [1] * 100}))
        assert len(record) < 12 * 2000 + 4 * 100 + 20 * 30 + 200

    @given(st.lists(NAMED_SAMPLES, min_size=1, max_size=3))
    def test_joined_they_are_what_one_request_would_have_been(self, parts: list[Samples]):
        together = concatenate_samples(parts)
        # As they came: the order of a row's names is part of the record.
        x = [row for part in parts for row in plain_rows(part)]
        labels = [label for part in parts for label in part.y]
        assert to_record(together) == to_record(read_samples({"x": x, "y": labels}))


class TestRecord:
    def test_its_form_is_that_of_the_logs_that_exist(self):
        arrays = Samples(np.array([[1.0, 2.0]]), ["a"])
        numbers = np.array([1.0, 2.0], "<f8").tobytes()
        assert msgpack.unpackb(to_record(arrays)) == [[1, 2], numbers, ["a"]]
        named = read_samples({"x": [{"b": 2.0, "a": 1.0}, {"c": 0}], "y": [1, 2]})
        assert msgpack.unpackb(to_record(named)) == [
            ["b", "a"],
            np.array([2, 0], "<u4").tobytes(),
            np.array([0, 1], "<u4").tobytes(),
            np.array([2.0, 1.0], "<f8").tobytes(),
            [1, 2],
        ]

    @given(SAMPLES)
    def test_the_log_gives_back_every_bit_and_every_type(self, samples: Samples):
        again = from_record(to_record(samples))
        assert again.X.shape == samples.X.shape
        assert again.X.dtype == np.float64
        assert again.X.tobytes() == samples.X.tobytes()
        assert [(type(label), label) for label in again.y] == [
            (type(label), label) for label in samples.y
        ]

    @given(SAMPLES)
    def test_a_record_of_what_was_logged_is_the_same_record(self, samples: Samples):
        record = to_record(samples)
        assert to_record(from_record(record)) == record

    @given(SAMPLES)
    def test_rows_out_of_the_log_are_like_those_of_a_request(self, samples: Samples):
        X = from_record(to_record(samples)).X
        assert X.flags.c_contiguous
        assert X.flags.aligned
        assert X.flags.writeable

    def test_rows_need_not_be_contiguous(self):
        X = np.arange(12.0).reshape(3, 4)[:, ::2]
        assert from_record(to_record(Samples(X, [0, 1, 2]))).X.tolist() == X.tolist()


class TestAsRecorded:
    """What is learned live has the bits, types and layout of what is replayed."""

    def same(self, samples: Samples) -> None:
        live, replayed = as_recorded(samples), from_record(to_record(samples))
        assert list(map(repr, live.y)) == list(map(repr, replayed.y))
        columns = [
            [s.X] if isinstance(s.X, np.ndarray) else [a for a in s.X if isinstance(a, np.ndarray)]
            for s in (live, replayed)
        ]
        if not isinstance(live.X, np.ndarray):
            assert (live.X.names, live.X.texts) == (replayed.X.names, replayed.X.texts)
        for s, own in zip((live, replayed), columns, strict=True):
            if not isinstance(s.y, list):
                own.append(s.y)
        for array, other in zip(*columns, strict=True):
            assert (array.dtype, array.shape) == (other.dtype, other.shape)
            assert array.flags.c_contiguous
            assert array.tobytes() == other.tobytes()
        assert to_record(live) == to_record(samples)

    @given(samples=SAMPLES)
    def test_arrays(self, samples: Samples):
        self.same(samples)

    @given(samples=NAMED_SAMPLES)
    def test_named_rows(self, samples: Samples):
        self.same(samples)

    @given(samples=TABLES)
    def test_tables(self, samples: Samples):
        self.same(samples)

    @given(samples=TARGETS)
    def test_targets(self, samples: Samples):
        self.same(samples)

    def test_other_layouts_and_types(self):
        x = np.arange(12.0).reshape(3, 4)
        for other in (x.T.copy().T, x[:, ::2], x[::-1], x.astype(np.float32), x.astype(">f8")):
            self.same(Samples(other, ["a", "b", "c"]))
            self.same(Samples(x, other[:, 0]))

    def test_what_is_as_it_should_be_is_not_copied(self):
        x, y = np.ones((3, 2)), np.ones(3)
        live = as_recorded(Samples(x, y))
        assert live.X is x
        assert live.y is y


def test_a_part_of_a_table_has_its_own_texts_alone():
    rows = [[f"text {k}", float(k), None] for k in range(100)]
    samples = read_samples({"x": rows, "y": [0] * 100}, prepared=True)
    part = slice_samples(samples, 40, 42)
    assert isinstance(part.X, Cells)
    assert part.X.texts == ("text 40", "text 41")
    assert part.X.text.tolist() == [[0, -1, -1], [1, -1, -1]]

"""Arrow IPC streams and Parquet files: what is read, and what is refused before it is built."""

import io
import struct
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.service.files import arrow as reader
from wolfstream.service.files.arrow import (
    Columns,
    ReaderMissing,
    TableBounds,
    read_arrow,
    read_parquet,
    read_table_file,
)
from wolfstream.service.files.labelled import open_data
from wolfstream.service.files.roles import Roles
from wolfstream.service.files.tables import rows_of_columns
from wolfstream.service.files.text import DataFileError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

BOUNDS = TableBounds(rows=10_000, columns=100, values=100_000, n_bytes=1 << 22)


def as_stream(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_parquet(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


FORMATS: list[tuple[Callable[[Any], bytes], Callable[[bytes, TableBounds], Columns]]] = [
    (as_stream, read_arrow),
    (as_parquet, read_parquet),
]
each_format = pytest.mark.parametrize(("write", "read"), FORMATS, ids=["arrow", "parquet"])


def plain(columns: Columns) -> dict[str, list[Any]]:
    return dict(zip(columns.names, map(list, columns.columns), strict=True))


def refused(read: Any, content: bytes, bounds: TableBounds = BOUNDS) -> str:
    """Return the refusal, which takes neither time nor memory."""
    start = time.monotonic()
    tracemalloc.start()
    with pytest.raises(DataFileError) as caught:
        read(content, bounds)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 << 20
    assert time.monotonic() - start < 20
    assert len(str(caught.value)) < 500
    return str(caught.value)


class TestValues:
    @each_format
    def test_every_type_that_is_read(self, write: Any, read: Any):
        table = pa.table(
            {
                "i": pa.array([1, -2, 2**53], pa.int64()),
                "gap": pa.array([1, None, 3], pa.int32()),
                "f": pa.array([0.5, float("nan"), -1.0], pa.float32()),
                "t": ["a", None, "ü"],
                "c": pa.array(["u", "v", "u"]).dictionary_encode(),
                "b": [True, None, False],
                "d": [date(2025, 3, 1)] * 3,
                "at": pa.array([1] * 3, pa.timestamp("ns", "UTC")),
                "m": [Decimal("1.50")] * 3,
                "n": pa.nulls(3),
            }
        )
        found = plain(read(write(table), BOUNDS))
        assert found.pop("f")[::2] == [0.5, -1.0]
        moment = datetime(1970, 1, 1, tzinfo=UTC).isoformat()
        assert found == {
            "i": [1, -2, 2**53],
            "gap": [1, None, 3],
            "t": ["a", None, "ü"],
            "c": ["u", "v", "u"],
            "b": [True, None, False],
            "d": ["2025-03-01"] * 3,
            "at": [moment] * 3,
            "m": [1.5] * 3,
            "n": [None] * 3,
        }

    @each_format
    def test_several_batches(self, write: Any, read: Any):
        table = pa.concat_tables([pa.table({"a": [k], "t": [str(k)]}) for k in range(5)])
        assert plain(read(write(table), BOUNDS)) == {
            "a": list(range(5)),
            "t": list(map(str, range(5))),
        }

    @each_format
    def test_roles(self, write: Any, read: Any):
        table = pa.table(
            {"__index_level_0__": [5, 6], "a": [1, 2], "Outcome": [1.0, 0.0], "w": [1, 2]}
        )
        rows = rows_of_columns(read(write(table), BOUNDS), Roles("Outcome", weight="w"), True)
        assert (rows.names, rows.labels, rows.weights) == (["a"], [1, 0], [1, 2])
        assert np.asarray(rows.X).tolist() == [[1.0], [2.0]]
        assert list(rows.unnamed) == [1]
        with pytest.raises(DataFileError, match="--label NAME: __index_level_0__, a, Outcome, w"):
            rows_of_columns(read(write(table), BOUNDS), Roles(), True)
        lacking = pa.table({"a": [1, 2], "y": ["u", None]})
        with pytest.raises(DataFileError, match="the label of row 2 is missing"):
            rows_of_columns(read(write(lacking), BOUNDS), Roles(), True)


class TestHostile:
    @each_format
    @pytest.mark.parametrize(
        "values",
        [
            [[1], [2]],
            [{"a": 1}, None],
            [b"bytes", b""],
            pa.array([[("k", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
        ],
        ids=["lists", "structures", "bytes", "maps"],
    )
    def test_types_that_are_no_values(self, write: Any, read: Any, values: Any):
        assert "numbers, texts, booleans and times are read" in refused(
            read, write(pa.table({"a": [1, 2], "b": values}))
        )

    @each_format
    def test_runs(self, write: Any, read: Any):
        if write is as_parquet:
            pytest.skip("Parquet has no such columns")
        runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**31 - 1], pa.int32()), pa.array(["a"]))
        assert refused(read, write(pa.table({"a": runs})))

    @each_format
    def test_columns(self, write: Any, read: Any):
        table = pa.table({f"c{k}": [1] for k in range(10_000)})
        assert "has 10,000 columns, at most 100 are possible" in refused(read, write(table))

    @each_format
    def test_rows(self, write: Any, read: Any):
        table = pa.table({"a": np.zeros(BOUNDS.rows + 1)})
        assert "has more than 10,000 rows" in refused(read, write(table))

    @each_format
    def test_rows_of_nothing(self, write: Any, read: Any):
        assert "has more than 10,000 rows" in refused(read, write(pa.table({"n": pa.nulls(2**20)})))

    @each_format
    def test_values(self, write: Any, read: Any):
        table = pa.table({f"c{k}": np.zeros(5000) for k in range(50)})
        assert "too many values" in refused(read, write(table))

    @each_format
    def test_a_text_that_many_rows_share(self, write: Any, read: Any):
        """It is made once; a dictionary is the cheapest way to write it."""
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * 5000), pa.array(["x" * (1 << 20)]))
        found = read(write(pa.table({"t": texts})), BOUNDS).columns[0]
        assert len(found) == 5000
        assert len({id(text) for text in found}) == 1

    def test_a_text_that_many_batches_share(self):
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * 900), pa.array(["x" * (1 << 20)]))
        sink = io.BytesIO()
        table = pa.table({"t": texts})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=1)
        assert "too many bytes unpacked" in refused(read_arrow, sink.getvalue())

    def test_views_of_a_text(self):
        views = struct.pack("<i4sii", 1 << 20, b"xxxx", 0, 0) * 5000
        texts = pa.StringViewArray.from_buffers(
            pa.string_view(), 5000, [None, pa.py_buffer(views), pa.py_buffer(b"x" * (1 << 20))]
        )
        assert "too many bytes unpacked" in refused(read_arrow, as_stream(pa.table({"t": texts})))

    @pytest.mark.parametrize("codec", ["zstd", "lz4"])
    def test_packed_buffers(self, codec: str):
        options = pa.ipc.IpcWriteOptions(compression=codec)
        content = as_stream(pa.table({"a": np.zeros(9000)}), options=options)
        assert "compress the body" in refused(read_arrow, content)

    @pytest.mark.parametrize("codec", ["zstd", "gzip", "brotli", "snappy"])
    def test_pages_that_unpack_to_more(self, codec: str):
        table = pa.table({"t": ["x" * (1 << 20)] * 20})
        content = as_parquet(table, compression=codec, use_dictionary=False)
        assert "bytes unpacked" in refused(read_parquet, content)

    def test_texts_that_repeat_what_came_before(self):
        table = pa.table({"t": ["x" * (1 << 20)] * 60})
        content = as_parquet(table, use_dictionary=False, column_encoding={"t": "DELTA_BYTE_ARRAY"})
        assert len(content) < 2 << 20
        assert "DELTA_BYTE_ARRAY" in refused(read_parquet, content)

    @each_format
    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
    def test_content_that_is_cut_off(self, write: Any, read: Any, share: float):
        content = write(pa.table({"a": np.arange(500), "t": ["text"] * 500}))
        cut = content[: int(len(content) * share)]
        try:
            found = read(cut, BOUNDS)
        except DataFileError:
            return
        assert write is as_stream  # whose end may be missing after a whole batch
        assert found.rows in (0, 500)

    @each_format
    @given(data=st.data())
    def test_any_change_is_read_or_refused(self, write: Any, read: Any, data: Any):
        table = pa.table({"a": [1.5, 2.5], "t": pa.array(["u", "v"]).dictionary_encode()})
        content = bytearray(write(table))
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        with suppress(DataFileError):
            read(bytes(content), BOUNDS)

    @pytest.mark.parametrize("read", [read_arrow, read_parquet])
    @given(content=st.binary(max_size=200))
    def test_any_bytes_are_read_or_refused(self, read: Any, content: bytes):
        with suppress(DataFileError):
            read(content, BOUNDS)

    @each_format
    def test_text_that_is_not_unicode(self, write: Any, read: Any):
        wrong = pa.StringArray.from_buffers(
            1, pa.py_buffer(struct.pack("<ii", 0, 3)), pa.py_buffer(b"\xed\xa0\x80")
        )
        assert refused(read, write(pa.table({"t": wrong})))

    @each_format
    def test_columns_of_one_name(self, write: Any, read: Any):
        table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
        assert "two columns are named 'a'" in refused(read, write(table))

    @each_format
    @pytest.mark.parametrize("year", [-2000, 100_000])
    def test_times_out_of_reach(self, write: Any, read: Any, year: int):
        seconds = (year - 1970) * 31_556_952
        table = pa.table({"t": pa.array([seconds * 1000], pa.timestamp("ms"))})
        assert refused(read, write(table))


class TestFiles:
    @pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", ""])
    def test_are_read_by_their_content(self, tmp_path: Path, suffix: str):
        table = pa.table({"a": [1, 2, 3], "t": ["u", None, "v"], "Outcome": ["x", "y", "x"]})
        path = tmp_path / f"a.{suffix}"
        if suffix == "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        else:
            path.write_bytes(as_stream(table) if suffix == "arrows" else as_parquet(table))
        assert plain(read_table_file(path))["t"] == ["u", None, "v"]
        data = open_data(path, Roles("Outcome"), texts=True)
        first, second = data.batches(2)
        assert (data.samples, data.features, data.names) == (3, 2, ("a", "t"))
        assert (first.X, first.labels) == ([[1, "u"], [2, None]], ["x", "y"])
        assert (second.X, second.labels) == ([[3, "v"]], ["x"])
        with pytest.raises(DataFileError, match="train with --algorithm adaptive"):
            open_data(path, Roles("Outcome"))

    def test_without_pyarrow(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "a.parquet").write_bytes(as_parquet(pa.table({"a": [1], "y": [2]})))

        def missing(name: str) -> Any:
            raise ImportError(name)

        monkeypatch.setattr(reader.importlib, "import_module", missing)
        with pytest.raises(ReaderMissing, match=r"pip install 'wolfstream\[arrow\]'"):
            open_data(tmp_path / "a.parquet")

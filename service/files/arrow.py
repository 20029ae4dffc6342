"""Arrow IPC streams and Parquet files as columns of plain values, bounded before they are built.

A few bytes of these formats can expand to any amount of memory: compressed pages, texts that many
rows share, columns of nulls with a billion rows. So the sizes that a file declares are added up
before it is read (`Message`, `parquet_pages`), a shared text is built once, and columns of
anything but numbers, texts, booleans and times are refused.

pyarrow is an optional dependency, imported where it is used.
"""

import importlib
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wolfstream.service.files.parquet_pages import unpacked_bytes
from wolfstream.service.files.text import DataFileError
from wolfstream.service.files.values import plain_value

# Indices of fields in the tables of Message.fbs and Schema.fbs.
_HEADER_TYPE, _HEADER = 1, 2
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_FIELDS, _NAME, _CHILDREN = 1, 0, 5
_SHOWN = 100  # characters of a column's name in messages
_LENGTH, _COMPRESSION = 0, 3
_DATA = 1
_MOST_MESSAGES = 1 << 16


def check_messages(content: bytes, most_rows: int, most_columns: int) -> None:
    """Raise DataFileError for too many rows, columns or messages, or compressed buffers."""
    ipc = importlib.import_module("pyarrow.ipc")
    rows = 0
    try:
        messages = ipc.MessageReader.open_stream(content)
        for number in range(_MOST_MESSAGES):
            try:
                message = _Table.root(messages.read_next_message().metadata.to_pybytes())
            except StopIteration:
                return
            kind, header = message.uint8(_HEADER_TYPE), message.table(_HEADER)
            if number == 0 and kind != _SCHEMA:
                raise DataFileError("the stream does not begin with a schema")
            if kind == _SCHEMA:
                _check_fields(header, most_columns)
            else:
                batch = header.table(_DATA) if kind == _DICTIONARY else header
                if batch.has(_COMPRESSION):
                    raise DataFileError(
                        "the buffers of the stream are compressed: write it without, and compress "
                        "the body (Content-Encoding: zstd)"
                    )
                rows += batch.int64(_LENGTH) if kind == _BATCH else 0
                if not 0 <= rows <= most_rows:
                    raise DataFileError(f"has more than {most_rows:,} rows; send fewer")
    except (ValueError, OSError, struct.error) as error:
        detail = str(error).partition("\n")[0][:200]
        raise DataFileError(f"is not an Arrow IPC stream that can be read: {detail}") from None
    raise DataFileError(f"the stream has more than {_MOST_MESSAGES:,} messages")


def _check_fields(schema: "_Table", most: int) -> None:
    fields = schema.vector(_FIELDS)
    if len(fields) > most:
        raise DataFileError(f"has {len(fields):,} columns, at most {most:,} are possible")
    nested = next((field for field in fields if field.vector(_CHILDREN)), None)
    if nested is not None:
        raise DataFileError(
            f"column {nested.text(_NAME)[:_SHOWN]!r} holds lists or structures: numbers, texts, "
            "booleans and times are read; leave it out, or split it into such"
        )


class _Table:
    """A table of a flatbuffer. Raises struct.error if the bytes end too early."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self._at = at  # the offset of the table
        self._fields = at - self._unpack("<i", at)  # the offset of the list of its fields
        self._n_bytes = self._unpack("<H", self._fields)  # the length of that list

    @classmethod
    def root(cls, content: bytes) -> "_Table":
        """Return the outermost table of a flatbuffer."""
        return cls(content, struct.unpack_from("<I", content)[0])

    def has(self, field: int) -> bool:
        """Return whether a field has a value."""
        return self._place(field) is not None

    def uint8(self, field: int) -> int:
        """Return a byte; 0 if the field has no value."""
        return self._number("<B", field)

    def int64(self, field: int) -> int:
        """Return a number; 0 if the field has no value."""
        return self._number("<q", field)

    def text(self, field: int) -> str:
        """Return a text; "" if the field has no value."""
        at = self._place(field)
        if at is None:
            return ""
        at += self._unpack("<I", at)
        begin = at + 4
        return self._content[begin : begin + self._unpack("<I", at)].decode(errors="replace")

    def table(self, field: int) -> "_Table":
        """Return a table. Raises DataFileError if the field has no value."""
        at = self._place(field)
        if at is None:
            raise DataFileError("a message of the stream is not complete")
        return _Table(self._content, at + self._unpack("<I", at))

    def vector(self, field: int) -> "list[_Table]":
        """Return the tables of a vector; [] if the field has no value."""
        at = self._place(field)
        if at is None:
            return []
        at += self._unpack("<I", at)
        places = range(at + 4, at + 4 + 4 * self._unpack("<I", at), 4)
        if places.stop > len(self._content):
            raise DataFileError("a message of the stream is not complete")
        return [_Table(self._content, place + self._unpack("<I", place)) for place in places]

    def _number(self, kind: str, field: int) -> int:
        at = self._place(field)
        return 0 if at is None else self._unpack(kind, at)

    def _place(self, field: int) -> int | None:
        slot = 4 + 2 * field
        offset = self._unpack("<H", self._fields + slot) if slot < self._n_bytes else 0
        return self._at + offset if offset else None

    def _unpack(self, kind: str, at: int) -> Any:
        if at < 0:
            raise DataFileError("a message of the stream is not complete")
        return struct.unpack_from(kind, self._content, at)[0]


ARROW_SUFFIXES = {".arrow", ".arrows", ".feather", ".ipc"}
PARQUET_SUFFIXES = {".parquet", ".pq"}


class ReaderMissing(DataFileError):
    """The package that reads these formats is not installed."""


class TableBounds(NamedTuple):
    """Bounds on a table: its rows, columns, total values, and unpacked bytes."""

    rows: int
    columns: int
    values: int
    n_bytes: int


# For a file on this machine, or a table already in memory.
_UNBOUNDED = TableBounds(2**40, 2**20, 2**40, 2**50)


class Columns(NamedTuple):
    """A table: each column is float64 without missing values, or a list of plain values."""

    names: list[str]
    columns: list[Any]
    rows: int


def read_arrow(content: bytes, bounds: TableBounds) -> Columns:
    """Return the table of an Arrow IPC stream. Raises DataFileError."""
    arrow = _arrow("pyarrow")
    check_messages(content, bounds.rows, bounds.columns)
    with _explained("an Arrow IPC stream"), arrow.ipc.open_stream(content) as reader:
        return _read(reader.schema, reader, bounds)


def read_parquet(content: bytes, bounds: TableBounds) -> Columns:
    """Return the table of a Parquet file. Raises DataFileError."""
    arrow, parquet = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    with _explained("a Parquet file"):
        source = arrow.BufferReader(content)
        file = parquet.ParquetFile(source, **_LIMITS)
        schema, metadata = file.schema_arrow, file.metadata
        _check_shape(metadata.num_rows, len(schema), bounds)
        _check_types(schema)
        unpacked_bytes(content, metadata, bounds.n_bytes, bounds.rows)
        texts = [field.name for field in schema if _is_text(field.type)]
        # Read as dictionaries, so a text that many rows share is built once.
        shared = parquet.ParquetFile(source, read_dictionary=texts, **_LIMITS)
        return _read(shared.schema_arrow, shared.iter_batches(use_threads=False), bounds)


def read_table_file(path: Path) -> Columns:
    """Return the table of a file on this machine, of any size. Raises DataFileError."""
    arrow = _arrow("pyarrow")
    if is_parquet(path):
        with _explained("a Parquet file"):
            file = _arrow("pyarrow.parquet").ParquetFile(path)
            return _read(file.schema_arrow, file.iter_batches(), _UNBOUNDED)
    with _explained("an Arrow file"), path.open("rb") as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = (arrow.ipc.open_file if is_file else arrow.ipc.open_stream)(source)
        return _read(reader.schema, reader.read_all().to_batches(), _UNBOUNDED)


def arrow_columns(table: Any) -> Columns:
    """Return the columns of a table already in memory. Raises DataFileError."""
    with _explained("a table"):
        batches = table.to_batches() if hasattr(table, "to_batches") else [table]
        return _read(table.schema, batches, _UNBOUNDED)


def unpacked_parquet(content: bytes, bounds: TableBounds) -> int:
    """Return the number of bytes that a Parquet file's pages unpack to. Raises DataFileError."""
    arrow, parquet = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    with _explained("a Parquet file"):
        metadata = parquet.ParquetFile(arrow.BufferReader(content), **_LIMITS).metadata
        return unpacked_bytes(content, metadata, bounds.n_bytes, bounds.rows)


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by its suffix or its first bytes."""
    return path.suffix in PARQUET_SUFFIXES or _begins(path, b"PAR1")


def is_arrow(path: Path) -> bool:
    """Return whether a file is Arrow IPC, by its suffix or its first bytes."""
    return path.suffix in ARROW_SUFFIXES or _begins(path, b"ARROW1", b"\xff\xff\xff\xff")


def _begins(path: Path, *marks: bytes) -> bool:
    with path.open("rb") as file:
        first = file.read(8)
    return first.startswith(marks)


def _read(schema: Any, batches: Iterable[Any], bounds: TableBounds) -> Columns:
    _check_types(schema)
    if len(set(schema.names)) < len(schema):
        twice = Counter(schema.names).most_common(1)[0][0]
        raise DataFileError(f"two columns are named {twice[:40]!r}: rename one of them")
    parts: list[list[Any]] = [[] for _ in schema]
    budget, rows = _Budget(bounds), 0
    for batch in batches:
        rows += batch.num_rows
        _check_shape(rows, len(schema), bounds)
        budget.spend(values=max(batch.num_rows, 1) * len(schema))
        for column, array in zip(parts, batch.columns, strict=True):
            column.append(_values(array, budget))
    return Columns(list(schema.names), [_joined(column) for column in parts], rows)


class _Budget:
    """The values and bytes that a table may still use."""

    def __init__(self, bounds: TableBounds) -> None:
        self._values, self._bytes = bounds.values, bounds.n_bytes

    def spend(self, values: int = 0, n_bytes: int = 0) -> None:
        """Subtract from the budget. Raises DataFileError if it is exceeded."""
        self._values -= values
        self._bytes -= n_bytes
        if self._values < 0:
            raise DataFileError("the table has too many values; send fewer rows")
        if self._bytes < 0:
            raise DataFileError("the table has too many bytes unpacked; send fewer rows")


def _check_shape(rows: int, columns: int, bounds: TableBounds) -> None:
    if rows > bounds.rows:
        raise DataFileError(f"has more than {bounds.rows:,} rows; send fewer")
    if columns > bounds.columns:
        raise DataFileError(f"has {columns:,} columns, at most {bounds.columns:,} are possible")


def _check_types(schema: Any) -> None:
    """Raise DataFileError for columns of anything but numbers, texts, booleans and times."""
    kinds = _arrow("pyarrow").types
    plain = (
        *(kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null),
        *(kinds.is_date, kinds.is_timestamp, kinds.is_time, kinds.is_duration, _is_text),
    )
    for field in schema:
        values = field.type.value_type if kinds.is_dictionary(field.type) else field.type
        if not any(is_kind(values) for is_kind in plain):
            raise DataFileError(
                f"column {field.name[:40]!r} has values of the type {str(field.type)[:60]}; "
                "numbers, texts, booleans and times are read: leave it out, or split it into such"
            )


def _is_text(kind: Any) -> bool:
    kinds = _arrow("pyarrow").types
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _values(array: Any, budget: _Budget) -> Any:
    """Return an array's values: as a numpy array if all are numbers, else as a list."""
    arrow = _arrow("pyarrow")
    kinds, kind = arrow.types, array.type
    if kinds.is_dictionary(kind):
        return _dictionary_values(array, budget)
    array.validate(full=True)
    numeric = kinds.is_integer(kind) or kinds.is_floating(kind)
    if numeric and not array.null_count:
        return array.to_numpy(zero_copy_only=False)
    if _is_text(kind):
        budget.spend(n_bytes=_text_bytes(array))
    if getattr(kind, "unit", "") == "ns":
        # Python's times have a resolution of microseconds.
        if kinds.is_timestamp(kind):
            array = array.cast(arrow.timestamp("us", kind.tz), safe=False)
        else:
            coarse = arrow.duration("us") if kinds.is_duration(kind) else arrow.time64("us")
            array = array.cast(coarse, safe=False)
    return [plain_value(value) for value in array.to_pylist()]


def _dictionary_values(array: Any, budget: _Budget) -> list[Any]:
    """Return the values of a dictionary array, each built once however many rows have it."""
    budget.spend(values=len(array.dictionary))
    array.validate(full=True)
    places = array.indices.to_pylist()
    used = sorted({place for place in places if place is not None})
    values = _values(array.dictionary.take(_arrow("pyarrow").array(used, "int64")), budget)
    if isinstance(values, np.ndarray):
        values = values.tolist()
    value_of = dict(zip(used, values, strict=True))
    return [None if place is None else value_of[place] for place in places]


def _text_bytes(array: Any) -> int:
    """Return the bytes of an array's texts; a text that several rows share counts for each."""
    offset, n = array.offset, len(array)
    buffers = array.buffers()
    if _arrow("pyarrow").types.is_string_view(array.type):
        views = np.frombuffer(buffers[1], np.int32)[4 * offset : 4 * (offset + n) : 4]
        return int(views.sum(dtype=np.int64))
    if not n:
        return 0
    wide = _arrow("pyarrow").types.is_large_string(array.type)
    ends = np.frombuffer(buffers[1], np.int64 if wide else np.int32)
    return int(ends[offset + n]) - int(ends[offset])


def _joined(parts: Sequence[Any]) -> Any:
    if not parts:
        return []
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [v for part in parts for v in (part.tolist() if isinstance(part, np.ndarray) else part)]


# Limits for Thrift, which reads the footer of a Parquet file.
_LIMITS = {"thrift_string_size_limit": 1 << 24, "thrift_container_size_limit": 1 << 20}


def _arrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ReaderMissing(
            "Arrow and Parquet are read with pyarrow, which is not installed: "
            "pip install 'wolfstream[arrow]'"
        ) from None


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn pyarrow's errors into a DataFileError that names the format."""
    try:
        yield
    except DataFileError:
        raise
    except (ValueError, OSError, ArithmeticError, LookupError, TypeError, RuntimeError) as error:
        detail = str(error).partition("\n")[0][:200]
        raise DataFileError(f"is not {what} that can be read: {detail}") from None

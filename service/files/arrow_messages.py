"""Checks the sizes that the messages of an Arrow IPC stream declare, from their metadata alone.

Arrow's reader allocates what a message declares before anything can check it: a column of nulls
with 2^60 rows takes forty bytes, and a compressed buffer can unpack to any size. The metadata is a
flatbuffer (https://arrow.apache.org/docs/format/Columnar.html), of which only counts are read here.
"""

import importlib
import struct
from typing import Any

from wolfstream.service.files.text import DataFileError

# Indices of fields in the tables of Message.fbs and Schema.fbs.
_HEADER_TYPE, _HEADER = 1, 2
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_FIELDS, _CHILDREN = 1, 5
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
    if any(field.vector(_CHILDREN) for field in fields):
        raise DataFileError(
            "a column holds lists or structures: numbers, texts, booleans and times are read; "
            "leave it out, or split it into such"
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

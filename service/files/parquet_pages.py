"""Adds up the unpacked sizes of a Parquet file's pages, from the header of each page.

The footer says how large columns are, but may be wrong: readers trust the page headers. A
header is a structure of Thrift's compact protocol
(https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
"""

from typing import Any

from wolfstream.service.files.text import DataFileError

# Field numbers in a page header: its sizes and, by kind of page, the number of its encoding.
_UNPACKED, _PACKED = 2, 3
_ENCODING_OF = {5: 2, 7: 2, 8: 4}
_VALUES = 1
# All except DELTA_BYTE_ARRAY, in which a few bytes can repeat a text any number of times.
_ENCODINGS = {0, 2, 3, 5, 6, 8, 9}
_MOST_PAGES = 1 << 16
_DEEPEST = 4  # levels of structures in a header
# Types of Thrift's compact protocol.
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (
    *({1: True, 2: False}, 3, {4, 5, 6}, 7, 8, {9, 10}, 12),
)


def unpacked_bytes(content: bytes, metadata: Any, most_bytes: int, most_rows: int) -> int:
    """Return the total unpacked bytes of the pages of all columns.

    Args:
        content: the file.
        metadata: its footer, as pyarrow reads it.
        most_bytes: bound on the unpacked bytes.
        most_rows: bound on the values of a page, unless the file is longer.

    Raises DataFileError.
    """
    total = pages = 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for column in range(row_group.num_columns):
            chunk = row_group.column(column)
            at = chunk.data_page_offset
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                at = min(at, chunk.dictionary_page_offset)
            end = at + chunk.total_compressed_size
            if not 0 <= at <= end <= len(content):
                raise DataFileError("the file ends before one of its columns")
            while at < end:
                pages += 1
                header = _Header(content, at, end)
                at = header.end + header.packed
                total += header.unpacked
                if header.values > most_rows and header.values > len(content):
                    raise DataFileError(f"a page has {header.values:,} values; send fewer rows")
                if total > most_bytes or pages > _MOST_PAGES:
                    raise DataFileError(
                        f"the file has more than {most_bytes:,} bytes unpacked, or more than "
                        f"{_MOST_PAGES:,} pages; send fewer rows"
                    )
            pages += 1
    return total


class _Header:
    """The header of a page.

    Attributes:
        end: the offset at which the header ends and the page begins.
        unpacked, packed: the size of the page, in bytes.
        values: the number of values in the page.
    """

    def __init__(self, content: bytes, at: int, end: int) -> None:
        self._content, self.end, self._stop = content, at, end
        fields = self._struct(0)
        self.unpacked, self.packed = fields.get(_UNPACKED, -1), fields.get(_PACKED, -1)
        self.values = 0
        for kind, encoding in _ENCODING_OF.items():
            if isinstance(details := fields.get(kind), dict):
                self.values = details.get(_VALUES, 0)
                if details.get(encoding, 0) not in _ENCODINGS:
                    raise DataFileError(
                        "a column is encoded as DELTA_BYTE_ARRAY, or in a way that is not known; "
                        "write it with a dictionary or plain"
                    )
        sizes = (self.unpacked, self.packed, self.values)
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise DataFileError("the header of a page is damaged")

    def _struct(self, depth: int) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while byte := self._byte():
            number = number + (byte >> 4) if byte >> 4 else self._integer()
            fields[number] = self._value(byte & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise DataFileError("the header of a page is damaged")
        if kind in _BOOLEANS:
            return _BOOLEANS[kind]
        if kind == _BYTE:
            return self._byte()
        if kind in _INTEGERS:
            return self._integer()
        if kind == _DOUBLE:
            return self._skip(8)
        if kind == _BINARY:
            return self._skip(self._unsigned())
        if kind == _STRUCT:
            return self._struct(depth + 1)
        if kind in _LISTS:
            byte = self._byte()
            count = byte >> 4 if byte >> 4 < 15 else self._unsigned()
            return [self._value(byte & 15, depth + 1) for _ in range(min(count, self._stop))]
        raise DataFileError("the header of a page is damaged")

    def _byte(self) -> int:
        if self.end >= self._stop:
            raise DataFileError("the header of a page is damaged")
        self.end += 1
        return self._content[self.end - 1]

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise DataFileError("the header of a page is damaged")

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, count: int) -> None:
        self.end += count
        if self.end > self._stop:
            raise DataFileError("the header of a page is damaged")

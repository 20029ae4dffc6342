"""svmlight files, read as checked sparse rows and labels."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from wolfstream.service.files.text import (
    LONGEST_ROW,
    MAX_FEATURES,
    DataFileError,
    Record,
    RowLines,
    TextSource,
    Watch,
    check_label,
    first_row,
    number_in,
)
from wolfstream.solver.rows.matrix import Matrix, sparse_from_csr

Entries = tuple[list[int], list[float]]

_LARGEST_INDEX = 2**31 - 2
_LONGEST_INDEX = 100
_ENTRY = re.compile(r"(\d+|qid):")
_SVMLIGHT_LINE = re.compile(r"\S+(\s+(\d+|qid):\S+)+\s*(#.*)?$")


def looks_like_svmlight(source: TextSource) -> bool:
    """Return whether the first line that is not a comment has the form `label index:value ...`."""
    with source.open(encoding="utf-8-sig") as file:
        line = first_row(file, LONGEST_ROW, comment="#")
    return _SVMLIGHT_LINE.match(line) is not None


class SvmlightText:
    """An svmlight file; iterating yields the entries of each row, and its label as text.

    Args:
        source: the text.
        width: the number of features; None for what the largest index needs.
        sparse: whether matrices are sparse; only the width of dense ones is bounded.
        first_index: the index of the first feature, 0 or 1; None for 0 if that index occurs, which
            is known once all lines have been read.
        labelled: whether each line begins with a label; if False, a label is ignored.
        watch: called repeatedly with the number of bytes read so far.
        longest_row: bound on the characters of a row; see `RowLines`.

    Attributes:
        line: the line, from 1, of the last yielded row.
    """

    def __init__(
        self,
        source: TextSource,
        width: int | None,
        sparse: bool = False,
        first_index: int | None = None,
        labelled: bool = True,
        watch: Watch | None = None,
        *,
        longest_row: int | None = LONGEST_ROW,
    ) -> None:
        self._source, self._watch, self.line = source, watch, 0
        self._longest_row = longest_row
        self.labelled = labelled
        self._width, self._sparse, self._first_index = width, sparse, first_index
        # The smallest index so far, at most 1, and the largest.
        self._smallest, self._largest = 1, 0

    @property
    def first_index(self) -> int:
        """The index of the first feature, once all lines have been read."""
        return min(self._smallest, 1) if self._first_index is None else self._first_index

    def features(self) -> int:
        """Return the number of features, once all lines have been read."""
        first = self.first_index
        width = self._width or self._largest + 1 - first
        if self._smallest < first:
            raise DataFileError("index 0 occurs, where features are numbered from 1")
        if width < 1:
            raise DataFileError("no line has a feature")
        if first + width <= self._largest:
            raise DataFileError(f"indices go up to {self._largest}: more than {width} features")
        return width

    def matrix(self, rows: Sequence[Entries]) -> Matrix:
        """Return some of the rows as one matrix."""
        ends = np.cumsum([0, *(len(indices) for indices, _ in rows)])
        column = np.array([i for indices, _ in rows for i in indices], np.int64) - self.first_index
        value = np.array([value for _, values in rows for value in values], np.float64)
        if self._sparse:
            return sparse_from_csr(value, column, ends, self.features())
        X = np.zeros((len(rows), self.features()))
        X[np.repeat(np.arange(len(rows)), np.diff(ends)), column] = value
        return X

    def __iter__(self) -> Iterator[Record]:
        with self._source.open(encoding="utf-8-sig") as file:
            lines = RowLines(file, self._longest_row, self._watch)
            for number, line in enumerate(lines, 1):
                lines.end_row()
                fields = line.split("#", 1)[0].split()
                if not fields:
                    continue
                self.line = number
                if self.labelled:
                    check_label("" if _ENTRY.match(fields[0]) else fields[0], number)
                has_label = self.labelled or ":" not in fields[0]
                label = fields[0] if self.labelled else ""
                yield Record(self._entries(fields[has_label:], number), label)

    def _entries(self, fields: list[str], line: int) -> Entries:
        if fields and fields[0].startswith("qid:"):
            fields = fields[1:]
        entries = [_entry(field, line) for field in fields]
        indices = [index for index, _ in entries]
        if any(left >= right for left, right in pairwise(indices)):
            raise DataFileError("indices must grow from left to right", line)
        if indices:
            self._check_index(indices[-1], line)
            self._smallest = min(self._smallest, indices[0])
            self._largest = max(self._largest, indices[-1])
        return indices, [value for _, value in entries]

    def _check_index(self, largest: int, line: int) -> None:
        if not self._sparse and largest > MAX_FEATURES:
            raise DataFileError(
                f"index {largest}: rows are made dense, so at most {MAX_FEATURES:,} features "
                "are possible",
                line,
            )
        if largest > _LARGEST_INDEX:
            raise DataFileError(f"index {largest} is larger than {_LARGEST_INDEX}", line)


def _entry(field: str, line: int) -> tuple[int, float]:
    index, _, text = field.partition(":")
    value = number_in(text)
    if not index.isdecimal() or len(index) > _LONGEST_INDEX or value is None:
        raise DataFileError(f"{field[:40]!r} is not index:number", line)
    return int(index), value

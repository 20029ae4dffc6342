"""Labelled samples in text: the lines of CSV (RFC 4180) and svmlight files, checked.

The text may also come from elsewhere than from a file (`TextSource`).
"""

import csv
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import NoReturn, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

from solver.rows import Matrix, sparse_from_csr

Float64Array = NDArray[np.float64]
Entries = tuple[list[int], list[float]]
Watch = Callable[[int], None]

MAX_FEATURES = 10_000
"""Widest row of a sparse format that is made dense: all its zeros are sent or stored too."""

LABEL_COLUMNS = ("y", "label", "class", "target")

_LARGEST_INDEX = 2**31 - 2
_LONGEST_INDEX = 100
_LINES_BETWEEN_LOOKS = 512
_NOT_A_NUMBER = {"nan", "inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"}
_ENTRY = re.compile(r"(\d+|qid):")
_SVMLIGHT_LINE = re.compile(r"\S+(\s+(\d+|qid):\S+)+\s*(#.*)?$")


class DataFileError(Exception):
    """A file that cannot be used: what is wrong, on which line if it is one, and the cure."""

    def __init__(self, detail: str, line: int | None = None) -> None:
        super().__init__(detail if line is None else f"line {line}: {detail}")
        self.line = line


def number_in(text: str) -> float | None:
    """The finite number that `text` is, or None; Python's 1_000 is not one in a data file."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


class TextSource(Protocol):
    """What can be opened and read from its beginning, as often as wanted: a path, for one."""

    def open(self, *, encoding: str, newline: str | None = None) -> TextIO:
        """The text."""


class CsvText:
    """A CSV file with the place of its label; iterating gives each row and its label's text.

    line: where the row that iterating gave last ends, counted from 1.
    label_column: name or number (from 1) of the label's column, see `datafiles.open_data`.
    labelled: False where no column is a label; the text is "" then.
    unlabelled_columns: a file of so many columns has no label.
    watch: told now and then how many bytes have been read.
    """

    def __init__(
        self,
        source: TextSource,
        label_column: str | None,
        labelled: bool = True,
        unlabelled_columns: int | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._source, self._watch, self.line = source, watch, 0
        first = next((row for _, row in self._records()), None)
        if first is None:
            raise DataFileError("is empty")
        self.columns = len(first)
        self.labelled = labelled and (
            label_column is not None or self.columns != unlabelled_columns
        )
        names = [name.strip() for name in first]
        self.label, self.has_header = len(first), _all_words(names)
        if self.labelled:
            if len(first) < 2:
                detail = "there is one column; a label and at least one number are needed"
                raise DataFileError(detail, 1)
            self.label, self.has_header = _find_label(names, label_column)

    def features(self) -> int:
        """The number of features."""
        return self.columns - self.labelled

    def matrix(self, rows: Sequence[Float64Array]) -> Matrix:
        """Some of the rows as one matrix."""
        return np.array(rows)

    def __iter__(self) -> Iterator[tuple[Float64Array, str]]:
        for line, row in islice(self._records(), int(self.has_header), None):
            self.line = line
            if len(row) != self.columns:
                detail = f"has {len(row)} columns, the first line has {self.columns}"
                raise DataFileError(detail, line)
            label = ""
            if self.labelled:
                label = row.pop(self.label).strip()
                _check_label(label, line)
            try:
                numbers = np.array(list(map(float, row)))
            except ValueError:
                self._refuse(line, row)
            if not np.isfinite(numbers).all() or "_" in "".join(row):
                self._refuse(line, row)
            yield numbers, label

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Records that are not blank, each with the line on which it ends."""
        with self._source.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(_watched(file, self._watch), strict=True)
            try:
                for row in reader:
                    if row:
                        yield reader.line_num, row
            except csv.Error as error:
                raise DataFileError(f"is not CSV: {error}", reader.line_num) from None

    def _refuse(self, line: int, row: list[str]) -> NoReturn:
        place = next(i for i, field in enumerate(row) if number_in(field) is None)
        field = row[place].strip()
        column = place + 1 + (place >= self.label)
        what = f"{field[:40]!r} is not a finite number" if field else "a number is missing"
        raise DataFileError(f"column {column}: {what}", line)


def _watched(file: TextIO, watch: Watch | None) -> Iterator[str]:
    for number, line in enumerate(file):
        if watch and number % _LINES_BETWEEN_LOOKS == 0:
            watch(file.buffer.tell())
        yield line


def _check_label(label: str, line: int) -> None:
    if not label or label.lower() in _NOT_A_NUMBER:
        raise DataFileError(f"the label is {label or 'missing'}", line)


def _find_label(names: list[str], wanted: str | None) -> tuple[int, bool]:
    """The label's place among the first record's fields, and whether that record is a header."""
    if wanted is not None and wanted in names and not wanted.isdigit():
        return names.index(wanted), True
    if wanted is not None:
        if not wanted.isdigit() or not 1 <= int(wanted) <= len(names):
            raise DataFileError(f"there is no column {wanted!r}: {','.join(names)[:200]}", 1)
        label = int(wanted) - 1
    else:
        named = [i for i, name in enumerate(names) if name.lower() in LABEL_COLUMNS]
        if len(named) > 1:
            both = " and ".join(names[i] for i in named)
            raise DataFileError(
                f"{both} could each be the label: rename one, or choose with --label-column", 1
            )
        if named:
            return named[0], True
        label = len(names) - 1
    return label, _all_words(names[:label] + names[label + 1 :])


def _all_words(names: list[str]) -> bool:
    return all(name and number_in(name) is None for name in names)


def looks_like_svmlight(path: Path) -> bool:
    """Whether the first line that is not a comment reads `label index:value ...`."""
    with path.open(encoding="utf-8-sig") as file:
        first = next((line for line in file if line.split("#")[0].strip()), "")
    return _SVMLIGHT_LINE.match(first) is not None


class SvmlightText:
    """An svmlight file; iterating gives the entries of each row, and its label's text.

    line: that of the row that iterating gave last, counted from 1.
    width: number of features, by default what the largest index needs.
    sparse: whether matrices are sparse; only dense ones have a bound on the width.
    first_index: 0 or 1, the index of the first feature; by default 0 if that index occurs,
        which is known once all lines have been read.
    labelled: False where lines may begin with an entry; a label is passed over then.
    watch: told now and then how many bytes have been read.
    """

    def __init__(
        self,
        source: TextSource,
        width: int | None,
        sparse: bool = False,
        first_index: int | None = None,
        labelled: bool = True,
        watch: Watch | None = None,
    ) -> None:
        self._source, self._watch, self.line = source, watch, 0
        self.labelled = labelled
        self._width, self._sparse, self._given_first = width, sparse, first_index
        self._smallest, self._largest = 1, 0

    @property
    def first_index(self) -> int:
        """The index of the first feature, once all lines have been read."""
        return min(self._smallest, 1) if self._given_first is None else self._given_first

    def features(self) -> int:
        """The number of features, once all lines have been read."""
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
        """Some of the rows as one matrix."""
        ends = np.cumsum([0, *(len(indices) for indices, _ in rows)])
        column = np.array([i for indices, _ in rows for i in indices], np.int64) - self.first_index
        value = np.array([value for _, values in rows for value in values], np.float64)
        if self._sparse:
            return sparse_from_csr(value, column, ends, self.features())
        X = np.zeros((len(rows), self.features()))
        X[np.repeat(np.arange(len(rows)), np.diff(ends)), column] = value
        return X

    def __iter__(self) -> Iterator[tuple[Entries, str]]:
        with self._source.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(_watched(file, self._watch), 1):
                fields = line.split("#", 1)[0].split()
                if not fields:
                    continue
                self.line = number
                if self.labelled:
                    _check_label("" if _ENTRY.match(fields[0]) else fields[0], number)
                has_label = self.labelled or ":" not in fields[0]
                label = fields[0] if self.labelled else ""
                yield self._entries(fields[has_label:], number), label

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

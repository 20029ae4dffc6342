"""Labelled samples in text: the lines of CSV (RFC 4180) and svmlight files, checked."""

import csv
import math
import re
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]

MAX_FEATURES = 10_000
"""Widest row of a sparse format: the server takes dense rows, so the zeros are sent too."""

LABEL_COLUMNS = ("y", "label", "class", "target")

_NOT_A_NUMBER = {"nan", "inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"}
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


class CsvText:
    """A CSV file with the place of its label; iterating gives each row and its label's text."""

    def __init__(self, path: Path, label_column: str | None) -> None:
        self.path = path
        first = next((row for _, row in self._records()), None)
        if first is None:
            raise DataFileError("is empty")
        if len(first) < 2:
            detail = "there is one column; a label and at least one number are needed"
            raise DataFileError(detail, 1)
        self.columns = len(first)
        self.label, self.has_header = _find_label([name.strip() for name in first], label_column)

    def features(self, widest: int) -> slice:
        """Which places of the rows are features, once all lines have been read."""
        return slice(0, widest)

    def __iter__(self) -> Iterator[tuple[Float64Array, str]]:
        for line, row in islice(self._records(), int(self.has_header), None):
            if len(row) != self.columns:
                detail = f"has {len(row)} columns, the first line has {self.columns}"
                raise DataFileError(detail, line)
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
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
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
            raise DataFileError(f"{both} could each be the label: choose with --label-column", 1)
        if named:
            return named[0], True
        label = len(names) - 1
    others = names[:label] + names[label + 1 :]
    return label, all(name and number_in(name) is None for name in others)


def looks_like_svmlight(path: Path) -> bool:
    """Whether the first line that is not a comment reads `label index:value ...`."""
    with path.open(encoding="utf-8-sig") as file:
        first = next((line for line in file if line.split("#")[0].strip()), "")
    return _SVMLIGHT_LINE.match(first) is not None


class SvmlightText:
    """An svmlight file; iterating gives each row as far as it is written, and its label's text.

    Place k of a row is index k; whether indices start at 0 or 1 is known at the file's end.
    """

    def __init__(self, path: Path, width: int | None) -> None:
        self.path = path
        self.width = width
        self.zero_based = False

    def features(self, widest: int) -> slice:
        """Which places of the rows are features, once all lines have been read."""
        first = 0 if self.zero_based else 1
        width = self.width or widest - first
        if width < 1:
            raise DataFileError("no line has a feature")
        if first + width < widest:
            raise DataFileError(f"indices go up to {widest - 1}: more than {width} features")
        return slice(first, first + width)

    def __iter__(self) -> Iterator[tuple[Float64Array, str]]:
        with self.path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                label, *fields = line.split("#", 1)[0].split() or [""]
                if label:
                    _check_label(label, number)
                    yield self._row(fields, number), label

    def _row(self, fields: list[str], line: int) -> Float64Array:
        if fields and fields[0].startswith("qid:"):
            fields = fields[1:]
        entries = [_entry(field, line) for field in fields]
        indices = [index for index, _ in entries]
        if any(left >= right for left, right in pairwise(indices)):
            raise DataFileError("indices must grow from left to right", line)
        if indices and indices[-1] > MAX_FEATURES:
            raise DataFileError(
                f"index {indices[-1]}: rows are sent dense, so at most {MAX_FEATURES:,} features "
                "are possible",
                line,
            )
        self.zero_based = self.zero_based or indices[:1] == [0]
        row = np.zeros(indices[-1] + 1 if indices else 1)
        row[indices] = [value for _, value in entries]
        return row


def _entry(field: str, line: int) -> tuple[int, float]:
    index, _, text = field.partition(":")
    value = number_in(text)
    if not index.isdecimal() or value is None:
        raise DataFileError(f"{field[:40]!r} is not index:number", line)
    return int(index), value

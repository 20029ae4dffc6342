"""CSV files (RFC 4180), also with semicolons or tabs: their lines as rows and labels, checked."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NoReturn

import numpy as np

from wolfstream.service.files.text import (
    LONGEST_ROW,
    MISSING,
    DataFileError,
    RowLines,
    TextSource,
    Watch,
    check_label,
    first_row,
    is_not_finite,
    number_in,
)
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix

LABEL_COLUMNS = ("y", "label", "class", "target")
_QUOTED = re.compile(r'"[^"]*"')


class CsvText:
    """A CSV file with the place of its label; iterating yields each row and its label's text.

    Fields are separated by commas, or where the first line has none by semicolons or tabs.

    line: where the row that iterating gave last ends, counted from 1.
    label_column: name or number (from 1) of the label's column, see `labelled.open_data`.
    labelled: False where no column is a label; the text is "" then.
    unlabelled_columns: a file with this many columns has no label.
    watch: called now and then with how many bytes have been read.
    texts: whether fields may be texts, or missing; rows that are not all numbers are lists then.
    longest_row: its characters at most; see `RowLines`.
    """

    def __init__(
        self,
        source: TextSource,
        label_column: str | None,
        labelled: bool = True,
        unlabelled_columns: int | None = None,
        watch: Watch | None = None,
        *,
        texts: bool = False,
        longest_row: int | None = LONGEST_ROW,
    ) -> None:
        self._source, self._watch, self._texts, self.line = source, watch, texts, 0
        self._longest_row = longest_row
        self._delimiter = _delimiter(source, longest_row)
        first = next((row for _, row in self._records()), None)
        if first is None:
            raise DataFileError("is empty")
        self.columns = len(first)
        self.labelled = labelled and (
            label_column is not None or self.columns != unlabelled_columns
        )
        self._names = names = [name.strip() for name in first]
        self.label, self.has_header = len(first), _all_words(names)
        if self.labelled:
            if len(first) < 2:
                detail = (
                    "there is one column, and a label and at least one number are needed; commas, "
                    "semicolons or tabs separate columns"
                )
                raise DataFileError(detail, 1)
            self.label, self.has_header = _find_label(names, label_column)
        if self.has_header:
            _refuse_repeated(names)

    def features(self) -> int:
        """Return the number of features."""
        return self.columns - self.labelled

    @property
    def names(self) -> list[str] | None:
        """The features' names; None without a header. One that is empty is named by its place."""
        if not self.has_header:
            return None
        names = [name or f"column {i}" for i, name in enumerate(self._names, 1)]
        return [name for i, name in enumerate(names) if not self.labelled or i != self.label]

    def matrix(self, rows: Sequence[Float64Array]) -> Matrix:
        """Return some of the rows as one matrix."""
        return np.array(rows)

    def __iter__(self) -> Iterator[tuple[Any, str]]:
        for line, row in islice(self._records(), int(self.has_header), None):
            self.line = line
            if len(row) != self.columns:
                detail = f"has {len(row)} columns, the first line has {self.columns}"
                raise DataFileError(detail, line)
            label = ""
            if self.labelled:
                label = row.pop(self.label).strip()
                check_label(label, line)
            try:
                numbers = np.array(list(map(float, row)))
                plain = bool(np.isfinite(numbers).all()) and "_" not in "".join(row)
            except ValueError:
                plain = False
            if plain:
                yield numbers, label
            elif self._texts:
                yield [self._value(line, row, place) for place in range(len(row))], label
            else:
                self._refuse(line, row)

    def _value(self, line: int, row: list[str], place: int) -> float | str | None:
        """Return a field's number, its text, or None if a value is missing."""
        field = row[place].strip()
        if field.lower() in MISSING:
            return None
        number = number_in(field)
        if number is None and is_not_finite(field) and any(map(str.isdigit, field)):
            self._refuse(line, row, place)
        return field if number is None else number

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Records that are not blank, each with the line on which it ends."""
        with self._source.open(encoding="utf-8-sig", newline="") as file:
            lines = RowLines(file, self._longest_row, self._watch)
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
            try:
                for row in reader:
                    lines.end_row()
                    if row:
                        yield reader.line_num, row
            except csv.Error as error:
                raise DataFileError(f"is not CSV: {error}", reader.line_num) from None

    def _refuse(self, line: int, row: list[str], place: int | None = None) -> NoReturn:
        if place is None:
            place = next(i for i, field in enumerate(row) if number_in(field) is None)
        field = row[place].strip()
        column = place + (place >= self.label)
        name = f" ({self._names[column][:40]})" if self.has_header else ""
        what = _no_number(field, self._delimiter)
        raise DataFileError(f"column {column + 1}{name}: {what}", line)


def _delimiter(source: TextSource, longest_row: int | None) -> str:
    """Return the comma, unless the first line has none and one of the others."""
    with source.open(encoding="utf-8-sig", newline="") as file:
        first = first_row(file, longest_row)
    unquoted = _QUOTED.sub("", first)
    return next((delimiter for delimiter in ",;\t" if delimiter in unquoted), ",")


def _no_number(field: str, delimiter: str) -> str:
    """Return what is wrong with a field that is no number, and what to do."""
    given = repr(field[:40])
    if field.lower() in MISSING:
        what = f"{given} is not a finite number" if field else "a number is missing"
        return f"{what}; fill it in, or train with --algorithm adaptive, which takes missing values"
    if is_not_finite(field) or number_in(field.replace("_", "")) is not None:
        return f"{given} is not a finite number"
    if field.count(",") == 1 and number_in(field.replace(",", ".")) is not None:
        return f"{given} has a decimal comma; write it with a point"
    if delimiter == "," and ";" in field:
        return f"{given} holds the separator ';': numbers need decimal points"
    return (
        f"{given} is not a finite number; leave the column out, write its words as numbers (0 and "
        "1 in a column for each word), or train with --algorithm adaptive, which learns words"
    )


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
        exact = [i for i in named if names[i] in LABEL_COLUMNS]
        if len(named) > 1 and len(exact) == 1:  # Y beside y
            return exact[0], True
        if len(named) > 1:
            both = " and ".join(names[i] for i in named)
            raise DataFileError(
                f"{both} could each be the label: rename one, or choose with --label-column", 1
            )
        if named:
            return named[0], True
        label = len(names) - 1
    return label, _all_words(names[:label] + names[label + 1 :])


def _refuse_repeated(names: list[str]) -> None:
    """Raise DataFileError for a header that names two columns alike."""
    place_of: dict[str, int] = {}
    for place, name in enumerate(names):
        first = place_of.setdefault(name, place)
        if name and first < place:
            detail = (
                f"columns {first + 1} and {place + 1} are both named {name[:40]!r}: rename one of "
                "them, or leave one out"
            )
            raise DataFileError(detail, 1)


def _all_words(names: list[str]) -> bool:
    """Return whether a line may be a header: words, of which one may be empty, as of an index."""
    given = [name for name in names if name]
    return len(given) >= max(1, len(names) - 1) and all(number_in(one) is None for one in given)

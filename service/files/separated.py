"""CSV files (RFC 4180), also with semicolons, tabs, bars or spaces, read as checked rows."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NoReturn

import numpy as np

from wolfstream.service.files.layout import (
    ROWS_READ,
    SPACES,
    find_layout,
    lines_to_divide,
    without_mark,
)
from wolfstream.service.files.left_out import LeftOut, left_out_parts
from wolfstream.service.files.roles import (
    LABEL_COLUMNS,
    NO_ROLES,
    RolePlaces,
    Roles,
    find_roles,
    listed_columns,
)
from wolfstream.service.files.text import (
    LONGEST_ROW,
    MISSING,
    DataFileError,
    Record,
    RowLines,
    TextSource,
    Watch,
    cell_value,
    check_label,
    is_not_finite,
    number_in,
    read_id,
)
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix

_NO_FEATURES = (
    "there is no column besides the label, and at least one is needed; commas, semicolons, tabs, "
    "bars (|) or spaces separate columns"
)
# What a cell says of a last row that has sums, or means, of the rows above it.
_SUM = re.compile(
    r"(?:(?:grand |sub-?|overall )?totals?|sums?|averages?|means?|gesamt(?:summe)?|summe|insgesamt"
    r"|mittelwert|durchschnitt|total g[ée]n[ée]ral|totaux|somme|moyenne|totale|somma|media|suma"
    r"|promedio|soma|totaal|razem)\s*:?",
    re.IGNORECASE,
)
# A sum may be of numbers that were rounded.
_ROUNDED = 1e-3
# A number with a decimal comma, also 1,234, and one that has commas between thousands.
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[^\d]*\d{1,3}(?:(?:,\d{3}){2,}|,\d{3}\.\d*)[^\d]*")
# What the reader says of a cell whose quotation mark nothing ends.
_UNENDED = "unexpected end of data"
# `RowLines` and the bounds on bodies bound what a cell may have; the module's own limit, which is
# one of the whole process, would refuse long texts.
csv.field_size_limit(2**31 - 1)


class CsvText:
    """A CSV file; iterating yields its records.

    `find_layout` tells what separates fields, and which records stand above the header. Columns
    without a name in the header, such as an index written by pandas, are left out, and columns of
    one name that follow each other are one, of lists. Where semicolons separate columns and numbers
    have decimal commas, labels have them, too. A last row of sums is no sample.

    Args:
        source: the text.
        roles: the columns that are not features.
        labelled: whether there must be labels; None if they may be missing.
        unlabelled_columns: a file with this many columns has no label, unless one is named.
        watch: called repeatedly with the number of bytes read so far.
        texts: whether fields may be texts or missing; a row that is not all numbers is then a
            list.
        longest_row: bound on the characters of a row; see `RowLines`.
        features: whether there must be at least one feature.

    Attributes:
        line: the line, from 1, on which the last yielded row ends.
        columns: the number of columns, including those that are not features.
        has_header: whether the first row names the columns.
        titles: the number of lines above the header that are titles or notes, and left out.
        sums: the last line, if it has sums and was left out; 0 otherwise, and before it is read.
        delimiter: what separates columns; see `find_layout`.
        labelled: whether records have labels.
    """

    def __init__(
        self,
        source: TextSource,
        roles: Roles = NO_ROLES,
        labelled: bool | None = True,
        unlabelled_columns: int | None = None,
        watch: Watch | None = None,
        *,
        texts: bool = False,
        longest_row: int | None = LONGEST_ROW,
        features: bool = True,
    ) -> None:
        self._source, self._watch, self._texts, self.line = source, watch, texts, 0
        self._longest_row = longest_row
        self._layout = find_layout(source, roles, longest_row)
        self.delimiter, self.sums = self._layout.delimiter, 0
        (header_line, first), *numbered = self._first_rows()
        self.titles = header_line - 1 if self._layout.titled else 0
        following = [row for _, row in numbered]
        self.columns = len(first)
        self._names = [name.strip() for name in first]
        self.has_header = _is_header(self._names, following, roles)
        below = _line_with(numbered, roles.label)
        self._roles = self._find_roles(roles, labelled, unlabelled_columns, below)
        self.labelled = labelled is not False and self._roles.label is not None
        self._lists = _lists(self._names, self._roles) if self.has_header else {}
        continued = {place for places in self._lists.values() for place in places[1:]}
        self._places = [
            place
            for place, name in enumerate(self._names)
            if place not in self._roles and (name or not self.has_header) and place not in continued
        ]
        self._decimal_commas = self._layout.delimiter == ";" and _have_decimal_commas(following)
        if features and not self._places:
            raise DataFileError(_NO_FEATURES, 1)

    @property
    def left_out(self) -> list[LeftOut]:
        """What of the file is left out without being refused."""
        return left_out_parts(self.titles, self.unnamed, self.sums)

    @property
    def unnamed(self) -> list[int]:
        """Numbers, from 1, of columns that are left out because they have no name."""
        return [i for i, name in enumerate(self._names, 1) if self.has_header and not name]

    def _first_rows(self) -> list[tuple[int, list[str]]]:
        rows = list(islice(self._records(), 1 + ROWS_READ))
        if not rows:
            raise DataFileError("is empty")
        return rows

    def _find_roles(
        self,
        roles: Roles,
        labelled: bool | None,
        unlabelled_columns: int | None,
        below: int | None,
    ) -> RolePlaces:
        if labelled is None and self.columns == unlabelled_columns and roles.label is None:
            labelled = False
        names, more = self._names, ""
        if not self.has_header:
            # Without a header, nothing else tells a label from a feature.
            labelled = True if labelled is None else labelled
            names = [str(number) for number in range(1, self.columns + 1)]
            more = f"; there is no header, and the first row is {listed_columns(self._names)}"
        try:
            return find_roles(names, roles, labelled)
        except DataFileError as error:
            if below is not None:
                more = f"; line {below} seems to be the header: leave out the lines above it"
            raise DataFileError(f"{error}{more}") from None

    def features(self) -> int:
        """Return the number of features."""
        return len(self._places)

    @property
    def names(self) -> list[str] | None:
        """The features' names; None without a header."""
        return [self._names[place] for place in self._places] if self.has_header else None

    def matrix(self, rows: Sequence[Float64Array]) -> Matrix:
        """Return some of the rows as one matrix."""
        return np.array(rows)

    def __iter__(self) -> Iterator[Record]:
        label_place, id_place, weight_place = self._roles
        labelled = label_place is not None and self.labelled
        for line, fields in self._rows():
            self.line = line
            if len(fields) != self.columns:
                top = "the header" if self._layout.above else "the first line"
                raise DataFileError(
                    f"has {len(fields)} columns, {top} has {self.columns}: leave the line out if "
                    "it is a note or a sum, and put a cell that has the separator "
                    f"{self._layout.delimiter!r} between quotation marks",
                    line,
                )
            label = ""
            if labelled and not any(map(str.strip, fields)):
                continue  # a spreadsheet's empty row
            if label_place is not None and labelled:
                label = fields[label_place].strip()
                if self._decimal_commas and _DECIMAL_COMMA.fullmatch(label):
                    label = label.replace(",", ".")
                check_label(label, line)
            for first, places in self._lists.items():
                cells = (fields[place].strip() for place in places)
                fields[first] = ", ".join(cell for cell in cells if cell)
            row = self._row(line, [fields[place] for place in self._places])
            weight = None if weight_place is None else self._weight(line, fields[weight_place])
            yield Record(row, label, weight, "" if id_place is None else read_id(fields[id_place]))

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, record) of each row below the header, without a last one of sums.

        Rows to predict are all predicted.
        """
        rows = islice(self._records(), int(self.has_header), None)
        if not self.labelled:
            yield from rows
            return
        last = next(rows, None)
        for row in rows:
            assert last is not None
            yield last
            last = row
        if last is not None and self._has_sums(*last):
            self.sums = last[0]
        elif last is not None:
            yield last

    def _has_sums(self, line: int, fields: list[str]) -> bool:
        """Return whether the last row has sums or means of the others, which are read again.

        It says so in one cell, which no row above it does, and has the sum or mean of a column of
        numbers, or nothing in half of its other cells.
        """
        words = [j for j, cell in enumerate(fields) if _SUM.fullmatch(cell.strip())]
        if len(words) != 1 or len(fields) != self.columns or not self.has_header:
            return False
        others = [j for j in range(self.columns) if j != words[0]]
        amounts = {j: amount for j in others if (amount := self._amount(fields[j]))}
        above, totals = 0, dict.fromkeys(amounts, 0.0)
        for number, row in islice(self._records(), 1, None):
            if number == line:
                break
            if len(row) != self.columns or _SUM.fullmatch(row[words[0]].strip()):
                return False
            above += 1
            for j in amounts:
                totals[j] += self._amount(row[j])
        empty = sum(not fields[j].strip() for j in others)
        return above > 1 and (
            2 * empty >= len(others)
            or any(_is_total(amounts[j], totals[j], above) for j in amounts)
        )

    def _amount(self, cell: str) -> float:
        """Return the number in a cell, perhaps with a unit or currency; 0 without one."""
        # Clients come without numerics, and need this for a last row of sums only.
        from wolfstream.solver.prepare.numerals import numeral, plain_number

        number = plain_number(cell.strip())
        quantity = numeral(cell, commas=self._decimal_commas) if number is None else None
        return (quantity.value if quantity else 0.0) if number is None else number

    def _row(self, line: int, row: list[str]) -> Any:
        """Return a row as an array of numbers, or as a list if not all values are numbers."""
        try:
            numbers = np.array(list(map(float, row)))
            plain = bool(np.isfinite(numbers).all()) and "_" not in "".join(row)
        except ValueError:
            plain = False
        if plain:
            return numbers
        if self._texts:
            return [cell_value(field, named=self.has_header) for field in row]
        return self._refuse(line, row)

    def _weight(self, line: int, field: str) -> float:
        weight = number_in(field)
        if weight is None:
            raise DataFileError(f"the weight is {field[:40]!r}, not a number", line)
        return weight

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, record) of each record of the table that is not blank.

        It ends on this line.
        """
        above, marked, ended = self._layout.above, self._layout.marked, 0
        with self._source.open(encoding="utf-8-sig", newline="") as file:
            lines = RowLines(file, self._longest_row, self._watch)
            reader = csv.reader(
                lines_to_divide(lines, self.delimiter),
                delimiter=self.delimiter,
                skipinitialspace=self.delimiter == SPACES,
                strict=True,
            )
            try:
                for row in reader:
                    lines.end_row()
                    ended = reader.line_num
                    if row and above:
                        above -= 1
                    elif row:
                        yield reader.line_num, without_mark(row) if marked else row
                        marked = False
            except csv.Error as error:
                detail = str(error)
                if detail == _UNENDED:
                    detail = (
                        "a quotation mark opens a field that nothing ends, in the row that begins "
                        f"on line {ended + 1}"
                    )
                raise DataFileError(f"is not CSV: {detail}", reader.line_num) from None

    def _refuse(self, line: int, row: list[str]) -> NoReturn:
        at = next(i for i, field in enumerate(row) if number_in(field) is None)
        column = self._places[at]
        name = f" ({self._names[column][:40]})" if self.has_header else ""
        what = _no_number(row[at].strip(), self._layout.delimiter)
        raise DataFileError(f"column {column + 1}{name}: {what}", line)


def _line_with(rows: Sequence[tuple[int, list[str]]], name: str | None) -> int | None:
    """Return the line of the first row that has a column's name, whatever separates columns."""
    if name is None or name.isdecimal():
        return None
    for line, row in rows:
        if name in row or any(name in re.split("[;\t|]", cell) for cell in row):
            return line
    return None


def _is_total(number: float, total: float, rows: int) -> bool:
    """Return whether a number is, but for rounding, the sum or mean of a column that has one."""
    return total != 0.0 and any(
        abs(number - of_all) <= _ROUNDED * abs(of_all) for of_all in (total, total / rows)
    )


def _no_number(field: str, delimiter: str) -> str:
    """Return what is wrong with a field that is not a number, and what to do."""
    shown = repr(field[:40])
    if field.lower() in MISSING:
        what = f"{shown} is not a finite number" if field else "a number is missing"
        return f"{what}; fill it in, or train with --algorithm adaptive, which takes missing values"
    if is_not_finite(field) or number_in(field.replace("_", "")) is not None:
        return f"{shown} is not a finite number"
    if field.count(",") == 1 and number_in(field.replace(",", ".")) is not None:
        return f"{shown} has a decimal comma; write it with a point"
    if delimiter == "," and ";" in field:
        return f"{shown} holds the separator ';': numbers need decimal points"
    return (
        f"{shown} is not a finite number; leave the column out, write its words as numbers (0 and "
        "1 in a column for each word), or train with --algorithm adaptive, which learns words"
    )


def _is_header(names: list[str], following: list[list[str]], roles: Roles) -> bool:
    """Return whether a file's first record names its columns.

    It does if it has the name of a label, or only words. It does not if most of its words recur in
    their columns: then it is the first of many rows of words.
    """
    wanted = {name for name in roles if name is not None and not name.isdecimal()}
    if not wanted.isdisjoint(names):
        return True
    words = {(i, name) for i, name in enumerate(names) if name and number_in(name) is None}
    again = set[tuple[int, str]]()
    for row in following:
        fields = [field.strip() for field in row]
        if fields != names:
            again |= words.intersection(enumerate(fields))
    if 2 * len(again) > len(words):
        return False
    if any(name.lower() in LABEL_COLUMNS for name in names):
        return True
    return bool(words) and len(words) == sum(map(bool, names))


def _have_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether numbers have decimal commas, and none a point or several commas."""
    cells = [cell.strip() for row in rows for cell in row]
    points = any("." in cell and number_in(cell) is not None for cell in cells)
    return any(map(_DECIMAL_COMMA.fullmatch, cells)) and not (
        points or any(map(_THOUSANDS.fullmatch, cells))
    )


def _lists(names: Sequence[str], roles: RolePlaces) -> dict[int, list[int]]:
    """Return the columns of each list, by the first of them.

    Columns of one name that follow each other are a list, as that of labels in exports of issues.

    Raises DataFileError for other columns of the same name, and for labels in a list.
    """
    first_of: dict[str, int] = {}
    lists: dict[int, list[int]] = {}
    for place, name in enumerate(names):
        first = first_of.setdefault(name, place)
        if not name or first == place:
            continue
        if names[place - 1] != name or first in roles or place in roles:
            detail = (
                f"columns {first + 1} and {place + 1} are both named {name[:40]!r}: rename one of "
                "them, or leave one out; if the first line is a row, put a line of names before it"
            )
            raise DataFileError(detail, 1)
        lists.setdefault(first, [first]).append(place)
    return lists

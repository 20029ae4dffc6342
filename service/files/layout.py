"""Finds what separates the columns of a CSV file, and the record that is its header.

Above a header, exports have titles, notes, or Excel's line `sep=;`. Such records are left out if
there is no doubt about the header: all of the first records from it on have the same number of
columns, it has a word for each, and the records above it have other numbers of columns, or one
filled cell at most, or end in a record of empty cells.
"""

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

from wolfstream.service.files.roles import Roles
from wolfstream.service.files.text import (
    DataFileError,
    RowLines,
    TextSource,
    first_row,
    number_in,
)

ROWS_READ = 20
"""Rows after the first that are read to tell how a file is laid out."""

_QUOTED = re.compile(r'"[^"]*"')
_DELIMITERS = ",;\t|"
_EXCELS = re.compile(rf'"?sep=([{re.escape(_DELIMITERS)}])"?[\r\n]*', re.IGNORECASE)
# As many rows as there are columns without a word in them are no titles.
_FEWEST_COLUMNS = 3


class Layout(NamedTuple):
    """How a file is laid out.

    Attributes:
        delimiter: the character that separates columns.
        above: the number of records above the header, or above the first row without one.
        titled: whether these are titles or notes.
    """

    delimiter: str
    above: int = 0
    titled: bool = False


def find_layout(source: TextSource, roles: Roles, longest_row: int | None) -> Layout:
    """Return the layout of a file, by its first records.

    Columns are separated by commas, semicolons, tabs or bars (|): by what the first line has or, if
    it has several of these, by what divides the first rows into most columns, as many in each; else
    by the first one of them.

    Args:
        source: the text.
        roles: the columns that are not features; a record with the name of one is the header.
        longest_row: bound on the characters of a row; see `RowLines`.
    """
    with source.open(encoding="utf-8-sig", newline="") as file:
        first = first_row(file, longest_row)
    if excels := _EXCELS.fullmatch(first):
        return Layout(excels[1], 1)
    unquoted = _QUOTED.sub("", first)
    candidates = [delimiter for delimiter in _DELIMITERS if delimiter in unquoted] or [","]
    rows_by = {each: _rows(source, longest_row, each) for each in candidates}
    delimiter = max(candidates, key=lambda each: _columns_of_all(rows_by[each]))
    wanted = {name for name in roles if name is not None and not name.isdecimal()}
    if _columns_of_all(rows_by[delimiter]) > 1 and not _may_be_title(rows_by[delimiter][0]):
        return Layout(delimiter)
    titled = []
    for each in _DELIMITERS:
        rows = rows_by[each] if each in rows_by else _rows(source, longest_row, each)
        if above := _records_above(rows, wanted):
            titled.append((len(rows[above]), Layout(each, above, True)))
    return max(titled, key=lambda found: found[0])[1] if titled else Layout(delimiter)


def _rows(source: TextSource, longest_row: int | None, delimiter: str) -> list[list[str]]:
    """Return the first records that are not blank; [] if they are not CSV."""
    rows = list[list[str]]()
    with source.open(encoding="utf-8-sig", newline="") as file:
        lines = RowLines(file, longest_row)
        try:
            for row in csv.reader(lines, delimiter=delimiter):
                lines.end_row()
                rows += [row] if row else []
                if len(rows) > ROWS_READ:
                    break
        except (csv.Error, DataFileError):
            return []
    return rows


def _columns_of_all(rows: Sequence[Sequence[str]]) -> int:
    """Return how many columns each of the rows has; 0 if they differ."""
    widths = set(map(len, rows))
    return widths.pop() if len(widths) == 1 else 0


def _may_be_title(row: Sequence[str]) -> bool:
    return len(row) >= _FEWEST_COLUMNS and 2 * _filled(row) <= len(row)


def _records_above(rows: Sequence[Sequence[str]], wanted: set[str]) -> int:
    """Return the number of records above the header; 0 if there are none, or it is in doubt."""
    if not rows or not wanted.isdisjoint(cell.strip() for cell in rows[0]):
        return 0
    width = len(rows[-1])
    header = len(rows) - 1
    while header and len(rows[header - 1]) == width:
        header -= 1
    blank = max((i for i, row in enumerate(rows) if not _filled(row)), default=-1)
    if all(2 * _filled(row) <= width for row in rows[: blank + 1]):
        header = max(header, blank + 1)
    while header + 1 < len(rows) and width >= _FEWEST_COLUMNS and _filled(rows[header]) <= 1:
        header += 1
    if not 0 < header < len(rows) - 1 or width < 2:
        return 0
    names = [cell.strip() for cell in rows[header]]
    words = [name for name in names if name and number_in(name) is None]
    return header if len(words) == width == len(set(words)) else 0


def _filled(row: Sequence[str]) -> int:
    return sum(1 for cell in row if cell.strip())

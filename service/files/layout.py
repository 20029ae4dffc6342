"""Finds what separates the columns of a CSV file, and the record that is its header.

Above a header, exports have titles, notes, or Excel's line `sep=;`. Such records are left out if
there is no doubt about the header: all of the first records from it on have the same number of
columns, it has a word for each but an index, and the records above it have other numbers of
columns, or one filled cell at most, or end in a record of empty cells, or are comments. The last
comment may itself be the header, behind its mark, as programs of numerics and of servers write it.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from operator import itemgetter
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

SPACES = " "
"""The delimiter of columns between which there are one or more spaces or tabs."""

_QUOTED = re.compile(r'"[^"]*"')
_DELIMITERS = ",;\t|"
# The mark of a comment that may be a header, alone or before the first name.
_MARK = re.compile(r"#(?:fields:)?\s*", re.IGNORECASE)
# A first name behind the mark, as numpy writes it. "#", "#sold" and "# of rooms" are names.
_MARKED_NAME = re.compile(r"# (?!of\b)")
_EXCELS = re.compile(rf'"?sep=([{re.escape(_DELIMITERS)}])"?[\r\n]*', re.IGNORECASE)
# As many rows as there are columns without a word in them are no titles.
_FEWEST_COLUMNS = 3


class Layout(NamedTuple):
    """How a file is laid out.

    Attributes:
        delimiter: the character that separates columns.
        above: the number of records above the header, or above the first row without one.
        titled: whether these are titles or notes.
        marked: whether the header is a comment.
    """

    delimiter: str
    above: int = 0
    titled: bool = False
    marked: bool = False


def find_layout(source: TextSource, roles: Roles, longest_row: int | None) -> Layout:
    """Return the layout of a file, by its first records.

    Columns are separated by commas, semicolons, tabs or bars (|): by what the first line has or, if
    it has several of these, by what divides the first rows into most columns, as many in each; else
    by the first one of them. If none of them divides the rows, spaces may, where one of the columns
    is named by a role or has nothing but numbers.

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
    rows = rows_by[delimiter]
    if _columns_of_all(rows) > 1 and not _may_be_title(rows[0]):
        return Layout(delimiter, marked=_MARKED_NAME.match(rows[0][0]) is not None)
    layouts = list[tuple[int, Layout]]()
    for each in (*_DELIMITERS, SPACES):
        if each == SPACES and layouts:
            break
        rows = rows_by[each] if each in rows_by else _rows(source, longest_row, each)
        if layout := _layout_by(rows, each, wanted):
            layouts.append(layout)
    return max(layouts, key=itemgetter(0))[1] if layouts else Layout(delimiter)


def lines_to_divide(lines: Iterator[str], delimiter: str) -> Iterator[str]:
    """Return lines as `csv.reader` divides them; for `SPACES`, it has to skip leading ones."""
    if delimiter != SPACES:
        return lines
    return (line.replace("\t", " ").strip() + "\n" for line in lines)


def without_mark(names: Sequence[str]) -> list[str]:
    """Return the names of a header that is a comment, without its mark."""
    first = _MARK.sub("", names[0], count=1)
    return [first, *names[1:]] if first else list(names[1:])


def _layout_by(
    rows: Sequence[Sequence[str]], delimiter: str, wanted: set[str]
) -> tuple[int, Layout] | None:
    """Return the number of columns and the layout of rows below others; None if it is in doubt."""
    if delimiter == SPACES and _are_spaced(rows, wanted):
        return len(rows[0]), Layout(SPACES)
    comments = sum(1 for _ in takewhile(_is_comment, rows))
    table = rows[comments:]
    if comments and len(table) > 1 and _columns_of_all(table) > 1:
        names = without_mark(rows[comments - 1])
        is_header = not wanted.isdisjoint(names) or not _are_names(table[0])
        if len(names) == len(table[0]) and _are_names(names) and is_header:
            return len(names), Layout(delimiter, comments - 1, comments > 1, True)
        if _are_names(table[0]) and (delimiter != SPACES or _are_spaced(table, wanted)):
            return len(table[0]), Layout(delimiter, comments, True)
    above = _records_above(rows, wanted)
    if above and (delimiter != SPACES or _are_spaced(rows[above:], wanted)):
        return len(rows[above]), Layout(delimiter, above, True)
    return None


def _is_comment(row: Sequence[str]) -> bool:
    return row[0].startswith("#")


def _are_spaced(rows: Sequence[Sequence[str]], wanted: set[str]) -> bool:
    """Return whether rows are a table, and not texts of as many words."""
    if len(rows) < 2 or _columns_of_all(rows) < 2:
        return False
    columns = zip(*rows[1:], strict=True)
    return not wanted.isdisjoint(rows[0]) or any(
        all(number_in(cell) is not None for cell in column) for column in columns
    )


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether cells are different words; the first one, of an index, may be empty."""
    names = [cell.strip() for cell in cells]
    words = {name for name in names if name and number_in(name) is None}
    return len(words) == len(names) or (len(words) == len(names) - 1 > 1 and not names[0])


def _rows(source: TextSource, longest_row: int | None, delimiter: str) -> list[list[str]]:
    """Return the first records that are not blank; [] if they are not CSV."""
    rows = list[list[str]]()
    with source.open(encoding="utf-8-sig", newline="") as file:
        lines = RowLines(file, longest_row)
        try:
            divided = lines_to_divide(lines, delimiter)
            skips = delimiter == SPACES
            for row in csv.reader(divided, delimiter=delimiter, skipinitialspace=skips):
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
    return header if _are_names(rows[header]) else 0


def _filled(row: Sequence[str]) -> int:
    return sum(1 for cell in row if cell.strip())

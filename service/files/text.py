"""Text of data files: the source that it is read from, the numbers in it, and what is refused."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TextIO

Watch = Callable[[int], None]

MAX_FEATURES = 10_000
"""Widest row of a sparse format that is made dense: all its zeros are sent or stored too."""

LONGEST_ROW = 1 << 23
"""Characters of one row of a file, in all of its lines: the memory that a file takes is bounded
by what it holds, not by the length of its first line."""

MISSING_LABEL = "leave the row out, or predict it with an id and label it later"
MISSING = {"", "nan", "na", "n/a", "null", "none"}
_NO_VALUE = {"", "nan"}
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})", re.ASCII)
_LINES_BETWEEN_LOOKS = 512


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


def is_not_finite(text: str) -> bool:
    """Whether `text` is written as a number, but is not a finite one: inf, 1e400."""
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


class Record(NamedTuple):
    """A row of a file with what stands beside its features.

    row: its numbers, (d,) float64, or a list of values if they are not all numbers; of svmlight
        its entries. label: its text, "" without one. weight: None where all count 1. id: "" without
        one.
    """

    row: Any
    label: str
    weight: float | None = None
    id: str | int = ""


class TextSource(Protocol):
    """What can be opened and read from its beginning, as often as wanted: a path, for one."""

    def open(self, *, encoding: str, newline: str | None = None) -> TextIO:
        """Return the text."""


class RowLines(Iterator[str]):
    """The lines of a file, of which no row may have ever more: it is refused while it is read.

    longest: how many characters a row may have; None of texts that are bounded themselves.
    watch: called now and then with how many bytes have been read.
    """

    def __init__(self, file: TextIO, longest: int | None, watch: Watch | None = None) -> None:
        self._file, self._longest, self._watch = file, longest, watch
        self._number = self._taken = 0

    def __next__(self) -> str:
        left = -1 if self._longest is None else self._longest + 1 - self._taken
        line = self._file.readline(left)
        if not line:
            raise StopIteration
        if self._watch and self._number % _LINES_BETWEEN_LOOKS == 0:
            self._watch(self._file.buffer.tell())
        self._number += 1
        self._taken += len(line)
        if self._longest is not None and self._taken > self._longest:
            raise DataFileError(f"a row has more than {self._longest:,} characters", self._number)
        return line

    def end_row(self) -> None:
        """Note that the next line begins a row."""
        self._taken = 0


def first_row(file: TextIO, longest: int | None, comment: str = "\n") -> str:
    """Return the first line that is neither blank nor a comment; "" without one.

    longest: see `RowLines`. comment: what begins one. Raises DataFileError.
    """
    lines = RowLines(file, longest)
    for line in lines:
        if line.partition(comment)[0].strip():
            return line
        lines.end_row()
    return ""


def cell_value(text: str, *, named: bool = True) -> float | str | None:
    """Return the value of a table's cell: a number if it is plainly one, else the text itself.

    None of an empty cell. named: whether its column has a name, under which a model finds out what
    "NA" means; in a column without one it is a missing value, as other words for that are.
    """
    text = text.strip()
    if text.lower() in (_NO_VALUE if named else MISSING):
        return None
    number = number_in(text)
    return text if number is None else number


def read_id(text: str) -> str | int:
    """Return the id in a table's cell: a whole number as JSON would have it, else the text."""
    text = text.strip()
    if _WHOLE_NUMBER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    return text


def check_label(label: str, line: int) -> None:
    """Raise DataFileError for a label that is missing or no finite number."""
    if not label or is_not_finite(label):
        raise DataFileError(f"the label is {label[:40] or 'missing'}: {MISSING_LABEL}", line)

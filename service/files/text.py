"""Text of data files: its sources, the values in it, and what is refused."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TextIO

Watch = Callable[[int], None]

MAX_FEATURES = 10_000
"""The widest sparse row that is made dense, since all its zeros are then sent or stored, too."""

LONGEST_ROW = 1 << 23
"""The most characters of a row, over all of its lines. It bounds the memory for reading a file,
even if the file is one endless line."""

MISSING_LABEL = "leave the row out, or predict it with an id and label it later"
# Words for a missing value; in a column with a name, only the first two.
MISSING = {"", "nan", "na", "n/a", "null", "none"}
_NO_VALUE = {"", "nan"}
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})", re.ASCII)
_LINES_BETWEEN_CALLS = 512  # between two calls of `watch`


class DataFileError(Exception):
    """A file that cannot be used. The message says what is wrong, on which line, and what to do."""

    def __init__(self, detail: str, line: int | None = None) -> None:
        super().__init__(detail if line is None else f"line {line}: {detail}")
        self.line = line


def number_in(text: str) -> float | None:
    """Return `text` as a finite number; None if it is not one, such as Python's 1_000."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def is_not_finite(text: str) -> bool:
    """Return whether `text` is a number that is not finite, such as inf or 1e400."""
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


class Record(NamedTuple):
    """A row of a file, with its label, weight and id.

    Attributes:
        row: numbers, (d,) float64; a list of values if they are not all numbers; the entries of an
            svmlight row.
        label: the label as text; "" if the file has none.
        weight: the sample's weight; None if all are 1.
        id: the row's id; "" if the file has none.
    """

    row: Any
    label: str
    weight: float | None = None
    id: str | int = ""


class TextSource(Protocol):
    """Text that can be opened and read from its beginning repeatedly, such as a path."""

    def open(self, *, encoding: str, newline: str | None = None) -> TextIO:
        """Return the text."""


class RowLines(Iterator[str]):
    """The lines of a file. A row that is too long is refused while it is read.

    Args:
        file: the file to read.
        longest: bound on the characters of a row; None for a text that is bounded as a whole.
        watch: called repeatedly with the number of bytes read so far.
    """

    def __init__(self, file: TextIO, longest: int | None, watch: Watch | None = None) -> None:
        self._file, self._longest, self._watch = file, longest, watch
        self._number = 0  # the number of the last line
        self._taken = 0  # characters read of the present row

    def __next__(self) -> str:
        left = -1 if self._longest is None else self._longest + 1 - self._taken
        line = self._file.readline(left)
        if not line:
            raise StopIteration
        if self._watch and self._number % _LINES_BETWEEN_CALLS == 0:
            self._watch(self._file.buffer.tell())
        self._number += 1
        self._taken += len(line)
        if self._longest is not None and self._taken > self._longest:
            raise DataFileError(f"a row has more than {self._longest:,} characters", self._number)
        return line

    def end_row(self) -> None:
        """End the row: the next line begins another one."""
        self._taken = 0


def first_row(file: TextIO, longest: int | None, comment: str = "\n") -> str:
    """Return the first line that is neither blank nor a comment; "" without one.

    Args:
        file: the file to read.
        longest: see `RowLines`.
        comment: the character that begins a comment.

    Raises DataFileError.
    """
    lines = RowLines(file, longest)
    for line in lines:
        if line.partition(comment)[0].strip():
            return line
        lines.end_row()
    return ""


def cell_value(text: str, *, named: bool = True) -> float | str | None:
    """Return the value of a table's cell: a number, else the text; None for an empty cell.

    Args:
        text: the text in the cell.
        named: whether the cell's column has a name. If so, a model itself learns what "NA" means;
            if not, "NA" and similar words are missing values.
    """
    text = text.strip()
    if text.lower() in (_NO_VALUE if named else MISSING):
        return None
    number = number_in(text)
    return text if number is None else number


def read_id(text: str) -> str | int:
    """Return the id in a table's cell: an integer if JSON would write it so, else the text."""
    text = text.strip()
    if _WHOLE_NUMBER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    return text


def check_label(label: str, line: int) -> None:
    """Raise DataFileError for a label that is missing, or is a number that is not finite."""
    if not label or is_not_finite(label):
        raise DataFileError(f"the label is {label[:40] or 'missing'}: {MISSING_LABEL}", line)

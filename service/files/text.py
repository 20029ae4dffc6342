"""Text of data files: the source that it is read from, the numbers in it, and what is refused."""

import math
from collections.abc import Callable, Iterator
from typing import Protocol, TextIO

Watch = Callable[[int], None]

MAX_FEATURES = 10_000
"""Widest row of a sparse format that is made dense: all its zeros are sent or stored too."""

MISSING = {"", "nan", "na", "n/a", "null", "none"}
NOT_FINITE = {"nan", "inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"}
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


class TextSource(Protocol):
    """What can be opened and read from its beginning, as often as wanted: a path, for one."""

    def open(self, *, encoding: str, newline: str | None = None) -> TextIO:
        """Return the text."""


def watched(file: TextIO, watch: Watch | None) -> Iterator[str]:
    """Yield the lines of a file. watch: called now and then with how many bytes have been read."""
    for number, line in enumerate(file):
        if watch and number % _LINES_BETWEEN_LOOKS == 0:
            watch(file.buffer.tell())
        yield line


def check_label(label: str, line: int) -> None:
    """Raise DataFileError for a label that is missing or no finite number."""
    if not label or label.lower() in NOT_FINITE:
        raise DataFileError(f"the label is {label or 'missing'}", line)

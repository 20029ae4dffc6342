"""Values of a table's rows as arrays of numbers and texts, and times as numbers."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.columns import LARGEST_CODE, MOST_SLOTS

NO_TEXT = -1
HOUR, DAY, WEEK, YEAR = 3600.0, 86_400.0, 604_800.0, 365.2425 * 86_400.0
PERIODS = (DAY, WEEK, YEAR)
# A sine and a cosine of each period, the hour, the day of the week, the days since 1970, and the
# seconds since the row before.
MOMENT_COLUMNS = 2 * len(PERIODS) + 4
# 1970 began on a Thursday, and weeks begin on Monday.
_FIRST_WEEKDAY = 3.0
_PERIODS = np.array(PERIODS)
# Of longer texts, codes are not kept for the next time.
_LONGEST_KEPT = 48


class Cells(NamedTuple):
    """n rows with k values each."""

    names: tuple[str, ...] | None  # of the columns; None if rows have no names
    numbers: Float64Array  # (n, k), finite, or NaN where there is no number
    texts: tuple[str, ...]  # the texts that occur
    text: NDArray[np.int32]  # (n, k) index in `texts`; NO_TEXT where there is no text
    given: NDArray[np.bool_]  # (n, k) whether the row has the name at all
    whole: bool = True  # whether all rows have all names, as in a table

    def rows(self, start: int, stop: int) -> "Cells":
        """Return the rows from `start` up to `stop`."""
        part = slice(start, stop)
        return self._replace(
            numbers=self.numbers[part], text=self.text[part], given=self.given[part]
        )


def cells_of_numbers(names: tuple[str, ...] | None, numbers: Float64Array) -> Cells:
    """Return the cells of numbers.

    names: of the k columns; None without names.
    numbers: (n, k), NaN where one is missing.
    """
    return Cells(
        names,
        numbers,
        (),
        np.full(numbers.shape, NO_TEXT, np.int32),
        np.ones(numbers.shape, np.bool_),
    )


def cells_of_rows(rows: Sequence[Mapping[str, Any]]) -> Cells:
    """Return the cells of rows by name, which may have different names.

    rows: name -> number, boolean, text, or None or NaN for a missing value.
    """
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    columns = {name: j for j, name in enumerate(names)}
    shape = len(rows), len(names)
    numbers, text = np.full(shape, np.nan), np.full(shape, NO_TEXT, np.int32)
    given = np.zeros(shape, np.bool_)
    indices: dict[str, int] = {}  # of texts
    for i, row in enumerate(rows):
        for name, value in row.items():
            given[i, columns[name]] = True
            if isinstance(value, str):
                text[i, columns[name]] = indices.setdefault(value, len(indices))
            elif value is not None:
                numbers[i, columns[name]] = value
    return Cells(names, numbers, tuple(indices), text, given, whole=False)


def joined(parts: Sequence[Cells]) -> Cells:
    """Return the rows of several cells with the same columns, in order."""
    indices: dict[str, int] = {}  # of texts
    text = []
    for part in parts:
        own = [indices.setdefault(t, len(indices)) for t in part.texts]
        text.append(np.array([*own, NO_TEXT], np.int32)[part.text])
    return Cells(
        parts[0].names,
        np.concatenate([part.numbers for part in parts]),
        tuple(indices),
        np.concatenate(text),
        np.concatenate([part.given for part in parts]),
        parts[0].whole,
    )


def texts_in(cells: Cells, columns: Sequence[int]) -> list[int]:
    """Return the indices of the texts in some columns, in the order of the rows."""
    indices = dict.fromkeys(cells.text[:, columns].ravel().tolist())
    return [index for index in indices if index != NO_TEXT]


def text_of(number: float) -> str:
    """Return a number as the text of a category: integers without a point."""
    return str(int(number)) if number.is_integer() else repr(number)


def code_of(text: str) -> float:
    """Return the code of a text without an own code: a hash of the text, beyond all own codes."""
    return _short_code(text) if len(text) <= _LONGEST_KEPT else _code(text)


def _code(text: str) -> float:
    bits = int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest())
    return float(MOST_SLOTS + bits % (int(LARGEST_CODE) - MOST_SLOTS))


_short_code = lru_cache(1 << 13)(_code)


def seconds_of(text: str) -> float:
    """Return the seconds since 1970 of an ISO 8601 date or time, UTC without a zone; else NaN."""
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return math.nan


def seconds_of_date(value: object) -> float | None:
    """Return the seconds since 1970 of a date, or of a date and time; None for anything else."""
    return seconds_of(value.isoformat()) if isinstance(value, date) else None


def moment_columns(seconds: Float64Array, zone: float = 0.0) -> Float64Array:
    """Return the columns (n, MOMENT_COLUMNS) of times.

    They are sine and cosine of the time of day, of the week and of the year, the hour from 0 to 23
    and the day of the week from 0 to 6, the days since 1970, and the seconds, from which a
    preparation subtracts those of the row before.

    seconds: (n,) since 1970, NaN where one is missing.
    zone: the seconds that clocks are ahead of UTC.
    """
    columns, local = np.empty((len(seconds), MOMENT_COLUMNS)), seconds + zone
    with np.errstate(invalid="ignore"):
        angles = 2.0 * np.pi * np.mod(local[:, None], _PERIODS) / _PERIODS
        columns[:, 0:-4:2], columns[:, 1:-4:2] = np.sin(angles), np.cos(angles)
        columns[:, -4] = np.floor(np.mod(local, DAY) / HOUR)
        columns[:, -3] = np.mod(np.floor(local / DAY) + _FIRST_WEEKDAY, 7.0)
    columns[:, -2], columns[:, -1] = seconds / DAY, seconds
    return columns

"""Values of a table's rows as arrays: numbers, texts and moments of time, which may be missing."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.columns import LARGEST_CODE, MOST_SLOTS

NO_TEXT = -1
DAY, WEEK, YEAR = 86_400.0, 604_800.0, 365.2425 * 86_400.0
PERIODS = (DAY, WEEK, YEAR)
# A sine and a cosine of each period, the time that has passed, and that since the row before.
MOMENT_COLUMNS = 2 * len(PERIODS) + 2


class Cells(NamedTuple):
    """Rows of n samples with k values each.

    names: of the columns; None if they are known by their places. numbers: (n, k) float64,
    finite or NaN where there is no number. texts: those that occur. text: (n, k) int32, each
    value's place in the texts, NO_TEXT where it is none. given: (n, k) bool, whether the row has
    the name at all. whole: whether the names are a table's, and so every row's.
    """

    names: tuple[str, ...] | None
    numbers: Float64Array
    texts: tuple[str, ...]
    text: NDArray[np.int32]
    given: NDArray[np.bool_]
    whole: bool = True

    def rows(self, start: int, stop: int) -> "Cells":
        """Return some of the rows."""
        part = slice(start, stop)
        return self._replace(
            numbers=self.numbers[part], text=self.text[part], given=self.given[part]
        )


def cells_of_numbers(names: tuple[str, ...] | None, numbers: Float64Array) -> Cells:
    """Return rows (n, k) of numbers, NaN where one is missing."""
    return Cells(
        names,
        numbers,
        (),
        np.full(numbers.shape, NO_TEXT, np.int32),
        np.ones(numbers.shape, np.bool_),
    )


def cells_of_rows(rows: Sequence[Mapping[str, Any]]) -> Cells:
    """Rows of values by name: numbers, booleans, texts, and None or NaN where one is missing.

    A row may lack names that others have.
    """
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    place = {name: j for j, name in enumerate(names)}
    shape = len(rows), len(names)
    numbers, text = np.full(shape, np.nan), np.full(shape, NO_TEXT, np.int32)
    given = np.zeros(shape, np.bool_)
    place_of_text: dict[str, int] = {}
    for i, row in enumerate(rows):
        for name, value in row.items():
            given[i, place[name]] = True
            if isinstance(value, str):
                text[i, place[name]] = place_of_text.setdefault(value, len(place_of_text))
            elif value is not None:
                numbers[i, place[name]] = value
    return Cells(names, numbers, tuple(place_of_text), text, given, whole=False)


def joined(parts: Sequence[Cells]) -> Cells:
    """Return the rows of all parts, whose columns have the same names, one after another."""
    place: dict[str, int] = {}
    text = []
    for part in parts:
        own = np.array([place.setdefault(t, len(place)) for t in part.texts] + [NO_TEXT], np.int32)
        text.append(own[part.text])
    return Cells(
        parts[0].names,
        np.concatenate([part.numbers for part in parts]),
        tuple(place),
        np.concatenate(text),
        np.concatenate([part.given for part in parts]),
        parts[0].whole,
    )


def texts_in(cells: Cells, columns: Sequence[int]) -> list[int]:
    """Return the places of the texts that some columns have, in the order in which they come."""
    places = dict.fromkeys(cells.text[:, columns].ravel().tolist())
    return [place for place in places if place != NO_TEXT]


def text_of(number: float) -> str:
    """Return a number as the text of a category: whole numbers without a point."""
    return str(int(number)) if number.is_integer() else repr(number)


def code_of(text: str) -> float:
    """A text's code where it has none of its own: the same at all times, beyond all own ones."""
    bits = int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest())
    return float(MOST_SLOTS + bits % (int(LARGEST_CODE) - MOST_SLOTS))


def seconds_of(text: str) -> float:
    """The seconds since 1970 of a date and time in the form of ISO 8601; NaN for other texts.

    Without a zone it is UTC.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return math.nan


def seconds_of_date(value: object) -> float | None:
    """Return the seconds since 1970 of a date, or of a date and time; None for anything else."""
    return seconds_of(value.isoformat()) if isinstance(value, date) else None


def moment_columns(seconds: Float64Array) -> Float64Array:
    """Moments, (n,) seconds since 1970, as (n, MOMENT_COLUMNS) numbers; NaN stays NaN.

    sine and cosine of the hour of the day, of the day of the week and of the day of the year, the
    days since 1970, and the seconds, of which a preparation takes those of the row before off.
    """
    columns = np.empty((len(seconds), MOMENT_COLUMNS))
    with np.errstate(invalid="ignore"):
        angles = 2.0 * np.pi * np.mod(seconds[:, None], PERIODS) / PERIODS
        columns[:, 0:-2:2], columns[:, 1:-2:2] = np.sin(angles), np.cos(angles)
    columns[:, -2], columns[:, -1] = seconds / DAY, seconds
    return columns

"""The last row that was sent to a model, for the form in the console."""

import time
from typing import Any

import numpy as np

from wolfstream.solver.prepare.cells import NO_TEXT, Cells
from wolfstream.solver.prepare.named_rows import NamedRows, Rows, n_rows

# Nobody would fill in a form with more fields.
_MOST_VALUES = 64
_LONGEST_TEXT = 200
# The shortest time between two rows that are stored.
_SECONDS = 0.5


class LastRow:
    """The last row, as plain data, so that it keeps no other rows of its request alive.

    It is not always the last: of requests within half a second, that of the first is kept.

    Attributes:
        plain: the row; None before the first, and for a row with many values.
    """

    def __init__(self) -> None:
        self.plain: dict[str, Any] | list[Any] | None = None
        self._again = 0.0  # when the next row may be stored, by the monotonic clock

    def note(self, rows: Rows) -> None:
        """Store the last of some rows, unless one was stored just before."""
        now = time.monotonic()
        if now >= self._again and n_rows(rows):
            self.plain, self._again = plain_row(rows), now + _SECONDS


def plain_row(rows: Rows) -> dict[str, Any] | list[Any] | None:
    """Return the last row as an array or an object; None if it has too many values."""
    if isinstance(rows, NamedRows):
        return _named_row(rows)
    numbers = rows.numbers[-1] if isinstance(rows, Cells) else rows[-1]
    if len(numbers) > _MOST_VALUES:
        return None
    values = [_number(value) for value in numbers.tolist()]
    if not isinstance(rows, Cells):
        return values
    if rows.texts:
        values = [
            value if code == NO_TEXT else rows.texts[code][:_LONGEST_TEXT]
            for value, code in zip(values, rows.text[-1].tolist(), strict=True)
        ]
    if rows.names is None:
        return values
    cells = zip(rows.names, values, rows.given[-1].tolist(), strict=True)
    return {name: value for name, value, is_given in cells if is_given}


def _named_row(rows: NamedRows) -> dict[str, Any] | None:
    n = int(rows.lengths[-1])
    if n > _MOST_VALUES:
        return None
    place = rows.place[len(rows.place) - n :].tolist()
    values = [_number(value) for value in rows.value[len(rows.value) - n :].tolist()]
    codes = rows.text[len(rows.text) - n :].tolist() if len(rows.texts) else [NO_TEXT] * n
    return {
        rows.names[k]: value if code == NO_TEXT else rows.texts[code][:_LONGEST_TEXT]
        for k, value, code in zip(place, values, codes, strict=True)
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value

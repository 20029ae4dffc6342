"""Values of tables in memory as those of JSON: numbers, booleans, texts, and None where missing."""

import math
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from service.files.text import cell_value

# What pandas has where a value is missing.
_MISSING_TYPES = {"NAType", "NaTType"}
_PLAIN = {int, str, bool, type(None)}
_SHOWN = 40


def plain_value(value: Any) -> Any:
    """Return a value as a number, a boolean, a text, or None if it is missing. Raises TypeError."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")  # of nanoseconds, `item` would make a number
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, date | time):
        # A data frame's missing time is no time; it is not equal to itself.
        return value.isoformat() if value == value else None
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return None if seconds != seconds else seconds
    if isinstance(value, Decimal | float):
        value = float(value) if not isinstance(value, Decimal) or not value.is_snan() else math.nan
        return None if math.isnan(value) else value
    if isinstance(value, UUID):
        return str(value)
    if type(value).__name__ in _MISSING_TYPES:
        return None
    raise TypeError(
        f"{value!r:.{_SHOWN}} is a {type(value).__name__}, neither a number nor a text: write it "
        "as one, or leave its column out"
    )


def plain_row(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a row of values by name as it is sent. Raises TypeError.

    A row of texts alone is one of `csv.DictReader`: its values are those of the same CSV.
    """
    kinds = set(map(type, row.values()))
    if kinds <= {str, type(None)} and str in kinds:
        return {name: text if text is None else cell_value(text) for name, text in row.items()}
    if kinds <= _PLAIN:
        return dict(row)
    return {name: plain_value(value) for name, value in row.items()}

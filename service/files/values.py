"""Values of tables in memory as JSON has them: numbers, booleans, texts; None if missing."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from wolfstream.service.files.text import cell_value

# What pandas uses for a missing value.
_MISSING_TYPES = {"NAType", "NaTType"}
_PLAIN = {int, str, bool, type(None)}
_SHOWN = 40


def plain_value(value: Any) -> Any:
    """Return a value as a number, a boolean, a text, or None if it is missing. Raises TypeError."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")  # `item` would make a number of nanoseconds
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, date | time):
        # A data frame's missing time is not equal to itself.
        return value.isoformat() if value == value else None
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return None if seconds != seconds else seconds
    if isinstance(value, Decimal | float):
        return None if math.isnan(value) else float(value)
    if isinstance(value, UUID):
        return str(value)
    if type(value).__name__ in _MISSING_TYPES:
        return None
    raise TypeError(
        f"{value!r:.{_SHOWN}} is a {type(value).__name__}, neither a number nor a text: write it "
        "as one, or leave its column out"
    )


def features_of(
    rows: Sequence[Mapping[Any, Any]], names: Sequence[Any], taken: Collection[Any]
) -> tuple[list[Any] | None, list[Any]]:
    """Return the names of columns and a list of values for each row, as from a file of these rows.

    If a row lacks a name, or a name is no text, return None and the rows without what is taken.

    Args:
        rows: values by name.
        names: all that occur.
        taken: those that are no features.
    """
    features = [name for name in names if name not in taken]
    alike = all(len(row) == len(names) for row in rows)
    if features and alike and all(type(name) is str for name in features):
        return features, [[row[name] for name in features] for row in rows]
    return None, [{k: v for k, v in row.items() if k not in taken} for row in rows]


def plain_row(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a row of values by name as it is to be sent. Raises TypeError.

    A row that has only texts is one of `csv.DictReader`: its values are read as those of a CSV.
    """
    kinds = set(map(type, row.values()))
    if kinds <= {str, type(None)} and str in kinds:
        return {name: text if text is None else cell_value(text) for name, text in row.items()}
    if kinds <= _PLAIN:
        return dict(row)
    return {name: plain_value(value) for name, value in row.items()}

"""Converts values of tables in memory to JSON values: numbers, booleans, texts; None if missing."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from wolfstream.service.files.nested_values import flat_rows, is_nested
from wolfstream.service.files.text import cell_value

# Names of pandas' types of missing values.
_MISSING_TYPES = {"NAType", "NaTType"}
# Types of pandas that are read as it writes them to CSV.
_WRITTEN_TYPES = {"Interval", "Period"}
_PLAIN = {int, str, bool, type(None)}
_SHOWN = 40


def plain_value(value: Any) -> Any:
    """Return a value as a number, boolean or text; None if it is missing. Raises TypeError."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")  # `item` would return nanoseconds as an integer
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, date | time):
        # NaT, pandas' missing time, is not equal to itself.
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
    if type(value).__name__ in _WRITTEN_TYPES:
        return str(value)
    raise TypeError(
        f"{value!r:.{_SHOWN}} is a {type(value).__name__}, neither a number nor a text: write it "
        "as one, or leave its column out"
    )


def features_of(
    rows: Sequence[Mapping[Any, Any]], names: Sequence[Any], taken: Collection[Any]
) -> tuple[list[Any] | None, list[Any]]:
    """Return the names of the features, and for each row a list of their values.

    If a row lacks a name, or a name is not a text, return None, and the rows without `taken`.

    Args:
        rows: rows, each name -> value.
        names: all names that occur.
        taken: the names that are not features.
    """
    features = [name for name in names if name not in taken]
    alike = all(len(row) == len(names) for row in rows)
    if features and alike and all(type(name) is str for name in features):
        return features, [[row[name] for name in features] for row in rows]
    return None, [{k: v for k, v in row.items() if k not in taken} for row in rows]


def plain_row(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a row, name -> value, in the form in which it is sent. Raises TypeError.

    A row of texts only comes from `csv.DictReader`: its values are read like those of a CSV file.
    """
    kinds = set(map(type, row.values()))
    if kinds <= {str, type(None)} and str in kinds:
        return {name: text if text is None else cell_value(text) for name, text in row.items()}
    if kinds <= _PLAIN:
        return dict(row)
    (flat,) = flat_rows([row])
    return {name: _plain_cell(name, value) for name, value in flat.items()}


def plain_columns(name: Any, cells: Sequence[Any]) -> dict[Any, list[Any]]:
    """Return the plain values of a column, name -> values; objects in it are columns of their own.

    Raises TypeError.
    """
    cells = [
        cell.tolist() if isinstance(cell, np.ndarray) and cell.dtype.kind in "OU" else cell
        for cell in cells
    ]
    if not is_nested(cells):
        return {name: [_plain_cell(name, cell) for cell in cells]}
    rows = flat_rows([{name: cell} for cell in cells])
    names = dict.fromkeys(key for row in rows for key in row)
    if len(names) > 1:  # rows without an object then have its name, and a missing value
        names.pop(name, None)
    return {key: [_plain_cell(key, row.get(key)) for row in rows] for key in names}


def _plain_cell(name: Any, value: Any) -> Any:
    try:
        return plain_value(value)
    except TypeError as error:
        raise TypeError(f"column {str(name)[:_SHOWN]!r}: {error}") from None

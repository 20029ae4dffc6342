"""Data frames, and dicts as River has them, as the rows of a stream's model.

Neither pandas nor polars is imported: a data frame is what has `columns` and `to_numpy`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from wolfstream.solver.prepare.cells import Cells, cells_of_rows, seconds_of_date
from wolfstream.solver.prepare.named_rows import NamedRows, Rows, named_values, table_of
from wolfstream.solver.prepare.schema import Misfit

# What pandas has where a value is missing.
_MISSING_TYPES = ("NAType", "NaTType")


def rows_by_name(X: Any, timestamps: Collection[str] = ()) -> Rows | None:
    """Return the rows of a data frame or of a list of dicts; None for anything else.

    timestamps: names of columns whose dates and times become seconds since 1970, UTC where they
    have no zone; elsewhere they are refused.

    A data frame's columns have names if all of them are texts. The names of dicts may be anything:
    rows named by texts may turn out to be sparse, those of other names never do. Values are
    numbers, booleans, texts, and None or NaN where one is missing. Raises ValueError, TypeError
    for others.
    """
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        return _finite(_of_frame(X, timestamps))
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        return _finite(_of_dicts(X, timestamps))
    return None


@contextmanager
def explaining() -> Iterator[None]:
    """Have a ValueError about rows that do not fit say where they do not."""
    try:
        yield
    except Misfit as misfit:
        raise ValueError(f"row {misfit.row} of X: {misfit.full_detail()}") from None


def _of_frame(X: Any, timestamps: Collection[str]) -> Rows:
    """Column by column: polars' own array of all columns has dates as numbers beside numbers."""
    columns = list(X.columns)
    if len(set(columns)) < len(columns):
        raise ValueError("some columns of X have the same name")
    if not columns or not len(X):
        raise ValueError(f"X is a data frame of shape {(len(X), len(columns))}: it has no values")
    names = columns if all(isinstance(name, str) for name in columns) else None
    arrays = [np.asarray(X[name].to_numpy()) for name in columns]
    if all(array.dtype.kind in "fiub" for array in arrays):
        numbers = np.column_stack([array.astype(np.float64) for array in arrays])
        return numbers if names is None else table_of(names, numbers)
    values = [
        [_value(value, name in timestamps) for value in _values(array)]
        for name, array in zip(columns, arrays, strict=True)
    ]
    return table_of(names, [list(row) for row in zip(*values, strict=True)])


def _values(array: Any) -> list[Any]:
    """Return a column's values; dates and times as Python's own, not as numbers of nanoseconds."""
    if array.dtype.kind in "mM":
        array = array.astype(f"{array.dtype.str[1:3]}[us]")
    values: list[Any] = array.tolist()
    return values


def _of_dicts(rows: Sequence[Mapping[Any, Any]], timestamps: Collection[str]) -> Cells | NamedRows:
    plain = [
        {name: _value(value, name in timestamps) for name, value in row.items()} for row in rows
    ]
    if all(isinstance(name, str) for row in plain for name in row):
        return named_values(plain)
    by_text = [{str(name): value for name, value in row.items()} for row in plain]
    return cells_of_rows(by_text)._replace(whole=True)


def _value(value: Any, moment: bool) -> float | str | None:
    """Return a value of a table as a number, a text, or None if it is missing.

    moment: whether a date and time is one that was asked for.
    """
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Real | Decimal):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"X has a number beyond float64, {value!r:.40}") from None
    if type(value).__name__ in _MISSING_TYPES:
        return None
    if (seconds := seconds_of_date(value)) is not None:
        if moment:
            return seconds
        raise TypeError(f"X has {value!r:.40}, a date: name its column in timestamps")
    raise TypeError(f"X has {value!r:.40}, which is neither a number nor a text")


def _finite(rows: Rows) -> Rows:
    numbers = rows.value if isinstance(rows, NamedRows) else rows
    if np.isinf(numbers.numbers if isinstance(numbers, Cells) else numbers).any():
        raise ValueError("X contains infinity")
    return rows

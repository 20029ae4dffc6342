"""Data frames, and dicts as River has them, as the rows of a stream's model.

Neither pandas nor polars is imported: a data frame is what has `columns` and `to_numpy`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from solver.prepare.cells import Cells, cells_of_rows
from solver.prepare.named_rows import NamedRows, Rows, named_values, table_of
from solver.prepare.schema import Misfit

# What pandas has where a value is missing.
_MISSING_TYPES = ("NAType", "NaTType")


def rows_by_name(X: Any) -> Rows | None:
    """The rows of a data frame or of a list of dicts; None for anything else.

    A data frame's columns have names if all of them are texts. The names of dicts may be anything:
    rows named by texts may turn out to be sparse, those of other names never do. Values are
    numbers, booleans, texts, and None or NaN where one is missing. Raises ValueError, TypeError
    for others.
    """
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        return _finite(_of_frame(list(X.columns), np.asarray(X.to_numpy())))
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        return _finite(_of_dicts(X))
    return None


@contextmanager
def explaining() -> Iterator[None]:
    """Have a ValueError about rows that do not fit say where they do not."""
    try:
        yield
    except Misfit as misfit:
        raise ValueError(f"row {misfit.row} of X: {misfit.named_detail}") from None


def _of_frame(columns: list[Any], values: Any) -> Rows:
    if not values.size:
        raise ValueError(f"X is a data frame of shape {values.shape}: it has no values")
    if len(set(columns)) < len(columns):
        raise ValueError("some columns of X have the same name")
    names = columns if all(isinstance(name, str) for name in columns) else None
    if values.dtype.kind in "fiub":
        numbers = np.array(values, np.float64, order="C")
        return numbers if names is None else table_of(names, numbers)
    return table_of(names, [[_value(value) for value in row] for row in values.tolist()])


def _of_dicts(rows: Sequence[Mapping[Any, Any]]) -> Cells | NamedRows:
    plain = [{name: _value(value) for name, value in row.items()} for row in rows]
    if all(isinstance(name, str) for row in plain for name in row):
        return named_values(plain)
    by_text = [{str(name): value for name, value in row.items()} for row in plain]
    return cells_of_rows(by_text)._replace(whole=True)


def _value(value: Any) -> float | str | None:
    """A value of a table as a number, a text, or None where it is missing."""
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
    raise TypeError(f"X has {value!r:.40}, which is neither a number nor a text")


def _finite(rows: Rows) -> Rows:
    numbers = rows.value if isinstance(rows, NamedRows) else rows
    if np.isinf(numbers.numbers if isinstance(numbers, Cells) else numbers).any():
        raise ValueError("X contains infinity")
    return rows

"""Reads the tables of callers as columns: data frames, lazy ones, Arrow's tables, and files.

Their libraries are imported only if a caller has made such a table. A data frame is anything with
`columns` and `to_numpy`. narwhals reads the other kinds that it knows.
"""

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from wolfstream.service.files.roles import Roles
from wolfstream.service.files.text import DataFileError
from wolfstream.service.files.values import plain_value

TablePath: TypeAlias = str | os.PathLike[str]


@contextmanager
def as_value_errors() -> Iterator[None]:
    """Raise the errors of data files within the block as ValueError."""
    try:
        yield
    except DataFileError as error:
        raise ValueError(str(error)) from None


def open_table(path: TablePath, roles: Roles, labelled: bool) -> Any:
    """Open a data file with `service.files.labelled`, which checks all of it. Raises ValueError."""
    from wolfstream.service.files.labelled import open_data

    file = Path(path)
    try:
        return open_data(file, roles, labelled=labelled, texts=True)
    except DataFileError as error:
        raise ValueError(f"{file}: {error}") from None


def read_columns(X: Any) -> Any:
    """Return a table as `service.files.arrow.Columns`; None if X is no table.

    Raises ValueError, TypeError.
    """
    if isinstance(X, Mapping | Sequence | Iterator | np.ndarray):
        return None
    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        X = X.collect()
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        return _read_frame(X)
    if hasattr(X, "column_names") or hasattr(X, "read_all"):
        return _read_arrow(X)
    return _read_narwhals(X)


def _read_frame(frame: Any) -> Any:
    """Return the columns of a data frame.

    They are converted one by one: in polars' array of all columns, dates beside numbers would
    become numbers.
    """
    from wolfstream.service.files.arrow import Columns

    names = list(frame.columns)
    if len(set(names)) < len(names):
        raise ValueError("some columns of X have the same name")
    columns = [_plain_column(np.asarray(frame[name].to_numpy())) for name in names]
    return Columns(names, columns, len(frame))


def _plain_column(column: Any) -> Any:
    """Return a column of numbers as it is, and any other as a list."""
    if column.dtype.kind in "fiu":
        return column
    # `tolist` makes integers of nanoseconds, but datetimes of microseconds.
    if column.dtype.kind in "mM":
        column = column.astype(f"{column.dtype.str[1:3]}[us]")
    return [plain_value(value) for value in column.tolist()]


def _read_arrow(table: Any) -> Any:
    from wolfstream.service.files.arrow import arrow_columns

    with as_value_errors():
        return arrow_columns(table.read_all() if hasattr(table, "read_all") else table)


def _read_narwhals(X: Any) -> Any:
    from wolfstream.service.files.arrow import Columns

    if importlib.util.find_spec("narwhals") is None:
        return None
    narwhals = importlib.import_module("narwhals")
    frame = narwhals.from_native(X, pass_through=True)
    if frame is X:
        return None
    if isinstance(frame, narwhals.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, narwhals.DataFrame):
        return None
    columns = [
        _plain_column(np.asarray(frame.get_column(name).to_list(), object))
        for name in frame.columns
    ]
    return Columns(list(frame.columns), columns, len(frame))

"""Reads the tables of callers as columns: data frames, lazy ones, Arrow's tables, and files.

Their libraries are imported only if a caller has made such a table. A data frame is anything with
`columns` and `to_numpy`. narwhals reads the other kinds that it knows.
"""

import importlib.util
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from wolfstream.service.files.roles import Roles
from wolfstream.service.files.text import DataFileError
from wolfstream.service.files.values import plain_columns

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


def read_columns(X: Any, wanted: Collection[str | None] = ()) -> Any:
    """Return a table as `service.files.arrow.Columns`; None if X is no table.

    Args:
        X: the table.
        wanted: names that may be those of levels of pandas' index, which are then columns.

    Raises ValueError, TypeError.
    """
    if isinstance(X, Mapping | Sequence | Iterator | np.ndarray):
        return None
    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        X = X.collect()
    if hasattr(X, "to_numpy") and (hasattr(X, "columns") or hasattr(X, "to_frame")):
        return _read_frame(X, wanted)
    if hasattr(X, "column_names") or hasattr(X, "read_all"):
        return _read_arrow(X)
    return _read_narwhals(X)


def _read_frame(frame: Any, wanted: Collection[str | None]) -> Any:
    """Return the columns of a data frame.

    They are converted one by one: in polars' array of all columns, dates beside numbers would
    become numbers.
    """
    from wolfstream.service.files.arrow import Columns

    if getattr(frame, "ndim", 2) == 1:
        raise ValueError(
            "X is a Series: write X.to_dict() if it is a row, X.to_frame() if it is a column"
        )
    labels = list(frame.columns)
    names = list(map(column_name, labels))
    if len(set(names)) < len(names):
        first, again = _repeated(names)
        raise ValueError(
            f"columns {first + 1} and {again + 1} of X have the same name, {names[again]!r}: "
            "rename one of them, or leave one out"
        )
    if not all(isinstance(name, int | np.integer) for name in names):
        names = list(map(str, names))
    columns: dict[Any, Any] = {}
    for name, label in zip(names, labels, strict=True):
        columns |= _plain_columns(name, np.asarray(frame[label].to_numpy()))
    for name, values in _index_levels(frame, wanted):
        columns |= _plain_columns(name, np.asarray(values.to_numpy()))
    return Columns(list(columns), list(columns.values()), len(frame))


def column_name(label: Any) -> Any:
    """Return the name of a column; the levels of one that has several are joined by points."""
    return ".".join(map(str, label)) if isinstance(label, tuple) else label


def _repeated(names: Sequence[Any]) -> tuple[int, int]:
    """Return the places of the first name that occurs twice."""
    first_of: dict[Any, int] = {}
    return next(
        (first, i) for i, name in enumerate(names) if (first := first_of.setdefault(name, i)) < i
    )


def _index_levels(frame: Any, wanted: Collection[str | None]) -> Iterator[tuple[str, Any]]:
    """Yield (name, values) of the levels of pandas' index that are wanted; warn of others."""
    index: Any = getattr(frame, "index", None)
    for name in getattr(index, "names", ()):
        if name is None or name in frame.columns:
            continue
        if str(name) in wanted:
            yield str(name), index.get_level_values(name)
        else:
            warnings.warn(
                f"the index {str(name)!r} of X is left out: X.reset_index() makes it a column",
                stacklevel=2,
            )


def _plain_columns(name: Any, column: Any) -> dict[Any, Any]:
    """Return a column of numbers as it is, and any other as lists: several if it has objects."""
    if column.dtype.kind in "fiu":
        return {name: column}
    # `tolist` makes integers of nanoseconds, but datetimes of microseconds.
    if column.dtype.kind in "mM":
        column = column.astype(f"{column.dtype.str[1:3]}[us]")
    return plain_columns(name, column.tolist())


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
    columns: dict[Any, Any] = {}
    for name in frame.columns:
        columns |= plain_columns(name, frame.get_column(name).to_list())
    return Columns(list(columns), list(columns.values()), len(frame))

"""Reads and checks the rows of decoded bodies: arrays of numbers, values by name, or tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated, Any

import numpy as np
from pydantic import FailFast, Field, TypeAdapter, ValidationError

from wolfstream.service.errors import MOST_ERRORS, InvalidSamples, SampleError, refuse, refuse_all
from wolfstream.service.samples.raw_arrays import has_fields_of_raw, read_raw
from wolfstream.service.samples.values import (
    NUMERIC,
    VALUES,
    name_problem,
    number_problem,
    uneven,
    value_problem,
    wrong_in_rows,
    wrong_named,
    wrong_numbers,
    wrong_values,
)
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import Cells, cells_of_numbers
from wolfstream.solver.prepare.named_rows import (
    NamedRows,
    Rows,
    named_values,
    table_of,
    without_zeros,
)

_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Row = Annotated[list[_Number], FailFast()]
_ROWS = TypeAdapter(Annotated[list[_Row], FailFast()])


def read_body_rows(fields: Mapping[str, Any], prepared: bool) -> tuple[Rows, bool]:
    """Return the rows of a body, and whether its `x` is a single row, not a list of rows.

    Args:
        fields: `x`, and `names` if these are separate from the rows.
        prepared: whether the model prepares its rows, which may then have texts and missing values.

    Raises InvalidSamples.
    """
    X, single = _read_x(fields["x"], prepared)
    if fields.get("names") is None:
        return X, single
    table = X if isinstance(X, Cells | NamedRows) else cells_of_numbers(None, X)
    if isinstance(table, NamedRows):
        refuse("/names", "belong to rows that are arrays; these have their own")
    return table._replace(names=_read_names(fields["names"], table.numbers.shape[1])), single


def _read_names(names: Any, width: int) -> tuple[str, ...]:
    if not isinstance(names, list):
        refuse("/names", "must be an array, a name for each column of x")
    if len(names) != width:
        refuse("/names", f"has {len(names)} names, the rows of x have {width} values")
    wrong: Iterator[SampleError] = (
        {"pointer": f"/names/{k}", "detail": detail}
        for k, name in enumerate(names)
        if (detail := name_problem(name))
    )
    refuse_all("some names are not valid", wrong)
    (most_frequent, times), *_ = Counter(names).most_common(1)
    if times > 1:
        refuse("/names", f"has {most_frequent[:40]!r} twice")
    return tuple(names)


def _read_x(x: Any, prepared: bool) -> tuple[Rows, bool]:
    if isinstance(x, dict):
        if _is_raw(x):
            return _read_raw_rows(x, prepared)
        return _read_named_rows([x], ["/x"], prepared), True
    if not isinstance(x, list):
        refuse("/x", "must be an array of rows, or one row")
    if not x:
        refuse("/x", "is empty")
    if isinstance(x[0], dict):
        pointers = (f"/x/{i}" for i in range(len(x)))
        return _read_named_rows(x, pointers, prepared), False
    single = not isinstance(x[0], list)
    try:
        rows = _ROWS.validate_python([x] if single else x)
    except ValidationError:
        if prepared:
            return _read_values([x] if single else x, single), single
        wrong = wrong_numbers(x, 0, "/x") if single else wrong_in_rows(x)
        refuse_all("some rows are not arrays of finite numbers", wrong)
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        refuse_all("rows differ in length", uneven(rows, width))
    return _two_dimensional(np.array(rows)), single


def _read_values(x: list[Any], single: bool) -> Rows:
    """Return the rows of arrays that may have booleans, texts and missing values."""
    wrong = wrong_values(x[0], 0, "/x") if single else wrong_in_rows(x, wrong_values)
    refuse_all("some values in rows are not valid", wrong)
    width = len(x[0])
    refuse_all("rows differ in length", uneven(x, width))
    try:
        table = table_of(None, x)
    except OverflowError:
        refuse("/x", "has a number that is too large for a 64-bit floating-point number")
    numbers = _two_dimensional(table.numbers)
    return table if table.texts else numbers


def _is_raw(x: dict[Any, Any]) -> bool:
    """Return whether an object is a raw array, and not a row of numbers with the same names."""
    return has_fields_of_raw(x) and not all(type(value) in NUMERIC for value in x.values())


def _read_named_rows(x: list[Any], pointers: Iterable[str], prepared: bool) -> NamedRows:
    """Return rows of values by name.

    pointers: to each row in the body.
    """
    problem = value_problem if prepared else number_problem
    if all(type(row) is dict for row in x) and _are_named_values(x, prepared):
        try:
            rows = named_values(x)
        except OverflowError:
            pass  # a whole number beyond float64; reported below
        else:
            if prepared and not np.isinf(rows.value).any():
                return rows
            if np.isfinite(rows.value).all():
                return without_zeros(rows)
    wrong = (
        wrong_named(row, i, at, problem)
        for i, (row, at) in enumerate(zip(x, pointers, strict=True))
    )
    what = "values" if prepared else "finite numbers"
    refuse_all(f"some rows are not objects of named {what}", chain.from_iterable(wrong))
    raise AssertionError("rows were refused, but each of them is valid")


def _are_named_values(x: list[dict[Any, Any]], prepared: bool) -> bool:
    """Return whether all names are valid, and all values are numbers, or fit for preparation."""
    kinds = {type(value) for row in x for value in row.values()}
    if not kinds <= (VALUES if prepared else NUMERIC):
        return False
    if str in kinds:
        values = chain.from_iterable(row.values() for row in x)
        if any(value_problem(value) for value in values if type(value) is str):
            return False
    return not any(name_problem(name) for name in set(chain.from_iterable(x)))


def _read_raw_rows(x: dict[str, Any], prepared: bool) -> tuple[Float64Array, bool]:
    with np.errstate(invalid="ignore"):  # a signalling NaN is refused below like any other
        values = read_raw(x, "/x").astype(np.float64)
    single = values.ndim == 1
    rows = _two_dimensional(values[None, :] if single else values)
    wrong = np.argwhere(np.isinf(rows) if prepared else ~np.isfinite(rows))[:MOST_ERRORS]
    if len(wrong):
        raise InvalidSamples(
            "some numbers are not finite",
            [
                {"row": int(i), "pointer": f"/x/{i}/{k}", "detail": "is NaN or infinite"}
                for i, k in wrong
            ],
        )
    return rows, single


def _two_dimensional(rows: Float64Array) -> Float64Array:
    if rows.shape[0] == 0:
        refuse("/x", "is empty")
    if rows.shape[1] == 0:
        refuse("/x/0", "has no numbers")
    return np.ascontiguousarray(rows, np.float64)

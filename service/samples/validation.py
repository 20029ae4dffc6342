"""Samples, and rows to predict, out of decoded bodies, checked."""

import math
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import FailFast, Field, TypeAdapter, ValidationError

from service.errors import (
    MOST_ERRORS,
    Invalid,
    InvalidSamples,
    SampleError,
    pointer_to,
    refuse,
    refuse_all,
)
from service.samples.named_rows import NamedRows, Rows, n_rows, named_rows
from service.samples.raw_arrays import has_fields_of_raw, read_raw
from service.samples.targets import Targets, is_unicode, not_what, read_labels, read_targets
from service.spec.heads import Task
from solver.arrays import Float64Array

_LONGEST_NAME = 256
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Row = Annotated[list[_Number], FailFast()]
_ROWS = TypeAdapter(Annotated[list[_Row], FailFast()])
_NUMERIC = {int, float}


class Samples(NamedTuple):
    """Rows, (n, d) finite float64 or finite named numbers, and the labels or targets of all n."""

    X: Rows
    y: Targets


def read_samples(body: Any, task: Task = "classification") -> Samples:
    """Samples for a model of this task; raises InvalidSamples naming every wrong place."""
    fields = _fields(body, ("x", "y"))
    X, single = _read_rows(fields["x"])
    y: Targets
    if task == "regression":
        y = read_targets(fields["y"], single)
    else:
        y = read_labels(fields["y"], single)
    if len(y) != n_rows(X):
        refuse("/y", f"there are {n_rows(X)} rows in x and {len(y)} values in y")
    return Samples(X, y)


def read_rows(body: Any) -> Rows:
    """Rows of a prediction request."""
    return _read_rows(_fields(body, ("x",))["x"])[0]


def _fields(body: Any, names: tuple[str, ...]) -> dict[str, Any]:
    wanted = " and ".join(names)
    if not isinstance(body, dict):
        raise Invalid(f"the body must be an object with {wanted}")
    unknown = (name for name in body if name not in names)
    problems: list[SampleError] = [
        {"pointer": pointer_to(name), "detail": f"unknown field; the body has {wanted}"}
        for name in islice(unknown, MOST_ERRORS)
    ]
    problems += [{"pointer": f"/{n}", "detail": "field is missing"} for n in names if n not in body]
    if problems:
        raise Invalid(f"the body must have {wanted} and nothing else", problems)
    return body


def _read_rows(x: Any) -> tuple[Rows, bool]:
    """Rows, and whether `x` was one row without a list around it."""
    if isinstance(x, dict):
        if _is_raw(x):
            return _read_raw_rows(x)
        return _read_named_rows([x], ["/x"]), True
    if not isinstance(x, list):
        refuse("/x", "must be an array of rows, or one row")
    if not x:
        refuse("/x", "is empty")
    if isinstance(x[0], dict):
        return _read_named_rows(x, (f"/x/{i}" for i in range(len(x)))), False
    single = not isinstance(x[0], list)
    try:
        rows = _ROWS.validate_python([x] if single else x)
    except ValidationError:
        wrong = _wrong_numbers(x, 0, "/x") if single else _wrong_in_rows(x)
        refuse_all("some rows are not arrays of finite numbers", wrong)
    width = len(rows[0])
    refuse_all("rows differ in length", _uneven(rows, width))
    return _two_dimensional(np.array(rows)), single


def _is_raw(x: dict[Any, Any]) -> bool:
    """Whether an object is a raw array: a row may have these names too, but has numbers there."""
    return has_fields_of_raw(x) and not all(type(value) in _NUMERIC for value in x.values())


def _read_named_rows(x: list[Any], pointers: Iterable[str]) -> NamedRows:
    """Rows of named numbers; pointers: the place of each in the body."""
    if all(type(row) is dict for row in x) and _are_named_numbers(x):
        try:
            rows = named_rows(x)
        except OverflowError:
            pass  # a whole number beyond float64; found below
        else:
            if np.isfinite(rows.value).all():
                return rows
    wrong = (_wrong_named(row, i, at) for i, (row, at) in enumerate(zip(x, pointers, strict=True)))
    refuse_all("some rows are not objects of named finite numbers", chain.from_iterable(wrong))
    raise AssertionError("rows were refused, but each of them is valid")


def _are_named_numbers(x: list[dict[Any, Any]]) -> bool:
    """Whether all names will do and all values are numbers, if not finite ones."""
    if not {type(value) for row in x for value in row.values()} <= _NUMERIC:
        return False
    return not any(_name_problem(name) for name in set(chain.from_iterable(x)))


def _wrong_named(row: Any, i: int, pointer: str) -> Iterator[SampleError]:
    """What is wrong with a row. A name that will not do is not repeated in a pointer."""
    if type(row) is not dict:
        detail = "must be an object of named numbers: all rows of a request are of one kind"
        yield {"row": i, "pointer": pointer, "detail": detail}
        return
    for name, value in row.items():
        detail = _name_problem(name)
        if detail:
            yield {"row": i, "pointer": pointer, "detail": f"has a name that {detail}"}
            continue
        detail = _number_problem(value)
        if detail:
            yield {"row": i, "pointer": pointer + pointer_to(name), "detail": detail}


def _name_problem(name: Any) -> str:
    """What is wrong with a feature's name; "" if it is valid."""
    if type(name) is not str:
        return "is not text"
    if not 1 <= len(name) <= _LONGEST_NAME:
        return f"does not have 1 to {_LONGEST_NAME} characters"
    return "" if is_unicode(name) else "is not valid Unicode"


def _read_raw_rows(x: dict[str, Any]) -> tuple[Float64Array, bool]:
    with np.errstate(invalid="ignore"):  # a signalling NaN is refused below like any other
        values = read_raw(x, "/x").astype(np.float64)
    single = values.ndim == 1
    rows = _two_dimensional(values[None, :] if single else values)
    wrong = np.argwhere(~np.isfinite(rows))[:MOST_ERRORS]
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


def _wrong_in_rows(x: list[Any]) -> Iterator[SampleError]:
    for i, row in enumerate(x):
        if isinstance(row, list):
            yield from _wrong_numbers(row, i, f"/x/{i}")
        else:
            detail = "must be an array of numbers"
            if isinstance(row, dict):
                detail += ": all rows of a request are of one kind"
            yield {"row": i, "pointer": f"/x/{i}", "detail": detail}


def _wrong_numbers(row: list[Any], i: int, pointer: str) -> Iterator[SampleError]:
    for k, value in enumerate(row):
        detail = _number_problem(value)
        if detail:
            yield {"row": i, "pointer": f"{pointer}/{k}", "detail": detail}


def _number_problem(value: Any) -> str:
    """What is wrong with a number; "" if it is valid."""
    if type(value) not in _NUMERIC:
        return f"must be a number{not_what(value)}"
    try:
        return "" if math.isfinite(value) else "is NaN or infinite"
    except OverflowError:
        return "is too large for a 64-bit floating-point number"


def _uneven(rows: list[list[float]], width: int) -> Iterator[SampleError]:
    for i, row in enumerate(rows):
        if len(row) != width:
            detail = f"has {len(row)} numbers, row 0 has {width}"
            yield {"row": i, "pointer": f"/x/{i}", "detail": detail}

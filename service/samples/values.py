"""Problems of values, names and rows in decoded bodies: what is wrong, and where."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from wolfstream.service.errors import SampleError, pointer_to, refuse
from wolfstream.service.files.nested_values import path_in, what_stays

LONGEST_NAME = 256
NUMERIC = {int, float}
VALUES = {int, float, bool, str, type(None)}


def wrong_named(
    row: Any, i: int, pointer: str, problem: Callable[[Any], str], sent: Any
) -> Iterator[SampleError]:
    """Yield the problems of a row by name; pointers contain no invalid name.

    Args:
        row: that may be wrong, without values in values.
        i: its index.
        pointer: to it.
        problem: what is wrong with a value, or "".
        sent: the row as it was sent.
    """
    if type(row) is not dict:
        detail = "must be an object of named numbers: all rows of a request are of one kind"
        yield {"row": i, "pointer": pointer, "detail": detail}
        return
    for name, value in row.items():
        detail = name_problem(name)
        if detail:
            yield {"row": i, "pointer": pointer, "detail": f"has a name that {detail}"}
            continue
        detail = problem(value)
        if detail:
            at = pointer_to(*path_in(sent, name))
            yield {"row": i, "pointer": pointer + at, "detail": detail}


def name_problem(name: Any) -> str:
    """Return what is wrong with a feature's name; "" if it is valid."""
    if type(name) is not str:
        return "is not text"
    if not 1 <= len(name) <= LONGEST_NAME:
        return f"does not have 1 to {LONGEST_NAME} characters"
    return "" if is_unicode(name) else "is not valid Unicode"


def wrong_numbers(row: list[Any], i: int, pointer: str) -> Iterator[SampleError]:
    """Yield the problems of the numbers of row i."""
    return _wrong_in_row(row, i, pointer, number_problem)


def wrong_values(row: list[Any], i: int, pointer: str) -> Iterator[SampleError]:
    """Yield the problems of the values of row i for a model that prepares its rows."""
    return _wrong_in_row(row, i, pointer, value_problem)


def wrong_in_rows(
    x: list[Any],
    wrong_in_row: Callable[[list[Any], int, str], Iterator[SampleError]] = wrong_numbers,
) -> Iterator[SampleError]:
    """Yield the problems of rows that should be arrays."""
    for i, row in enumerate(x):
        if isinstance(row, list):
            yield from wrong_in_row(row, i, f"/x/{i}")
        else:
            detail = "must be an array of numbers"
            if isinstance(row, dict):
                detail += ": all rows of a request are of one kind"
            yield {"row": i, "pointer": f"/x/{i}", "detail": detail}


def _wrong_in_row(
    row: list[Any], i: int, pointer: str, problem: Callable[[Any], str]
) -> Iterator[SampleError]:
    for k, value in enumerate(row):
        detail = problem(value)
        if detail:
            yield {"row": i, "pointer": f"{pointer}/{k}", "detail": detail}


def number_problem(value: Any) -> str:
    """Return what is wrong with a number; "" if it is valid."""
    if type(value) not in NUMERIC:
        return f"must be a number{not_what(value)}"
    try:
        return "" if math.isfinite(value) else "is NaN or infinite"
    except OverflowError:
        return "is too large for a 64-bit floating-point number"


def value_problem(value: Any) -> str:
    """Return what is wrong with a value for a model that prepares its rows; "" if it is valid."""
    if type(value) is str:
        return "" if is_unicode(value) else "is not valid Unicode"
    if value is None or type(value) is bool or value != value:
        return ""
    if type(value) not in NUMERIC:
        what = "must be a number, a text, true, false or null"
        if not isinstance(value, dict | list):
            return f"{what}{not_what(value)}"
        return f"{what}, {what_stays(value)}"
    return number_problem(value).replace("NaN or infinite", "infinite")


def uneven(rows: list[list[Any]], width: int) -> Iterator[SampleError]:
    """Yield a problem for each row of another length."""
    for i, row in enumerate(rows):
        if len(row) != width:
            detail = f"has {len(row)} numbers, row 0 has {width}"
            yield {"row": i, "pointer": f"/x/{i}", "detail": detail}


def not_what(value: Any) -> str:
    """Return ", not" and the kind of a value that is no number; "" for unknown kinds."""
    kinds = {str: "text", bool: "a boolean", type(None): "null", list: "an array"}
    kind = kinds.get(type(value))
    return f", not {kind}" if kind else ""


def is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def listed(y: Any, single: bool) -> list[Any]:
    """Return the y of each sample, as a list.

    single: whether y is that of one sample.

    Raises InvalidSamples.
    """
    if single:
        return [y]
    if not isinstance(y, list):
        refuse("/y", "must be an array, one value for each row")
    return y


def wrong_in(y: list[Any], single: bool, problem: Callable[[Any], str]) -> Iterator[SampleError]:
    """Yield the problems of y, which `listed` returned."""
    for i, value in enumerate(y):
        detail = problem(value)
        if detail:
            yield {"row": i, "pointer": "/y" if single else f"/y/{i}", "detail": detail}

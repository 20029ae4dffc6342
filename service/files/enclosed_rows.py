"""Flat rows within an object, as services answer and data frames are written.

    {"count": 2, "data": [{"amount": 12.5, "shop": "north"}, {"amount": 8, "shop": "south"}]}
    {"columns": ["amount", "shop"], "index": [0, 1], "data": [[12.5, "north"], [8, "south"]]}
    {"amount": {"0": 12.5, "1": 8}, "shop": {"0": "north", "1": "south"}}

It refuses nothing: an object that may be a row itself is none of these.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from wolfstream.service.files.roles import LABEL_COLUMNS, Roles

# The names under which data frames have their columns and their rows.
_COLUMNS, _ROWS = "columns", "data"
_MOST_LISTED, _LONGEST_LISTED = 5, 40


class EnclosedRows(NamedTuple):
    """Rows within an object.

    Attributes:
        pointer: JSON pointer to the rows.
        rows: each name -> value.
        message: a sentence about what was read.
    """

    pointer: str
    rows: list[dict[str, Any]]
    message: str


def enclosed_rows(body: Any, roles: Roles, kept: Collection[str] = ()) -> EnclosedRows | None:
    """Return the rows within an object; None if it has none, or may be a row itself.

    Args:
        body: the decoded object.
        roles: the columns that are not features; a row has one that is named.
        kept: names beside the rows that have a meaning of their own.
    """
    if type(body) is not dict or not body or not all(type(name) is str for name in body):
        return None
    if _is_by_column(body):
        return _rows_by_column(body)
    wanted = {name for name in roles if name is not None}
    if not wanted.isdisjoint(body) or any(name.lower() in LABEL_COLUMNS for name in body):
        return None
    lists = [name for name, value in body.items() if type(value) is list and _are_objects(value)]
    if len(lists) == 1:
        (name,) = lists
        return EnclosedRows(f"/{_escaped(name)}", body[name], _message(body, {name, *kept}, name))
    names, rows = body.get(_COLUMNS) or [], body.get(_ROWS) or []
    if not lists and _is_split(names, rows):
        named = [dict(zip(names, row, strict=True)) for row in rows]
        return EnclosedRows(f"/{_ROWS}", named, _message(body, {_COLUMNS, _ROWS, *kept}, _ROWS))
    return None


def _are_objects(rows: list[Any]) -> bool:
    return bool(rows) and set(map(type, rows)) == {dict}


def _is_split(names: Any, rows: Any) -> bool:
    """Return whether rows are arrays, with a value for each of different names."""
    if type(names) is not list or type(rows) is not list or not names or not rows:
        return False
    if set(map(type, names)) != {str} or set(map(type, rows)) != {list}:
        return False
    return set(map(len, rows)) == {len(names)} == {len(set(names))}


def _is_by_column(body: dict[str, Any]) -> bool:
    """Return whether all values are objects of the same rows, named by their numbers."""
    if set(map(type, body.values())) != {dict}:
        return False
    first = next(iter(body.values()))
    numbers = [str(i) for i in range(len(first))]
    return bool(first) and all(list(column) == numbers for column in body.values())


def _rows_by_column(body: dict[str, Any]) -> EnclosedRows:
    values = zip(*(column.values() for column in body.values()), strict=True)
    rows = [dict(zip(body, row, strict=True)) for row in values]
    message = "the rows were read from objects of columns, as a data frame writes them"
    return EnclosedRows("", rows, message)


def _message(body: dict[str, Any], read: Collection[str], rows: str) -> str:
    others = [name for name in body if name not in read]
    shown = ", ".join(f"`{name[:_LONGEST_LISTED]}`" for name in others[:_MOST_LISTED])
    more = f" and {len(others) - _MOST_LISTED} more" if len(others) > _MOST_LISTED else ""
    beside = f"; {shown}{more} beside them was passed over" if others else ""
    return f"the rows are those under `{rows[:_LONGEST_LISTED]}`{beside}"


def _escaped(name: str) -> str:
    """Return a name as a token of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")

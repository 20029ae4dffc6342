"""Flat rows: a row's label, id and weight stand among its values, as in a table.

    [{"amount": 12.5, "shop": "north", "Outcome": "ok"}, ...]      ?label=Outcome

They become the fields of other bodies: `x`, and `y`, `ids` and `weight` beside it. Rows that all
have the same names become a table, as they are in CSV.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from wolfstream.service.errors import (
    Invalid,
    InvalidSamples,
    Refusal,
    SampleError,
    pointer_to,
    refuse_all,
)
from wolfstream.service.files.roles import NO_ROLES, Roles, find_roles
from wolfstream.service.files.text import DataFileError
from wolfstream.service.files.values import features_of

MOST_WARNINGS = 16
# The fields of labels, ids and weights, in the order of their roles.
_FIELDS = ("y", "ids", "weight")


class Warned(NamedTuple):
    """What was read otherwise than its sender may expect. column: None if it is of no column."""

    slug: str
    column: str | None
    message: str


def left_out(number: int) -> Warned:
    """Return the warning about a column that nobody has named. number: of the column, from 1."""
    return Warned(
        "column-left-out",
        None,
        f"column {number} has no name, as an index that a data frame wrote, and is left out; give "
        "it a name to have it learned",
    )


class Origin(NamedTuple):
    """Where the fields of a body came from.

    line_of_row: of each row, counted from 1; empty where a body has no lines.
    rows: the pointer of its rows. column_of: field -> the column that it was in flat rows.
    names: of the columns of flat rows that have become a table.
    """

    line_of_row: Sequence[int] = ()
    rows: str = "/x"
    column_of: Mapping[str, str] = {}
    names: Sequence[str] = ()

    def located(self, error: Refusal) -> Refusal:
        """Return the refusal, whose errors name the places in the body that was sent."""
        for wrong in error.errors:
            if "row" in wrong and self.line_of_row:
                wrong["line"] = self.line_of_row[wrong["row"]]
            if "pointer" in wrong:
                wrong["pointer"] = self._pointer(wrong["pointer"])
        return error

    def _pointer(self, pointer: str) -> str:
        field, *place = pointer[1:].split("/")
        if field == "x":
            if self.names and len(place) == 2 and place[1].isdecimal():
                place[1] = pointer_to(self.names[int(place[1])])[1:]
        elif field == "names" and place and self.names:
            return pointer_to(self.names[int(place[0])])
        elif field in self.column_of:
            place.append(pointer_to(self.column_of[field])[1:])
        else:
            return pointer
        return "/".join([self.rows, *place])


class Fields(dict[str, Any]):
    """The plain data of a body, and where it came from."""

    def __init__(
        self, fields: Mapping[str, Any], origin: Origin, warnings: Sequence[Warned] = ()
    ) -> None:
        super().__init__(fields)
        self.origin, self.warnings = origin, tuple(warnings)


def with_roles(body: Any, roles: Roles, labelled: bool) -> Any:
    """Return a body whose flat rows, if it has such rows, have become its fields.

    Rows are flat in a list without an object around it, and where a role names a column of them.
    labelled: whether they have labels. Raises Invalid, InvalidSamples.
    """
    if isinstance(body, list):
        return of_flat_rows(body, roles, labelled)
    if roles == NO_ROLES or not isinstance(body, dict):
        return body
    x = body.get("x")
    if not isinstance(x, list | dict):
        return of_flat_rows([body], roles, labelled)
    if taken := body.keys() & set(_FIELDS):
        raise Invalid(
            f"label, id and weight name columns of rows, and the body has {min(taken)} beside its "
            "rows: leave one of the two out"
        )
    if isinstance(x, dict):
        x = [x]
    if (names := body.get("names")) is not None and _are_rows_under(names, x):
        x = [dict(zip(names, row, strict=True)) for row in x]
    read = of_flat_rows(x, roles, labelled, "/x")
    return Fields({**{k: v for k, v in body.items() if k != "names"}, **read}, read.origin)


def _are_rows_under(names: Any, rows: list[Any]) -> bool:
    """Return whether rows are arrays of values under different names."""
    if not isinstance(names, list) or not all(type(name) is str for name in names):
        return False
    lengths = {len(row) if type(row) is list else -1 for row in rows}
    return lengths == {len(names)} == {len(set(names))}


def of_flat_rows(
    rows: list[Any],
    roles: Roles,
    labelled: bool,
    pointer: str = "",
    line_of_row: Sequence[int] = (),
) -> Fields:
    """Return the fields of flat rows. pointer: of the rows in the body. Raises InvalidSamples."""
    wrong = (
        SampleError(row=i, pointer=f"{pointer}/{i}", detail="must be an object of named values")
        for i, row in enumerate(rows)
        if type(row) is not dict or not all(type(name) is str for name in row)
    )
    refuse_all("flat rows are objects, each value under the name of its column", wrong)
    if not rows:
        return Fields({"x": [], "y": []} if labelled else {"x": []}, Origin())
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    try:
        places = find_roles(names, roles, labelled)
    except DataFileError as error:
        raise InvalidSamples(str(error)) from None
    column_of = {
        field: names[place]
        for field, place in zip(_FIELDS, places, strict=True)
        if place is not None
    }
    kept, x = features_of(rows, names, set(column_of.values()))
    fields: dict[str, Any] = {"x": x} if kept is None else {"x": x, "names": kept}
    for field in ("y", "weight") if labelled else ("ids",):
        if field in column_of:
            fields[field] = [row.get(column_of[field]) for row in rows]
    return Fields(fields, Origin(line_of_row, pointer, column_of, kept or ()))

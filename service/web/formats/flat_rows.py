"""Flat rows: objects that have a row's label, id and weight among its features, as in a table.

    [{"amount": 12.5, "shop": "north", "Outcome": "ok"}, ...]      ?label=Outcome

They are converted to the usual fields of a body: `x` with the features, and `y`, `ids` and
`weight`. If all rows have the same names, `x` is a table, as it is in CSV.
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
from wolfstream.service.files.enclosed_rows import enclosed_rows
from wolfstream.service.files.left_out import LeftOut
from wolfstream.service.files.nested_values import flat_rows, is_nested, shared_paths
from wolfstream.service.files.roles import NO_ROLES, Roles, find_roles
from wolfstream.service.files.text import DataFileError
from wolfstream.service.files.values import features_of
from wolfstream.service.samples.validation import ASKED

MAX_WARNINGS = 16
# A body that has one of these is no object around flat rows.
_OF_SAMPLES = {"x", "y", "names", "weight"}
# The fields that the roles of columns fill, in the order of `Roles`.
_FIELDS = ("y", "ids", "weight")


class RequestWarning(NamedTuple):
    """Says what was read in another way than the sender may expect.

    Attributes:
        column: the column concerned; None if the warning concerns no named column.
    """

    slug: str
    column: str | None
    message: str


def left_out_warnings(parts: Sequence[LeftOut]) -> tuple[RequestWarning, ...]:
    """Return warnings about the parts of a table that are left out."""
    return tuple(RequestWarning(part.slug, None, part.message) for part in parts)


class Origin(NamedTuple):
    """Where the fields of a body were in the body as it was sent."""

    line_of_row: Sequence[int] = ()  # counted from 1; empty if the body does not consist of lines
    rows: str = "/x"  # JSON pointer to the rows
    column_of: Mapping[str, str] = {}  # field -> its column in flat rows
    names: Sequence[str] = ()  # the columns, if flat rows were converted to a table
    # column that was an object's value -> the names that lead to it; None if rows differ in it
    paths: Mapping[str, tuple[str, ...] | None] = {}
    single: bool = False  # whether the body has one row, and not a list of rows

    def locate_errors(self, error: Refusal) -> Refusal:
        """Make the errors of a refusal name lines and pointers of the body as it was sent."""
        for fault in error.errors:
            if "row" in fault and self.line_of_row:
                fault["line"] = self.line_of_row[fault["row"]]
            if "pointer" in fault:
                fault["pointer"] = self._sent_pointer(fault["pointer"])
        return error

    def _sent_pointer(self, pointer: str) -> str:
        field, *place = pointer[1:].split("/")
        if self.single and place[:1] == ["0"]:
            del place[0]
        if field == "x":
            if self.names and len(place) == 2 and place[1].isdecimal():
                place[1] = pointer_to(self.names[int(place[1])])[1:]
            place = self._as_nested(place)
        elif field == "names" and place and self.names:
            return pointer_to(self.names[int(place[0])])
        elif field in self.column_of:
            place = self._as_nested([*place, pointer_to(self.column_of[field])[1:]])
        else:
            return "/".join(["", field, *place])
        return "/".join([self.rows, *place])

    def _as_nested(self, place: list[str]) -> list[str]:
        """Return the tokens of a pointer within the rows, into the objects that had its column."""
        if not place:
            return place
        *row, token = place
        name = token.replace("~1", "/").replace("~0", "~")
        path = self.paths.get(name, (name,)) or ()
        return row + [pointer_to(part)[1:] for part in path]


def origin_of(body: Any) -> Origin | None:
    """Return the origin of a decoded body without lines; None if all places are those of `Origin`.

    That is where it has a single row, or rows with values in values.
    """
    x = body.get("x") if isinstance(body, dict) else None
    if not isinstance(x, list | dict):
        return None
    rows = [x] if isinstance(x, dict) else x
    single = rows is not x or not isinstance(rows[0], list | dict)
    paths: dict[str, tuple[str, ...] | None] = {}
    if isinstance(rows[0], dict) and any(is_nested(row.values()) for row in rows):
        paths = shared_paths(rows)
    return Origin(paths=paths, single=single) if paths or single else None


def located(error: Refusal, body: Any) -> Refusal:
    """Return an error of what was read of a body, with pointers into the body."""
    origin = origin_of(body)
    return error if origin is None else origin.locate_errors(error)


class Fields(dict[str, Any]):
    """The fields of a body, their origin, and warnings about the body."""

    def __init__(
        self, fields: Mapping[str, Any], origin: Origin, warnings: Sequence[RequestWarning] = ()
    ) -> None:
        super().__init__(fields)
        self.origin, self.warnings = origin, tuple(warnings)


def with_roles(body: Any, roles: Roles, labelled: bool) -> Any:
    """Return a body with its flat rows, if it has any, converted to fields.

    Rows are flat if the body is a list, or has one within, or if a role names one of their columns.

    Args:
        body: the decoded body.
        roles: the columns of labels, ids and weights.
        labelled: whether the rows have labels.

    Raises Invalid, InvalidSamples.
    """
    if isinstance(body, list):
        return read_flat_rows(body, roles, labelled)
    if not isinstance(body, dict):
        return body
    if body.keys().isdisjoint(_OF_SAMPLES) and (
        enclosed := enclosed_rows(body, roles, () if labelled else ASKED)
    ):
        read = read_flat_rows(enclosed.rows, roles, labelled, enclosed.pointer)
        asked = {} if labelled else {name: body[name] for name in body if name in ASKED}
        warning = RequestWarning("rows-within", None, enclosed.message)
        return Fields({**asked, **read}, read.origin, [warning])
    if roles == NO_ROLES:
        return body
    x = body.get("x")
    if not isinstance(x, list | dict):
        return read_flat_rows([body], roles, labelled)
    if taken := body.keys() & set(_FIELDS):
        raise Invalid(
            f"label, id and weight name columns of rows, and the body has {min(taken)} beside its "
            "rows: leave one of the two out"
        )
    if isinstance(x, dict):
        x = [x]
    if (names := body.get("names")) is not None and _is_table(names, x):
        x = [dict(zip(names, row, strict=True)) for row in x]
    read = read_flat_rows(x, roles, labelled, "/x")
    return Fields({**{k: v for k, v in body.items() if k != "names"}, **read}, read.origin)


def _is_table(names: Any, rows: list[Any]) -> bool:
    """Return whether the names are distinct, and each row has one value for each."""
    if not isinstance(names, list) or not all(type(name) is str for name in names):
        return False
    lengths = {len(row) if type(row) is list else -1 for row in rows}
    return lengths == {len(names)} == {len(set(names))}


def read_flat_rows(
    rows: Sequence[Any],
    roles: Roles,
    labelled: bool,
    pointer: str = "",
    line_of_row: Sequence[int] = (),
) -> Fields:
    """Convert flat rows to fields.

    Args:
        rows: the decoded rows, which may be invalid.
        roles: the columns of labels, ids and weights.
        labelled: whether the rows have labels.
        pointer: JSON pointer to the rows in the body.
        line_of_row: as in `Origin`.

    Raises InvalidSamples.
    """
    faults = (
        SampleError(row=i, pointer=f"{pointer}/{i}", detail="must be an object of named values")
        for i, row in enumerate(rows)
        if type(row) is not dict or not all(type(name) is str for name in row)
    )
    refuse_all("flat rows are objects, each value under the name of its column", faults)
    if not rows:
        return Fields({"x": [], "y": []} if labelled else {"x": []}, Origin())
    sent, rows = rows, flat_rows(rows)
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
    paths = {} if rows is sent else shared_paths(sent)
    return Fields(fields, Origin(line_of_row, pointer, column_of, kept or (), paths))

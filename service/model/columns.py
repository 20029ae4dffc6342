"""What a description says of the columns of a table, and what predictions are told of names."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.column_facts import (
    MOST_NOTICES,
    FactsView,
    Notice,
    unread_values,
)
from wolfstream.solver.prepare.named_rows import NamedRows, Rows
from wolfstream.solver.prepare.nearest_name import nearest_name
from wolfstream.solver.prepare.read_cells import read
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.schema import Column, late_columns, places_of
from wolfstream.solver.stream.rows import RowsView

_LONGEST_NAME = 40
# To look for a name that may be meant takes milliseconds of the event loop.
_MOST_SUGGESTIONS = 4
_OF_NUMBERS = ("number", "number in text", "boolean", "time", "code", "constant")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def described_columns(rows: RowsView) -> list[dict[str, Any]] | None:
    """Return what is known of a table's columns, in their order; None for other rows."""
    form, facts = rows.form, rows.facts
    if form.schema is None or form.prepare is None or facts is None:
        return None if form.schema is None else [{"name": c.name} for c in form.schema.columns]
    coded = _coded(form)
    return [
        _described(column, k, facts, column.name in coded)
        for k, column in enumerate([*form.schema.columns, *late_columns(form.schema)])
    ]


def _described(column: Column, k: int, facts: FactsView, coded: bool) -> dict[str, Any]:
    if k >= len(facts.missing):  # nothing has been counted since a file was read
        return {"name": column.name, "kind": column.reading.kind, "why": column.reading.why}
    kind, why = facts.kind(column, k, coded=coded)
    # Of texts, only their length is a number.
    numbers = kind in _OF_NUMBERS and column.reading.kind != "text"
    known = facts.range(k) if numbers else None
    times = column.reading.kind == "time"
    return {
        "name": column.name,
        "kind": kind,
        "why": why,
        "missing": float(facts.missing[k]) / facts.rows if facts.rows else 0.0,
        "examples": list(facts.examples[k]),
        "range": known and [_shown(value, times) for value in known],
        "distinct": facts.distinct(k),
        "revised": int(facts.revised[k]) or None,
    }


def _coded(form: RowForm) -> set[str]:
    """Return the names of the columns whose numbers are codes."""
    found, at = set[str](), 0
    for column in () if form.schema is None else form.schema.columns:
        width = column.n_numbers + (column.used and column.slots > 0)
        if not set(range(at, at + width)).isdisjoint(form.coded):
            found.add(column.name)
        at += width
    return found


def _shown(value: float, time: bool) -> float | str:
    if not time:
        return value
    try:
        return (_EPOCH + timedelta(seconds=value)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return value


def notices_of_rows(form: RowForm, rows: Rows) -> list[Notice]:
    """Return what is to be said of rows to predict."""
    if not isinstance(rows, NamedRows | Cells):
        return []
    return [*notices_of_names(form, rows.names or ()), *_notices_of_values(form, rows)]


def _notices_of_values(form: RowForm, rows: NamedRows | Cells) -> list[Notice]:
    """Return which columns have values that their kind cannot read, each with the first of them."""
    schema = form.schema
    if schema is None or schema.strict or not len(rows.texts):
        return []
    cells = form.cells(rows)
    places = places_of(schema, cells)
    plain = read(schema.columns, cells, places)
    return [
        Notice(
            "unread-value",
            column.name,
            f"`{column.name[:_LONGEST_NAME]}` is a {column.reading.kind}; row {row + 1} has "
            f"{text!r}, which is missing there",
        )
        for column, row, text in unread_values(schema.columns, plain, places)
    ]


def notices_of_names(form: RowForm, names: Sequence[str]) -> list[Notice]:
    """Return which names of columns the model does not know, the first with the nearest known."""
    schema = form.schema
    if schema is None or not schema.open:
        return []
    known = dict.fromkeys((*schema.names, *schema.late))
    unknown = [name for name in names if name not in known][:MOST_NOTICES]
    found = list[Notice]()
    for k, name in enumerate(unknown):
        shown = name[:_LONGEST_NAME]
        close = nearest_name(name, known) if k < _MOST_SUGGESTIONS else None
        hint = "" if close is None else f"; did you mean `{close[:_LONGEST_NAME]}`?"
        message = f"`{shown}` is no column of the model and was passed over{hint}"
        found.append(Notice("unknown-column", shown, message))
    return found


def plain_notices(notices: list[Notice]) -> list[dict[str, Any]]:
    """Return notices as a response's `warnings`, at most MOST_NOTICES."""
    return [notice._asdict() for notice in notices[:MOST_NOTICES]]

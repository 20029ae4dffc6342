"""Descriptions of a table's columns, and warnings about columns of rows to predict."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.column_facts import (
    MOST_NOTICES,
    FactsView,
    Notice,
    unread_values,
)
from wolfstream.solver.prepare.named_rows import NamedRows, Rows
from wolfstream.solver.prepare.nearest_name import nearest_name
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.schema import Column, late_columns
from wolfstream.solver.prepare.table_rows import TableRows
from wolfstream.solver.stream.rows import RowsView

_LONGEST_NAME = 40
# The search for a similar name takes milliseconds of the event loop.
_MOST_SUGGESTIONS = 4
# The largest share of learned samples without a column whose absence is worth a warning.
_SELDOM = 0.1
_NUMERIC_KINDS = ("number", "number in text", "boolean", "time", "code", "constant")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def described_columns(rows: RowsView) -> list[dict[str, Any]] | None:
    """Return descriptions of a table's columns, in order; None for rows of another form."""
    form, facts = rows.form, rows.facts
    if form.schema is None or form.prepare is None or facts is None:
        return None if form.schema is None else [{"name": c.name} for c in form.schema.columns]
    coded = _coded(form)
    return [
        _described(column, k, facts, column.name in coded)
        for k, column in enumerate([*form.schema.columns, *late_columns(form.schema)])
    ]


def _described(column: Column, k: int, facts: FactsView, coded: bool) -> dict[str, Any]:
    if k >= len(facts.missing):  # the model has learned no row yet
        return {"name": column.name, "kind": column.reading.kind, "why": column.reading.why}
    kind, why = facts.kind(column, k, coded=coded)
    # The length of a text is a number, but no value of the column.
    numbers = kind in _NUMERIC_KINDS and column.reading.kind != "text"
    bounds = facts.range(k) if numbers else None
    times = column.reading.kind == "time"
    return {
        "name": column.name,
        "kind": kind,
        "why": why,
        "missing": float(facts.missing[k]) / facts.rows if facts.rows else 0.0,
        "examples": list(facts.examples[k]),
        "range": bounds and [_shown(value, times) for value in bounds],
        "distinct": facts.distinct(k),
        "revised": int(facts.revised[k]) or None,
    }


def _coded(form: RowForm) -> set[str]:
    """Return the names of the columns whose numbers are codes."""
    names, start = set[str](), 0
    for column in () if form.schema is None else form.schema.columns:
        width = column.n_numbers + (column.used and column.slots > 0)
        if not set(range(start, start + width)).isdisjoint(form.coded):
            names.add(column.name)
        start += width
    return names


def _shown(value: float, time: bool) -> float | str:
    if not time:
        return value
    try:
        return (_EPOCH + timedelta(seconds=value)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return value


def notices_of_rows(
    view: RowsView, rows: Rows, checked: Rows | TableRows, *, each: bool = False
) -> list[Notice]:
    """Return the warnings about rows to predict.

    Args:
        view: of the model's rows.
        rows: of the request.
        checked: the same rows after `RowForm.checked`.
        each: whether each row is of a request of its own.
    """
    if not isinstance(rows, NamedRows | Cells) or not isinstance(checked, TableRows):
        return []
    notices = notices_of_names(view.form, rows.names or ())
    return [*notices, *_notices_of_absent(view, checked, each), *_notices_of_values(checked)]


def notices_of_header(view: RowsView, names: Sequence[str]) -> list[Notice]:
    """Return the warnings about the names of rows to predict that have them all."""
    notices, schema = notices_of_names(view.form, names), view.form.schema
    if schema is None or not names:
        return notices
    present = set(names)
    absent = [k for k, name in enumerate(schema.names) if name not in present]
    return [*notices, *_absent(view, absent)]


def _notices_of_absent(view: RowsView, table: TableRows, each: bool) -> list[Notice]:
    """Return a warning for each column that no row has; with `each`, that some row lacks."""
    places, cells = table.places[: len(table.schema.columns)], table.cells
    lacking = [k for k, j in enumerate(places) if j is None]
    if each and not cells.whole:
        incomplete = frozenset(np.flatnonzero(~cells.given.all(axis=0)).tolist())
        lacking += [k for k, j in enumerate(places) if j in incomplete]
    return _absent(view, lacking) if lacking else []


def _absent(view: RowsView, lacking: Sequence[int]) -> list[Notice]:
    """Return a warning for each of some columns that the learned rows nearly always had."""
    schema, facts = view.form.schema, view.facts
    if schema is None or facts is None or not facts.rows:
        return []
    notices = list[Notice]()
    for k in lacking:
        column, missing = schema.columns[k], float(facts.missing[k]) / facts.rows
        if column.used and missing <= _SELDOM and len(notices) < MOST_NOTICES:
            shown = column.name[:_LONGEST_NAME]
            message = (
                f"`{shown}` is absent, which counts as missing; {1.0 - missing:.0%} of the learned "
                "samples had it"
            )
            notices.append(Notice("absent-column", shown, message))
    return notices


def _notices_of_values(table: TableRows) -> list[Notice]:
    """Return a warning for each column with values that its kind cannot read, naming the first."""
    if table.schema.strict or not table.cells.texts:
        return []
    return [
        Notice(
            "unread-value",
            column.name,
            f"`{column.name[:_LONGEST_NAME]}` is a {column.reading.kind}; row {row + 1} has "
            f"{text!r}, which is missing there",
        )
        for column, row, text in unread_values(table)
    ]


def notices_of_names(form: RowForm, names: Sequence[str]) -> list[Notice]:
    """Return a warning for each unknown name, with the most similar name of the model."""
    schema = form.schema
    if schema is None or not schema.open:
        return []
    unknown = schema.unknown(names)[:MOST_NOTICES]
    notices, names_met = list[Notice](), (*schema.names, *schema.late) if unknown else ()
    for k, name in enumerate(unknown):
        shown = name[:_LONGEST_NAME]
        similar = nearest_name(name, names_met) if k < _MOST_SUGGESTIONS else None
        hint = "" if similar is None else f"; did you mean `{similar[:_LONGEST_NAME]}`?"
        message = f"`{shown}` is no column of the model and was passed over{hint}"
        notices.append(Notice("unknown-column", shown, message))
    return notices


def plain_notices(notices: list[Notice]) -> list[dict[str, Any]]:
    """Return notices as the `warnings` of a response, at most MOST_NOTICES."""
    return [notice._asdict() for notice in notices[:MOST_NOTICES]]

"""The texts and codes of rows that learners cross, and a row without each of them in turn."""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import NO_TEXT, text_of
from wolfstream.solver.prepare.influence import sources_of
from wolfstream.solver.prepare.named_rows import Rows, cells
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.schema import places_of


class CrossedValue(NamedTuple):
    """A text or a code in a row. column: of encoded rows.

    feature: its column's name, or place in rows without names.
    """

    feature: str | int
    value: str | float
    column: int


def crossed_values(form: RowForm, rows: Rows, encoded: Float64Array) -> list[list[CrossedValue]]:
    """Return those of each row, in the order of `RowForm.crossed`; missing ones are left out.

    encoded: the rows as `RowForm.encoded` gives them.
    """
    found: list[list[CrossedValue]] = [[] for _ in range(len(encoded))]
    texts, sources = _texts(form, rows), sources_of(form)
    for column in form.crossed_columns:
        feature = sources[column].feature
        for i, number in enumerate(encoded[:, column].tolist()):
            if not np.isnan(number):
                value = texts[column][i] if column in texts else number
                found[i].append(CrossedValue(feature, value, column))
    return found


def without_each(row: Float64Array, values: list[CrossedValue]) -> Float64Array:
    """Return an encoded row (columns,) once for each of its values, which is missing there."""
    rows = np.repeat(row[None], len(values), axis=0)
    rows[np.arange(len(values)), [one.column for one in values]] = np.nan
    return rows


def _texts(form: RowForm, rows: Rows) -> dict[int, list[str]]:
    """Return the texts of rows in each column of codes of texts, "" where there is none."""
    if form.schema is None or form.layout is None:
        return {}
    table = cells(rows)
    with_texts = [
        place
        for column, place in zip(form.schema.columns, places_of(form.schema, table), strict=True)
        if column.slots
    ]
    found = {}
    for column, place in zip(form.layout.categories, with_texts, strict=True):
        if place is not None:
            numbers = table.numbers[:, place].tolist()
            of_numbers = ["" if np.isnan(number) else text_of(number) for number in numbers]
            found[column] = [
                number if text == NO_TEXT else table.texts[text]
                for text, number in zip(table.text[:, place].tolist(), of_numbers, strict=True)
            ]
    return found

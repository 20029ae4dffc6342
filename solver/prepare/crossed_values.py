"""The texts and codes of rows that learners cross, and rows without each of them in turn.

A text whose words are learned is one of these values: a row without it lacks all of its words.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import NO_TEXT, text_of
from wolfstream.solver.prepare.influence import sources_of
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.words import codes_of_words, column_key


class CrossedValue(NamedTuple):
    """A text or a code in a row."""

    feature: str | int  # the column's name; its index in rows without names
    value: str | float
    columns: tuple[int, ...]  # the columns of encoded rows that are computed from it
    words: tuple[float, ...] = ()  # codes of its words


def crossed_values(form: RowForm, rows: Rows, encoded: Float64Array) -> list[list[CrossedValue]]:
    """Return the crossed values of each row, in the order of `RowForm.crossed`, if not missing.

    form: of the rows.
    rows: n rows as they came.
    encoded: the same as `RowForm.encoded` returns them.
    """
    row_values: list[list[CrossedValue]] = [[] for _ in range(len(encoded))]
    texts, sources = _texts(form, rows), sources_of(form)
    for column in form.crossed_columns:
        feature = sources[column].feature
        # The numbers and words within a text are columns, too.
        columns = tuple(
            k
            for k, source in enumerate(sources)
            if k == column or (source.feature == feature and source.word)
        )
        for i, number in enumerate(encoded[:, column].tolist()):
            if not np.isnan(number):
                value = texts[column][i] if column in texts else number
                row_values[i].append(CrossedValue(feature, value, columns))
    if form.wordy:
        _add_texts(row_values, form, rows)
    return row_values


def without_each(
    row: Float64Array, words: Float64Array | None, values: list[CrossedValue]
) -> tuple[Float64Array, Float64Array | None]:
    """Return a row once for each value, without this value, and the words of these rows.

    row: (columns,) encoded.
    words: (k,) codes of the row's words; None without words.
    values: m values of the row.

    Returns rows (m, columns), and words (m, k) or None.
    """
    rows = np.repeat(row[None], len(values), axis=0)
    for i, value in enumerate(values):
        rows[i, list(value.columns)] = np.nan
    if words is None:
        return rows, None
    lacks = [np.isin(words, value.words) for value in values]
    return rows, np.where(np.array(lacks), np.nan, words)


def _add_texts(row_values: list[list[CrossedValue]], form: RowForm, rows: Rows) -> None:
    """Add the texts whose words are learned, of columns of texts and of names that came late."""
    schema, table = form.schema, form.table(rows).cells
    assert schema is not None
    index = {name: j for j, name in enumerate(table.names or map(str, range(table.text.shape[1])))}
    names = [column.name for column in schema.columns if column.reading.wordy and not column.slots]
    sources = sources_of(form)
    for name in (*names, *schema.late):
        if name not in index:
            continue
        feature = name if schema.named else int(name)
        columns = tuple(k for k, source in enumerate(sources) if source.feature == feature)
        for i, text in enumerate(table.text[:, index[name]].tolist()):
            if text != NO_TEXT:
                value = table.texts[text]
                codes = tuple(codes_of_words(column_key(name), value))
                row_values[i].append(CrossedValue(feature, value, columns, codes))


def _texts(form: RowForm, rows: Rows) -> dict[int, list[str]]:
    """Return the texts of rows in each column of codes of texts, "" where there is none."""
    if form.schema is None or form.layout is None:
        return {}
    table = form.table(rows)
    cells = table.read
    with_texts = [j for column, j in zip(table.columns, table.places, strict=True) if column.slots]
    texts = {}
    for column, j in zip(form.layout.categories, with_texts, strict=True):
        if j is not None:
            numbers = cells.numbers[:, j].tolist()
            number_texts = ["" if np.isnan(number) else text_of(number) for number in numbers]
            texts[column] = [
                number_text if text == NO_TEXT else cells.texts[text]
                for text, number_text in zip(cells.text[:, j].tolist(), number_texts, strict=True)
            ]
    return texts

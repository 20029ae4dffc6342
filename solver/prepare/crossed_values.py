"""The texts and codes of rows that learners cross, and a row without each of them in turn.

A text whose words are learned is one of them: without it, a row lacks all of its words.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import NO_TEXT, text_of
from wolfstream.solver.prepare.influence import sources_of
from wolfstream.solver.prepare.kinds.words import codes_of_words, column_key
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.prepare.row_form import RowForm


class CrossedValue(NamedTuple):
    """A text or a code in a row.

    feature: its column's name, or place in rows without names. columns: of encoded rows, that are
    made of it. words: the codes of its words.
    """

    feature: str | int
    value: str | float
    columns: tuple[int, ...]
    words: tuple[float, ...] = ()


def crossed_values(form: RowForm, rows: Rows, encoded: Float64Array) -> list[list[CrossedValue]]:
    """Return those of each row, in the order of `RowForm.crossed`; missing ones are left out.

    encoded: the rows as `RowForm.encoded` gives them.
    """
    found: list[list[CrossedValue]] = [[] for _ in range(len(encoded))]
    texts, sources = _texts(form, rows), sources_of(form)
    for column in form.crossed_columns:
        feature = sources[column].feature
        # The numbers and words within its text are columns, too.
        columns = tuple(
            k
            for k, source in enumerate(sources)
            if k == column or (source.feature == feature and source.word)
        )
        for i, number in enumerate(encoded[:, column].tolist()):
            if not np.isnan(number):
                value = texts[column][i] if column in texts else number
                found[i].append(CrossedValue(feature, value, columns))
    if form.wordy:
        _add_texts(found, form, rows)
    return found


def without_each(
    row: Float64Array, words: Float64Array | None, values: list[CrossedValue]
) -> tuple[Float64Array, Float64Array | None]:
    """Return an encoded row (columns,) once for each of its values, which is missing there.

    words: the codes of the row's words; those of the rows come second.
    """
    rows = np.repeat(row[None], len(values), axis=0)
    for i, one in enumerate(values):
        rows[i, list(one.columns)] = np.nan
    if words is None:
        return rows, None
    lacks = [np.isin(words, one.words) for one in values]
    return rows, np.where(np.array(lacks), np.nan, words)


def _add_texts(found: list[list[CrossedValue]], form: RowForm, rows: Rows) -> None:
    """Add the texts whose words are learned, of columns of texts and of names that came late."""
    schema, table = form.schema, form.table(rows).cells
    assert schema is not None
    place = {name: j for j, name in enumerate(table.names or map(str, range(table.text.shape[1])))}
    names = [column.name for column in schema.columns if column.reading.wordy and not column.slots]
    sources = sources_of(form)
    for name in (*names, *schema.late):
        if name not in place:
            continue
        feature = name if schema.named else int(name)
        columns = tuple(k for k, source in enumerate(sources) if source.feature == feature)
        for i, text in enumerate(table.text[:, place[name]].tolist()):
            if text != NO_TEXT:
                given = table.texts[text]
                codes = tuple(codes_of_words(column_key(name), given))
                found[i].append(CrossedValue(feature, given, columns, codes))


def _texts(form: RowForm, rows: Rows) -> dict[int, list[str]]:
    """Return the texts of rows in each column of codes of texts, "" where there is none."""
    if form.schema is None or form.layout is None:
        return {}
    of_rows = form.table(rows)
    table = of_rows.read
    with_texts = [
        place for column, place in zip(of_rows.columns, of_rows.places, strict=True) if column.slots
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

"""Gradients in the user's own features, by their names and units, from those in prepared rows."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import DAY, MOMENT_COLUMNS, PERIODS
from wolfstream.solver.prepare.columns import Layout, PreparationView, own_codes
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.scale import COMPRESSED, slopes


class Influence(NamedTuple):
    """The gradient of a prediction in one feature."""

    feature: str | int  # its name; its index in rows without names
    category: str | None  # a text or word: the gradient is that of having it (1) or not (0)
    gradient: float  # in the feature's unit; in seconds for a time
    deviation: float | None  # of the feature so far; None if rows are learned as they come

    @property
    def size(self) -> float:
        """The change of the prediction by one deviation of the feature."""
        return abs(self.gradient * (1.0 if self.deviation is None else self.deviation))


class Source(NamedTuple):
    """The feature that a column of encoded rows is computed from."""

    feature: str | int
    texts: tuple[str, ...] = ()  # of a column of codes: code -> text
    moment: bool = False  # whether it is a time
    word: str | None = None  # the word or unit within a text that the column is about


def influences(
    form: RowForm, preparation: PreparationView | None, row: Float64Array, gradient: Float64Array
) -> list[Influence]:
    """Return the influences that are not zero, the largest first.

    form: of rows.
    preparation: of rows; None if heads see rows as they come.
    row: (columns,) numbers and codes, as `RowForm.encoded` returns them.
    gradient: (width,) in the row as heads see it.
    """
    sources, layout = sources_of(form), form.layout
    assert layout is not None
    deviation: Float64Array | None = None
    if preparation is not None:
        moments = preparation.moments
        numbers = preparation.numbers(row[None])
        gradient = gradient * slopes(moments, numbers, COMPRESSED)[0]
        deviation = np.sqrt(moments.square)
        for j, bend in layout.bends:
            # The derivative of asinh(x / bend) in x.
            slope = 1.0 / (bend * np.cosh(np.nan_to_num(numbers[0, j])))
            gradient[j] *= slope
            deviation[j] /= slope
        for j in layout.since:
            # The derivative of log(1 + |s|) in s; 0 without a row before.
            gradient[j] *= np.nan_to_num(np.exp(-np.abs(numbers[0, j])))
    each = [*_number_influences(sources, layout, row, gradient, deviation)]
    each += _category_influences(sources, layout, gradient, deviation)
    nonzero = (influence for influence in each if influence.gradient != 0.0)
    return sorted(nonzero, key=lambda influence: -influence.size)


def sources_of(form: RowForm) -> list[Source]:
    """Return the source of each column of encoded rows."""
    if form.schema is None:
        return [Source(j) for j in range(form.width or 0)]
    sources: list[Source] = []
    for k, column in enumerate(form.schema.columns):
        feature = column.name if form.schema.named else k
        sources += [Source(feature, moment=column.moment)] * (column.n_numbers - column.within)
        if column.used:
            words = *column.reading.words, *map("number of {}".format, column.reading.units)
            sources += [Source(feature, word=word.strip()) for word in words]
        if column.used and column.slots:
            sources.append(Source(feature, column.texts))
    sources += [Source(f"{a.name} - {b.name}") for a, b in form.schema.columns.paired_moments]
    return sources


def _number_influences(
    sources: list[Source],
    layout: Layout,
    row: Float64Array,
    gradient: Float64Array,
    deviation: Float64Array | None,
) -> Iterator[Influence]:
    k = 0
    while k < len(layout.numbers):
        j = layout.numbers[k]
        source = sources[j]
        if not source.moment:
            own = None if deviation is None else float(deviation[k])
            yield Influence(source.feature, source.word, float(gradient[k]), own)
            k += 1
            continue
        part = slice(k, k + MOMENT_COLUMNS)
        by_second = _by_second(row[j : j + MOMENT_COLUMNS])
        days = None if deviation is None else DAY * float(deviation[part.stop - 2])
        yield Influence(source.feature, None, float(gradient[part] @ by_second), days)
        k = part.stop


def _by_second(columns: Float64Array) -> Float64Array:
    """Return the derivatives of the columns of a time (`cells.moment_columns`) in its seconds."""
    if np.isnan(columns).any():
        return np.zeros(MOMENT_COLUMNS)
    periodic = list[float]()
    for k, period in enumerate(PERIODS):
        sine, cosine = columns[2 * k : 2 * k + 2].tolist()
        periodic += [cosine * 2.0 * math.pi / period, -sine * 2.0 * math.pi / period]
    # Whole hours and days of the week stay the same for a while.
    return np.array([*periodic, 0.0, 0.0, 1.0 / DAY, 1.0])


def _category_influences(
    sources: list[Source],
    layout: Layout,
    gradient: Float64Array,
    deviation: Float64Array | None,
) -> Iterator[Influence]:
    """Yield the influence of each text with a slot of its own."""
    first = len(layout.numbers)
    for j, slots in zip(layout.categories, layout.slots, strict=True):
        for code, text in enumerate(sources[j].texts[: own_codes(slots)]):
            own = None if deviation is None else float(deviation[first + code])
            yield Influence(sources[j].feature, text, float(gradient[first + code]), own)
        first += slots

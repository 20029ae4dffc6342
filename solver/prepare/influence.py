"""What a gradient in prepared rows is in the user's own features, by their names and units."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import DAY, MOMENT_COLUMNS, PERIODS
from wolfstream.solver.prepare.columns import Layout, PreparationView, own_codes
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.prepare.scale import COMPRESSED
from wolfstream.solver.prepare.slopes import slopes


class Influence(NamedTuple):
    """How a feature moves an answer.

    feature: its name, or its place in rows without names. category: one of its texts or words, for
    which a gradient is that of being it, or having it (1), or not (0). gradient: in the feature's
    unit; of a time in a second. deviation: of the feature so far; None if rows are learned as they
    come.
    """

    feature: str | int
    category: str | None
    gradient: float
    deviation: float | None

    @property
    def size(self) -> float:
        """What a change by one deviation makes, by which influences are compared."""
        return abs(self.gradient * (1.0 if self.deviation is None else self.deviation))


class Source(NamedTuple):
    """The feature that a column of encoded rows is made of."""

    feature: str | int
    texts: tuple[str, ...] = ()
    moment: bool = False
    word: str | None = None


def influences(
    form: RowForm, preparation: PreparationView | None, row: Float64Array, gradient: Float64Array
) -> list[Influence]:
    """Return the influences of features, the largest first; those that are zero are left out.

    row: (columns,) numbers and codes, as `RowForm.encoded` gives them. gradient: (width,) in the
    row as heads see it.
    """
    sources, layout = sources_of(form), form.layout
    assert layout is not None
    deviation: Float64Array | None = None
    if preparation is not None:
        moments = preparation.moments
        numbers = preparation.numbers(row[None])
        gradient = gradient * slopes(moments, numbers, COMPRESSED)[0]
        deviation = np.sqrt(moments.square)
        for place, bend in layout.bends:
            # Of asinh(x / bend) in x.
            slope = 1.0 / (bend * np.cosh(np.nan_to_num(numbers[0, place])))
            gradient[place] *= slope
            deviation[place] /= slope
        for place in layout.since:
            # Of log(1 + |s|) in s; without a row before, of nothing.
            gradient[place] *= np.nan_to_num(np.exp(-np.abs(numbers[0, place])))
    found = [*_of_numbers(sources, layout, row, gradient, deviation)]
    found += _of_categories(sources, layout, gradient, deviation)
    return sorted((one for one in found if one.gradient != 0.0), key=lambda one: -one.size)


def sources_of(form: RowForm) -> list[Source]:
    """Return the source of each column of encoded rows."""
    if form.schema is None:
        return [Source(j) for j in range(form.width or 0)]
    found: list[Source] = []
    for place, column in enumerate(form.schema.columns):
        feature = column.name if form.schema.named else place
        found += [Source(feature, moment=column.moment)] * (column.n_numbers - column.within)
        if column.used:
            words = *column.reading.words, *map("number of {}".format, column.reading.units)
            found += [Source(feature, word=word.strip()) for word in words]
        if column.used and column.slots:
            found.append(Source(feature, column.texts))
    found += [Source(f"{a.name} - {b.name}") for a, b in form.schema.columns.paired_moments]
    return found


def _of_numbers(
    sources: list[Source],
    layout: Layout,
    row: Float64Array,
    gradient: Float64Array,
    deviation: Float64Array | None,
) -> Iterator[Influence]:
    place = 0
    while place < len(layout.numbers):
        j = layout.numbers[place]
        source = sources[j]
        if not source.moment:
            own = None if deviation is None else float(deviation[place])
            yield Influence(source.feature, source.word, float(gradient[place]), own)
            place += 1
            continue
        part = slice(place, place + MOMENT_COLUMNS)
        by_second = _by_second(row[j : j + MOMENT_COLUMNS])
        days = None if deviation is None else DAY * float(deviation[part.stop - 2])
        yield Influence(source.feature, None, float(gradient[part] @ by_second), days)
        place = part.stop


def _by_second(columns: Float64Array) -> Float64Array:
    """Return the derivative of `cells.moment_columns` in the seconds, of its own values."""
    if np.isnan(columns).any():
        return np.zeros(MOMENT_COLUMNS)
    of_periods = list[float]()
    for k, period in enumerate(PERIODS):
        sine, cosine = columns[2 * k : 2 * k + 2].tolist()
        of_periods += [cosine * 2.0 * math.pi / period, -sine * 2.0 * math.pi / period]
    return np.array([*of_periods, 1.0 / DAY, 1.0])


def _of_categories(
    sources: list[Source],
    layout: Layout,
    gradient: Float64Array,
    deviation: Float64Array | None,
) -> Iterator[Influence]:
    """Of each text with a column of its own."""
    place = len(layout.numbers)
    for j, slots in zip(layout.categories, layout.slots, strict=True):
        for code, text in enumerate(sources[j].texts[: own_codes(slots)]):
            own = None if deviation is None else float(deviation[place + code])
            yield Influence(sources[j].feature, text, float(gradient[place + code]), own)
        place += slots

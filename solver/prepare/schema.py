"""The columns of a table, by which `table_rows` encodes its rows as numbers and codes.

Each column has a kind, by which its values are read (`judging`, `read_cells`). Numbers,
booleans and times are learned as numbers, texts as categories or by their words; identifiers are
not learned. `settling` determines the columns from the first rows; while it does, heads learn all
rows again after each change of `layout` or of how values are read. What a settled table has no
column for is learned by its words: a text in a column of numbers, a sentence among categories, a
name that comes later; a number among categories is learned by ranges.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.prepare.cells import MOMENT_COLUMNS, Cells
from wolfstream.solver.prepare.columns import MOST_SLOTS, Layout, own_codes
from wolfstream.solver.prepare.judging import (
    EMPTY,
    NUMBER,
    ColumnReading,
    Kind,
    like_a_time,
    reading_from_plain,
)
from wolfstream.solver.prepare.nearest_name import nearest_name
from wolfstream.solver.prepare.words import words_of

SETTLING = 128
# The most names that are learned, by their words, after a table has settled.
MOST_LATE = 256
# The most columns of times of which the differences of all pairs are learned.
_MOST_PAIRED = 3
# After this many consecutive values that its kind cannot read, a column gets another kind.
RUN = 64
# From this many words on, a text in a column of categories may be a sentence.
_SENTENCE = 3
_LONGEST_ECHO = 40
_MOST_LISTED, _LONGEST_LIST = 100, 200
UNKNOWN_NAME = "is no name that the model knows"

# Whether a settled table learns new names, and predictions ignore unknown ones ("learned"); or both
# are refused. With "strict" rows are a table from the first one on; with "settled" rows after it
# may still show that they are sparse.
Names = Literal["learned", "strict", "settled"]


class Misfit(ValueError):
    """A value that a table cannot take.

    row: its row in the request.
    name: its column; None if it is about the whole row.
    detail: what is wrong.
    known: the names of the table, if it lacks this one.
    """

    def __init__(self, row: int, name: str | None, detail: str, known: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.row, self.name, self.detail, self.known = row, name, detail, known

    def moved(self, rows: int) -> "Misfit":
        """Return the error with `rows` rows before its own."""
        return Misfit(self.row + rows, self.name, self.detail, self.known)

    def full_detail(self, *, named: bool = True, suggest: bool = True) -> str:
        """Return what is wrong and what to do.

        named: whether to begin with the name of the column.
        suggest: whether to look for a similar known name, which takes milliseconds.
        """
        if self.name is None:
            return self.detail
        detail = f"{self.name[:_LONGEST_ECHO]!r} {self.detail}" if named else self.detail
        if not self.known:
            return detail
        close = nearest_name(self.name, self.known) if suggest else None
        if close is not None:
            return f"{detail}; did you mean {close!r}?"
        listed = ", ".join(self.known[:_MOST_LISTED])[:_LONGEST_LIST]
        return f"{detail}; leave it out, or make a new model: it has {listed}"


class Column(NamedTuple):
    """A column of a table."""

    name: str
    number: bool = False  # whether it has had numbers
    texts: tuple[str, ...] = ()  # texts with a code of their own: code -> text
    slots: int = 0  # of its texts; 0 without texts
    reading: ColumnReading = NUMBER  # how its values are read
    run: int = 0  # of categories, number of last consecutive values that are none, up to RUN

    @property
    def moment(self) -> bool:
        """Whether its values are times."""
        return self.reading.kind == "time"

    @property
    def used(self) -> bool:
        """Whether it is learned at all."""
        return self.reading.kind != "identifier"

    @property
    def within(self) -> int:
        """The number of columns for words, and for numbers within its texts."""
        return len(self.reading.words) + len(self.reading.units)

    @property
    def numeric(self) -> bool:
        """Whether it is learned as a number, as a column without values is."""
        return self.number or not self.slots

    @property
    def only_numbers(self) -> bool:
        """Whether it cannot learn a text that is no number."""
        return self.used and not self.slots and not self.reading.wordy

    @property
    def categorical(self) -> bool:
        """Whether its first values were categories: neither numbers nor texts of words."""
        if not self.slots or self.number or self.reading.wordy:
            return False
        return self.reading.kind == "category"

    @property
    def changed(self) -> bool:
        """Whether it was a column of categories, and no longer is."""
        return self.run >= RUN

    @property
    def plain(self) -> bool:
        """Whether it has numbers that are learned as they come."""
        return not self.slots and self.reading.plain and not self.within

    @property
    def n_numbers(self) -> int:
        """The number of columns of encoded rows with its numbers."""
        if not self.used:
            return 0
        return MOMENT_COLUMNS if self.moment else self.numeric + self.within


class Encoding(NamedTuple):
    """Where the columns of a table are in encoded rows.

    Of the last three, each pair is the index of a column and its first place.
    """

    amounts: NDArray[np.int64]  # indices of the columns of numbers that are no times
    amounts_at: NDArray[np.int64]  # their places
    moments: list[tuple[int, int]]  # columns of times
    within: list[tuple[int, int]]  # those with columns for words, and for numbers within texts
    texts: list[tuple[int, int]]  # those with codes


class Columns(tuple[Column, ...]):
    """The columns of a table, and cached properties of them."""

    def __reduce__(self) -> tuple[type["Columns"], tuple[tuple[Column, ...]]]:
        """Pickle without cached properties."""
        return Columns, (tuple(self),)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self)

    @cached_property
    def name_set(self) -> frozenset[str]:
        """The names of the columns, without order."""
        return frozenset(self.names)

    @cached_property
    def like_times(self) -> frozenset[str]:
        """The names that sound like times."""
        return frozenset(filter(like_a_time, self.names))

    @cached_property
    def plain(self) -> bool:
        """Whether all columns have numbers that are learned as they come."""
        return all(column.plain for column in self)

    @cached_property
    def only_met_numbers(self) -> bool:
        """Whether all have had numbers, learned as they come; another number changes no column."""
        return all(column.number and column.reading.plain for column in self)

    @cached_property
    def wordy(self) -> bool:
        """Whether words of some column are learned."""
        return any(column.reading.wordy for column in self)

    @cached_property
    def unused(self) -> tuple[int, ...]:
        """Indices of columns that are not learned."""
        return tuple(k for k, column in enumerate(self) if not column.used)

    @cached_property
    def only_numbers(self) -> tuple[int, ...]:
        """Indices of columns that cannot learn a text that is no number."""
        return tuple(k for k, column in enumerate(self) if column.only_numbers)

    @cached_property
    def changed(self) -> tuple[int, ...]:
        """Indices of columns that were of categories, and no longer are."""
        return tuple(k for k, column in enumerate(self) if column.changed)

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """Indices of columns of categories."""
        return tuple(
            k for k, column in enumerate(self) if column.categorical and not column.changed
        )

    @cached_property
    def unordered(self) -> tuple[int, ...]:
        """Indices of columns of dates that have not shown whether the day or the month is first."""
        return tuple(
            k for k, column in enumerate(self) if column.moment and not column.reading.ordered
        )

    @cached_property
    def with_free_codes(self) -> tuple[int, ...]:
        """Indices of columns that have free codes for new texts."""
        return tuple(k for k, c in enumerate(self) if c.slots and own_codes(c.slots) > len(c.texts))

    @cached_property
    def read(self) -> tuple[tuple[str | float | tuple[str, ...], ...], ...]:
        """A key of how the columns are read."""
        return tuple(column.reading.how for column in self)

    @cached_property
    def paired_moments(self) -> tuple[tuple[Column, Column], ...]:
        """The pairs of columns of times whose differences are columns, too."""
        moments = [column for column in self if column.moment]
        return tuple(combinations(moments[:_MOST_PAIRED], 2))

    @cached_property
    def layout(self) -> Layout:
        """The layout of encoded rows (`table_rows.encode`), without indicators."""
        return _layout(self)

    @cached_property
    def encoding(self) -> Encoding:
        """Where the columns are in encoded rows."""
        used = [(k, column) for k, column in enumerate(self) if column.used]
        each = [(k, c, at) for (k, c), at in zip(used, self.beginnings, strict=True)]
        amounts = [(k, at) for k, c, at in each if c.numeric and not c.moment]
        return Encoding(
            np.array([k for k, _ in amounts], np.int64),
            np.array([at for _, at in amounts], np.int64),
            [(k, at) for k, c, at in each if c.moment],
            [(k, at + c.numeric) for k, c, at in each if c.within],
            [(k, at + c.n_numbers) for k, c, at in each if c.slots],
        )

    @cached_property
    def beginnings(self) -> tuple[int, ...]:
        """The first column of encoded rows of each column that is learned."""
        widths = [c.n_numbers + (c.slots > 0) for c in self if c.used]
        return tuple(accumulate(widths[:-1], initial=0)) if widths else ()


class FirstRows(NamedTuple):
    """The first rows of a table, by which its columns are judged; equal if of equal number."""

    rows: tuple[Cells, ...] = ()  # cells of one row each

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FirstRows) and len(self.rows) == len(other.rows)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return len(self.rows)


class Schema(NamedTuple):
    """The columns of a table after some rows."""

    columns: Columns = Columns()
    named: bool = True  # whether rows have names
    samples: int = 0  # number of rows while it settles, up to SETTLING
    fixed: tuple[tuple[str, Kind], ...] = ()  # kinds of columns that are given
    names_are: Names = "learned"
    strict: bool = False  # whether missing values are refused
    head: FirstRows = FirstRows()  # while it settles
    late: tuple[str, ...] = ()  # names that came later, learned by their words
    spilled: bool = False  # whether there were texts that a settled table has no column for

    @property
    def settled(self) -> bool:
        """Whether the columns are final."""
        return self.samples >= SETTLING

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns.names

    @property
    def open(self) -> bool:
        """Whether unknown names are learned, and ignored in predictions."""
        return self.names_are == "learned" and not self.strict and self.named

    @property
    def wordy(self) -> bool:
        """Whether words of rows are learned."""
        return self.spilled or bool(self.late) or self.columns.wordy

    def unknown(self, names: Collection[str]) -> list[str]:
        """Return the names that neither a column has nor came late."""
        if self.columns.name_set.issuperset(names):
            return []
        new = [name for name in names if name not in self.columns.name_set]
        late = frozenset(self.late) if new else ()
        return [name for name in new if name not in late]

    def plain(self) -> dict[str, Any]:
        """Return plain data for `schema_from_plain`, without the first rows."""
        columns = [
            [c.name, c.number, list(c.texts), c.slots, list(c.reading), c.run] for c in self.columns
        ]
        fixed, late = [list(pair) for pair in self.fixed], list(self.late)
        plain = {**self._asdict(), "columns": columns, "fixed": fixed, "late": late}
        del plain["head"]
        return plain


def schema_from_plain(plain: dict[str, Any], head: Iterable[Cells] = ()) -> Schema:
    """Invert `Schema.plain`. Raises ValueError for anything that it does not return.

    head: the first rows, each alone, while the table settles.
    """
    columns = Columns(
        Column(name, number, tuple(texts), slots, reading_from_plain(reading), run)
        for name, number, texts, slots, reading, run in plain["columns"]
    )
    late = tuple(plain["late"])
    names = {*(column.name for column in columns), *late}
    slots_fit = all(c.slots in (0, 2, 4, 8, 16, MOST_SLOTS) for c in columns)
    texts_fit = all(len(c.texts) <= MOST_SLOTS for c in columns)
    if len(names) < len(columns) + len(late) or not slots_fit or not texts_fit:
        raise ValueError("the saved schema has columns that no rows make")
    if not all(type(c.run) is int and 0 <= c.run <= RUN * c.categorical for c in columns):
        raise ValueError("the saved schema has columns that no rows change")
    if len(late) > MOST_LATE or not all(isinstance(name, str) for name in late):
        raise ValueError("the saved schema has later names that no rows make")
    fixed = tuple((name, kind) for name, kind in plain["fixed"])
    given = {"columns": columns, "fixed": fixed, "late": late, "head": FirstRows(tuple(head))}
    return Schema(**{**plain, **given})


def settled_numbers(names: tuple[str, ...], *, strict: bool) -> Schema:
    """Return the settled schema of columns of numbers; strict: see `Schema`."""
    columns = Columns(Column(name, number=True) for name in names)
    return Schema(columns, samples=SETTLING, strict=strict)


def layout(schema: Schema, *, indicators: bool = False) -> Layout:
    """Return the layout of rows that `table_rows.encode` returns.

    indicators: whether missing values have columns of their own.
    """
    columns = schema.columns
    return columns.layout._replace(indicators=columns.beginnings) if indicators else columns.layout


def _layout(columns: Columns) -> Layout:
    numbers, since = list[int](), list[int]()
    categories, slots = list[int](), list[int]()
    at = 0
    for column in columns:
        if not column.used:
            continue
        numbers += range(at, at + column.n_numbers)
        at += column.n_numbers
        if column.moment:
            since.append(len(numbers) - 1)
        if column.slots:
            categories.append(at)
            slots.append(column.slots)
            at += 1
    numbers += range(at, at + len(columns.paired_moments))
    return Layout(tuple(numbers), tuple(categories), tuple(slots), since=tuple(since))


def late_columns(schema: Schema) -> list[Column]:
    """Return the columns of the names that came late."""
    return [Column(name, reading=EMPTY) for name in schema.late]


def is_sentence(column: Column, text: str) -> bool:
    """Return whether a text in a column of categories is a sentence and no category.

    It is one if it has three words or more, and more than each category with a code of its own.
    """
    if not column.categorical or not may_be_sentence(text):
        return False
    words = len(words_of(text))
    return words >= _SENTENCE and words > _most_words(column.texts)


def may_be_sentence(text: str) -> bool:
    """Return False for a text that clearly has too few words."""
    return text.count(" ") >= _SENTENCE - 1


@lru_cache(1024)
def _most_words(texts: tuple[str, ...]) -> int:
    return max((len(words_of(text)) for text in texts), default=0)


def places_of(schema: Schema, cells: Cells) -> list[int | None]:
    """Return the index in the cells of each column of the schema; None if they lack it.

    Raises Misfit for rows of another length, and for unknown names unless the schema is open.
    """
    width = len(schema.columns)
    if cells.names is None:
        if cells.numbers.shape[1] != width:
            detail = f"has {cells.numbers.shape[1]} values, the model's rows have {width}"
            raise Misfit(0, None, detail)
        return list(range(width))
    known = schema.names
    if cells.names == known:
        return list(range(width))
    index: dict[str, int | None] = {name: j for j, name in enumerate(cells.names)}
    if not schema.open:
        for name, j in index.items():
            if name not in schema.columns.name_set and cells.given[:, j].any():
                raise Misfit(int(np.argmax(cells.given[:, j])), name, UNKNOWN_NAME, known)
    return [index.get(name) for name in known]


def in_order(values: NDArray[Any], places: Sequence[int | None], none: float) -> NDArray[Any]:
    """Return columns of an array in another order.

    values: (n, columns).
    places: index of each wanted column; None for a column of `none`.
    none: the value of missing columns.
    """
    if list(places) == list(range(values.shape[1])):
        return values
    wider = np.concatenate([values, np.full((len(values), 1), none, values.dtype)], axis=1)
    return np.take(wider, [-1 if j is None else j for j in places], axis=1)

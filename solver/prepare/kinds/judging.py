"""What the first values of a column say it is, and how its values are then read.

    number          numbers, or texts of plain digits
    number in text  one number in each cell, with the same text around it in nearly all of them
    boolean         yes and no, true and false
    time            dates, or dates and times, in any of the common written forms; or seconds or
                    milliseconds since 1970, in a column that is named like a time
    category        few texts, or single words
    text            several words in a cell, and hardly any cell like another
    identifier      one word in a cell, and each of them different
    empty           no value so far

A value that the kind cannot read is missing as a number, and keeps its text beside.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from wolfstream.solver.prepare.kinds.numerals import amounts, numeral, plain_number
from wolfstream.solver.prepare.kinds.times import epoch, moment
from wolfstream.solver.prepare.kinds.words import words_of

Kind = Literal[
    "number", "number in text", "boolean", "time", "category", "text", "identifier", "empty"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Value = float | str | None

# Missing whatever the column is, as in data files; and where the rest of it is no text.
MISSING = frozenset(("", "nan", "na", "n/a", "null", "none", "nat", "<na>", "#n/a"))
MISSING_BESIDE = frozenset(("-", "--", "–", "—", "?", ".", "...", "unknown", "missing"))
_BOOLEAN = {"true": 1.0, "yes": 1.0, "y": 1.0, "t": 1.0, "on": 1.0}
_BOOLEAN |= {"false": 0.0, "no": 0.0, "n": 0.0, "f": 0.0, "off": 0.0}
# So many of the values of a column must be read by its kind.
NEARLY_ALL = 0.9
# Beside numbers that are most of them, so many other texts may recur, such as "varies by device".
_MOST_OTHERS = 2
# A text has so many words in a cell on average; and so many of its cells are different.
_WORDS, _DIFFERENT = 2.5, 0.5
# So many words are columns of their own, of those in so many texts; the first texts show none.
_MOST_WORDS, _LEAST_TEXTS, _FIRST_TEXTS = 24, 3, 32
# Numbers before so many units are columns, of units in such a share of texts with so many numbers.
_MOST_UNITS, _OF_A_UNIT, _LEAST_NUMBERS = 4, 0.25, 3
# Values before one that never repeats itself is an identifier.
_LEAST_IDENTIFIERS = 100
_LONGEST_CATEGORY = 256
# Of seconds that are said to be a time, some 30,000 years.
_LARGEST_MOMENT = 1e12
_TIME_NAME = re.compile(
    r"(?:^|[^a-z])(?:time|date|timestamp|datetime|ts|at|when|epoch|created|updated)(?:$|[^a-z])"
    r"|time$|date$|timestamp",
    re.IGNORECASE,
)


class Reading(NamedTuple):
    """How the values of a column are read.

    why: in words. unit: what stands around the digits of a number in text. commas: whether 1,234
    has a decimal comma. day_first: whether 1/2/2025 is in February. wordy: whether words are
    learned, too. fixed: whether the kind was given. words: those of texts that are columns of their
    own, 1 in a row that has the word. units: those whose numbers within texts are columns. ordered:
    whether some date has shown if its day comes first.
    """

    kind: Kind = "number"
    why: str = ""
    unit: str = ""
    commas: bool = False
    day_first: bool = False
    wordy: bool = False
    fixed: bool = False
    words: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    ordered: bool = False

    @property
    def how(self) -> tuple[str | bool | tuple[str, ...], ...]:
        """What decides how values are read."""
        return self.kind, *self[2:-1]

    @property
    def plain(self) -> bool:
        """Whether numbers are themselves."""
        return self.kind not in ("time", "identifier", "text")

    def number(self, text: str) -> float:
        """Return the number that a text is in this column; NaN if it is none."""
        return _READ[self.kind](self, text.strip())

    def number_of(self, value: float) -> float:
        """Return what a number is in this column."""
        if self.kind == "time":
            seconds = epoch(value)
            if seconds is None and self.fixed and abs(value) <= _LARGEST_MOMENT:
                return value
            return _or_nan(seconds)
        return math.nan if self.kind == "identifier" else value

    def is_missing(self, text: str) -> bool:
        """Return whether a text says that the value is missing."""
        folded = text.strip()[:16].casefold()
        return folded in MISSING or (folded in MISSING_BESIDE and self.kind in _OF_NUMBERS)


NUMBER = Reading("number", "all values are numbers")
EMPTY = Reading("empty", "no value so far")
_OF_NUMBERS = ("number", "number in text", "boolean", "time", "empty")


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _plain(_: Reading, text: str) -> float:
    return _or_nan(plain_number(text))


def _number(_: Reading, text: str) -> float:
    """Of a column of plain digits also what may come later: 1,234, $12.50 or 55% after 1000."""
    plain = plain_number(text)
    quantity = numeral(text) if plain is None else None
    return quantity.value if quantity is not None and quantity.is_amount else _or_nan(plain)


def _in_text(reading: Reading, text: str) -> float:
    plain = plain_number(text)
    found = None if plain is not None else numeral(text, commas=reading.commas)
    if found is not None and found.unit in (reading.unit, "#"):
        return found.value
    return _or_nan(plain)


def _boolean(_: Reading, text: str) -> float:
    return _BOOLEAN.get(text[:8].casefold(), _or_nan(plain_number(text)))


def _time(reading: Reading, text: str) -> float:
    written = moment(text)
    if written is None:
        plain = plain_number(text)
        return math.nan if plain is None else reading.number_of(plain)
    return written.other if reading.day_first else written.seconds


def _any_number(reading: Reading, text: str) -> float:
    """Of a column that had no value while its table settled: whatever a text may be."""
    found = numeral(text)
    plain = _boolean(reading, text)
    return found.value if math.isnan(plain) and found is not None else plain


def _nothing(_: Reading, __: str) -> float:
    return math.nan


_READ = {
    "number": _number,
    "number in text": _in_text,
    "boolean": _boolean,
    "time": _time,
    "category": _plain,
    "text": _nothing,
    "identifier": _nothing,
    "empty": _any_number,
}


def judge(name: str, values: Sequence[Value]) -> Reading:
    """Return what a column is by its first values, None where one is missing.

    name: of the column, which tells whether large numbers are moments of time.
    """
    numbers = [value for value in values if isinstance(value, float)]
    texts = list[str]()
    for value in values:
        if isinstance(value, str) and not NUMBER_TEXT.is_missing(value):
            plain = plain_number(value.strip())
            if plain is None:
                texts.append(value.strip())
            else:
                numbers.append(plain)
    if not texts:
        return _of_numbers(name, numbers)
    given = [text for text in texts if text[:16].casefold() not in MISSING_BESIDE]
    for found in (_as_boolean, _as_time, _as_number):
        reading = found(given, numbers)
        if reading is not None:
            return reading
    return _of_texts(texts, numbers)


# What is missing in any column.
NUMBER_TEXT = Reading("text")


def like_a_time(name: str) -> bool:
    """Return whether a column is named like one of times."""
    return len(name) <= _LONGEST_CATEGORY and bool(_TIME_NAME.search(name))


def _of_numbers(name: str, numbers: Sequence[float]) -> Reading:
    if not numbers:
        return EMPTY
    if like_a_time(name) and all(epoch(value) is not None for value in numbers):
        return Reading("time", "seconds or milliseconds since 1970, and named like a time")
    return NUMBER


def _as_boolean(texts: Sequence[str], numbers: Sequence[float]) -> Reading | None:
    if not texts or not all(text[:8].casefold() in _BOOLEAN for text in texts):
        return None
    if not all(number in (0.0, 1.0) for number in numbers):
        return None
    return Reading("boolean", "all values say yes or no")


def _as_time(texts: Sequence[str], numbers: Sequence[float]) -> Reading | None:
    written = [one for one in map(moment, texts) if one is not None]
    epochs = sum(epoch(number) is not None for number in numbers)
    count = len(texts) + len(numbers)
    if not written or len(written) + epochs < NEARLY_ALL * count:
        return None
    day_first, ordered = _order_of(texts)
    why = f"{len(written) + epochs} of {count} values are dates or times"
    if ordered:
        why += f", the {'day' if day_first else 'month'} first"
    return Reading("time", why, day_first=day_first, ordered=ordered)


def _order_of(texts: Sequence[str]) -> tuple[bool, bool]:
    """Return whether days come first in dates, and whether some of these have shown it.

    Where none has, they do not with slashes, as in 3/1/2025, and do with points and dashes.
    """
    orders = Counter(one.order for one in map(moment, texts) if one is not None)
    if orders["day"] or orders["month"]:
        return orders["day"] > orders["month"], True
    return not any("/" in text for text in texts), False


def first_order(texts: Iterable[str]) -> str:
    """Return "day" or "month" by the first date that can be read in one way alone; "" for none."""
    for text in texts:
        # Where the year comes first, the month follows.
        if len(text) <= _LONGEST_CATEGORY and not text.lstrip()[:4].isdecimal():
            written = moment(text)
            if written is not None and written.order:
                return written.order
    return ""


def _as_number(texts: Sequence[str], numbers: Sequence[float]) -> Reading | None:
    found = [one for one in map(numeral, texts) if one is not None]
    if not found:
        return None
    commas = any(one.comma for one in found) and not any(_has_point(text) for text in texts)
    units = Counter(one.unit for one in found)
    unit = max((one for one in units if one != "#"), key=lambda one: units[one], default="#")
    read = units[unit] + (units["#"] if unit != "#" else 0) + len(numbers)
    count = len(texts) + len(numbers)
    others = {
        text for text in texts if (one := numeral(text)) is None or one.unit not in (unit, "#")
    }
    few = 2 * read > count and len(others) <= _MOST_OTHERS
    if read < NEARLY_ALL * count and not few:
        return None
    shown = " ".join(unit.split("#")).strip()
    around = f" with {shown!r} around the digits" if shown else ""
    return Reading("number in text", f"{read} of {count} values are numbers{around}", unit, commas)


def _has_point(text: str) -> bool:
    """Return whether a text has a decimal point for certain."""
    return bool(re.search(r"\d\.\d{1,2}(?!\d)|\d\.\d{4,}|,\d{3}\.", text))


def _of_texts(texts: Sequence[str], numbers: Sequence[float]) -> Reading:
    count = len(texts) + len(numbers)
    different = len(set(texts))
    words = sum(len(words_of(text)) for text in texts) / len(texts)
    spaced = sum(" " in text for text in texts)
    if 2 * len(numbers) > count:
        return Reading("number", f"{len(numbers)} of {count} values are numbers")
    long = max(map(len, texts)) > _LONGEST_CATEGORY
    if long or (words >= _WORDS and different >= _DIFFERENT * count):
        why = f"{words:.0f} words in a value, {_share(different, count)}"
        return Reading(
            "text", why, wordy=True, words=_frequent_words(texts), units=_frequent_units(texts)
        )
    if count >= _LEAST_IDENTIFIERS and different == count and not spaced:
        return Reading("identifier", f"all of the first {count} values are different single words")
    wordy, units = _share_words(set(texts)), _frequent_units(texts)
    return Reading("category", _share(different, count), wordy=wordy, units=units)


def _frequent_words(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the words of texts that some of them have, and most have not, the first few.

    Of words that come in the same texts only the first one.
    """
    having: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        for word in dict.fromkeys(words_of(text)):
            having.setdefault(word, []).append(i)
    if len(texts) < _FIRST_TEXTS:
        return ()
    different = {tuple(rows): word for word, rows in reversed(having.items())}
    most = NEARLY_ALL * len(texts)
    found = [rows for rows in different if _LEAST_TEXTS <= len(rows) <= most]
    found.sort(key=lambda rows: (-len(rows), rows))
    return tuple(different[rows] for rows in found[:_MOST_WORDS])


def _frequent_units(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the units whose numbers some of the texts have, the most frequent first.

    The unit of numbers without one is "".
    """
    if len(texts) < _FIRST_TEXTS:
        return ()
    numbers: dict[str, list[float]] = {}
    for text in texts:
        for unit, number in amounts(text).items():
            numbers.setdefault(unit, []).append(number)
    found = [
        unit
        for unit, each in numbers.items()
        if len(each) >= _OF_A_UNIT * len(texts) and len(set(each)) >= _LEAST_NUMBERS
    ]
    return tuple(sorted(found, key=lambda unit: (-len(numbers[unit]), unit))[:_MOST_UNITS])


def _share_words(different: set[str]) -> bool:
    """Return whether values have a word in common with some others, on average."""
    values = Counter(word for text in different for word in set(words_of(text)))
    shared = sum(count for count in values.values() if 1 < count < len(different))
    return shared >= len(different)


def _share(different: int, count: int) -> str:
    return f"{different} of the first {count} values differ"


def given_kind(kind: Kind, values: Sequence[Value]) -> Reading:
    """Return how a column is read whose kind is given: as `judge` would, were it of that kind."""
    texts = [value.strip() for value in values if isinstance(value, str)]
    texts = [text for text in texts if not NUMBER_TEXT.is_missing(text)]
    reading = Reading(kind, "given in the model's spec", fixed=True)
    if kind == "time":
        day_first, ordered = _order_of(texts)
        return reading._replace(day_first=day_first, ordered=ordered)
    if kind == "number":
        found = _as_number(texts, ())
        units = Counter(one.unit for one in map(numeral, texts) if one is not None)
        unit = max(units, key=lambda one: units[one], default="#")
        commas = found is not None and found.commas
        return reading._replace(kind="number in text", unit=unit, commas=commas)
    return reading._replace(
        wordy=kind == "text",
        words=_frequent_words(texts) if kind == "text" else (),
        units=_frequent_units(texts) if kind == "text" else (),
    )


def reading_from_plain(plain: Sequence[Any]) -> Reading:
    """Return a reading from its fields, as saved. Raises ValueError for what is none."""
    kind, why, unit, *flags, words, units, ordered = plain
    known = kind in KINDS and isinstance(why, str) and isinstance(unit, str)
    if not known or len(flags) != 4 or not all(type(flag) is bool for flag in flags):
        raise ValueError("the saved columns are read in a way that there is none")
    if len(words) > _MOST_WORDS or not all(isinstance(word, str) for word in words):
        raise ValueError("the saved columns have words that no rows make")
    if len(units) > _MOST_UNITS or not all(isinstance(unit, str) for unit in units):
        raise ValueError("the saved columns have units that no rows make")
    if type(ordered) is not bool:
        raise ValueError("the saved columns have dates that no rows make")
    commas, day_first, wordy, fixed = flags
    parts = tuple(words), tuple(units), ordered
    return Reading(kind, why, unit, commas, day_first, wordy, fixed, *parts)

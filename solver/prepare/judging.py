"""Determines the kind of a column from its first values, and reads values by their kind.

    number          numbers, or texts of plain digits
    number in text  one number in each cell, with the same text around it in nearly all of them, or
                    units that measure the same; or a duration, such as 1h 23m or 05:38:32
    boolean         yes and no, true and false
    time            dates, or dates and times, in any of the common written forms; or seconds,
                    or parts of them, since 1970, in a column that is named like a time
    category        few texts, or single words
    text            several words in a cell, and hardly any cell like another
    identifier      one word or long whole number in a cell, and each of them different
    empty           no value so far

A value that the kind cannot read is a missing number, and its text is kept.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from wolfstream.solver.prepare.measures import (
    converted,
    duration,
    factor_between,
    has_three_parts,
    is_bytes,
    is_composed,
    measure_alike,
    positive,
)
from wolfstream.solver.prepare.numerals import (
    GROUPED,
    Numeral,
    amounts,
    numeral,
    placed_numbers,
    plain_number,
    text_within,
    without_digits,
)
from wolfstream.solver.prepare.times import date_of_digits, date_of_serial, epoch, moment
from wolfstream.solver.prepare.words import words_of

Kind = Literal[
    "number", "number in text", "boolean", "time", "category", "text", "identifier", "empty"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Value = float | str | None

# Texts for missing values in any column, as in data files, and in columns of numbers only.
MISSING = frozenset(("", "nan", "na", "n/a", "null", "none", "nat", "<na>", "#n/a"))
MISSING_BESIDE = frozenset(("-", "--", "–", "—", "?", ".", "...", "unknown", "missing"))
_LONGEST_MISSING = max(map(len, MISSING | MISSING_BESIDE))
_BOOLEAN = {"true": 1.0, "yes": 1.0, "y": 1.0, "t": 1.0, "on": 1.0}
_BOOLEAN |= {"false": 0.0, "no": 0.0, "n": 0.0, "f": 0.0, "off": 0.0}
# The same in German, French, Spanish, Italian, Portuguese, Dutch and Polish, and as marks.
_BOOLEAN |= dict.fromkeys(("ja", "oui", "sí", "si", "sì", "sim", "tak", "✓", "✔", "✅"), 1.0)
_BOOLEAN |= dict.fromkeys(("nein", "non", "não", "nao", "nee", "nie", "✗", "✘", "❌"), 0.0)
_BOOLEAN |= {"wahr": 1.0, "vrai": 1.0, "falsch": 0.0, "faux": 0.0}
# The least share of a column's values that its kind must read.
NEARLY_ALL = 0.9
# If most values are numbers, this many other texts may recur, such as "varies by device".
_MOST_OTHERS = 2
# In a column of texts, the least number of words of a value on average, and the least share of
# different values.
_WORDS, _DIFFERENT = 2.5, 0.5
# The most words with columns of their own, the least number of texts with such a word, and the
# number of first texts before which no word has a column.
_MOST_WORDS, _LEAST_TEXTS, _FIRST_TEXTS = 24, 3, 32
# The most units whose numbers in texts have columns, the least share of texts with such a unit, and
# the least number of their different numbers.
_MOST_UNITS, _UNIT_SHARE, _LEAST_NUMBERS = 4, 0.25, 3
# The number of values from which on a column without repeated values is one of identifiers.
_LEAST_IDENTIFIERS = 100
# Whole numbers of identifiers have 13 to 16 digits, all as many, as those of articles and cards.
# Shorter ones may be amounts, such as bytes of memory, and all larger floats are whole numbers.
LEAST_CODE, _LIMIT_OF_CODES = 1e12, 2.0**53
# What separates the items of a list in a cell.
_ITEMS = re.compile(r"[,;|]")
# Numbers of telephones, which have spaces and words in common.
_TELEPHONE = re.compile(r"(?=(?:\D*\d){7})(?:[+(0]|\d{3}-\d{3}-)[\d()/. -]{6,22}")
# A point between digits, and digits with separators that surely are of thousands.
_POINT = re.compile(r"\d\.\d")
_CERTAINLY_GROUPED = re.compile(
    r"(?<![\d.,])[1-9]\d{0,2}(?:(?:,\d{3})+|(?:\.\d{3}){2,}|(?:\.\d{3})+,\d+)(?![\d.,])"
)
_UNIQUE_CODE = re.compile(r"[{(]?[\w.:-]*\d[\w.:-]*[})]?", re.ASCII)
_LONGEST_CATEGORY = 256
# Of shorter categories, such as k and K, either may mean something else.
_LEAST_LETTERS = 3
# Units of columns of durations, by what the first part of 4:05 is.
_HOURS_FIRST, _MINUTES_FIRST = "h:m:s", "m:s"
# The largest number of seconds in a column whose kind was given as time, about 30,000 years.
_LARGEST_MOMENT = 1e12
_TIME_NAME = re.compile(
    r"(?:^|[^a-z])(?:time|date|timestamp|datetime|ts|at|when|epoch|created|updated)(?:$|[^a-z])"
    r"|time$|date$|timestamp|datum|zeitstempel|fecha",
    re.IGNORECASE,
)
_DATE_NAME = re.compile(r"date|timestamp|datum|zeitstempel|fecha", re.IGNORECASE)
# More than two digits of hours in seconds.
_FARTHEST_ZONE = 100 * 3600.0
# Units of columns of times, by what numbers that are not seconds since 1970 are.
_DATES, _SERIALS = "yyyymmdd", "days since 1899-12-30"
_SERIALS_WHY = "days as spreadsheets count them, and named like a date"


class ColumnReading(NamedTuple):
    """The kind of a column, and how its values are read."""

    kind: Kind = "number"
    why: str = ""  # the reason for the kind, for users
    unit: str = ""  # the text around the digits of a number in text
    commas: bool = False  # whether 1,234 has a decimal comma
    day_first: bool = False  # whether 1/2/2025 is in February
    wordy: bool = False  # whether words are learned, too
    fixed: bool = False  # whether the kind was given
    grouped: bool = False  # whether 1.234 has a separator of thousands
    folded: bool = False  # whether Open, open and OPEN are one category
    words: tuple[str, ...] = ()  # words with columns of their own, 1 in a row that has the word
    units: tuple[str, ...] = ()  # units whose numbers within texts have columns of their own
    zone: float = 0.0  # of times, the seconds that most clocks are ahead of UTC
    ordered: bool = False  # whether some date has shown if its day comes first

    @property
    def how(self) -> tuple[str | float | tuple[str, ...], ...]:
        """The fields on which the reading of values depends."""
        return self.kind, *self[2:-1]

    @property
    def plain(self) -> bool:
        """Whether numbers are read unchanged."""
        return self.kind not in ("time", "identifier", "text")

    def number(self, text: str) -> float:
        """Return the number of a text in this column; NaN if it has none."""
        return _READ[self.kind](self, text.strip())

    def number_of(self, value: float) -> float:
        """Return the value of a number in this column; NaN if it has none."""
        if self.kind == "time":
            seconds = _OF_UNIT.get(self.unit, epoch)(value)
            if seconds is None and self.fixed and abs(value) <= _LARGEST_MOMENT:
                return value
            return _or_nan(seconds)
        return math.nan if self.kind == "identifier" else value

    def category(self, text: str) -> str:
        """Return the category that a text is in this column."""
        return spelling(text) if self.folded else text

    def is_missing(self, text: str) -> bool:
        """Return whether a text stands for a missing value."""
        text = text.strip()
        if len(text) > _LONGEST_MISSING:
            return False
        folded = text.casefold()
        return folded in MISSING or (folded in MISSING_BESIDE and self.kind in _NUMERIC_KINDS)


# The number of fields between the unit and the words of a reading.
_FLAGS = ColumnReading._fields.index("words") - ColumnReading._fields.index("commas")
NUMBER = ColumnReading("number", "all values are numbers")
_OF_UNIT = {_DATES: date_of_digits, _SERIALS: date_of_serial}
# By this, only the texts of MISSING are missing, as in any column.
_ANY_TEXT = ColumnReading("text")
EMPTY = ColumnReading("empty", "no value so far")
_NUMERIC_KINDS = ("number", "number in text", "boolean", "time", "empty")


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _plain(_: ColumnReading, text: str) -> float:
    return _or_nan(plain_number(text))


def _number(_: ColumnReading, text: str) -> float:
    """Read plain digits, and texts such as 1,234, $12.50 or 55%, which may come later."""
    plain = plain_number(text)
    # Among plain numbers, 1/2 may be a date or a code.
    quantity = numeral(text) if plain is None and "/" not in text else None
    return quantity.value if quantity is not None and quantity.is_amount else _or_nan(plain)


def _in_text(reading: ColumnReading, text: str) -> float:
    plain = plain_number(text)
    if plain is not None:
        return plain
    if reading.unit in (_HOURS_FIRST, _MINUTES_FIRST):
        return _or_nan(duration(text, minutes_first=reading.unit == _MINUTES_FIRST))
    digits = None if reading.grouped else text_within(text, reading.unit)
    if digits is not None:
        return float(digits)
    quantity = numeral(text, commas=reading.commas, grouped=reading.grouped)
    return math.nan if quantity is None else _or_nan(_in_unit(quantity, reading.unit))


def _in_unit(quantity: Numeral, unit: str) -> float | None:
    """Return a quantity in a column's unit; None if it measures something else."""
    if quantity.unit == "#" and quantity.factor == 1e9 and is_bytes(unit):
        return quantity.value / 1e9 * (factor_between("#b", unit) or 1.0)
    return (
        quantity.value if quantity.unit == "#" else converted(quantity.value, quantity.unit, unit)
    )


def _boolean(_: ColumnReading, text: str) -> float:
    return _BOOLEAN.get(text[:8].casefold(), _or_nan(plain_number(text)))


def _time(reading: ColumnReading, text: str) -> float:
    written = moment(text)
    if written is None:
        plain = plain_number(text)
        if plain is None and reading.commas and (quantity := numeral(text, commas=True)):
            plain = quantity.value
        return math.nan if plain is None else reading.number_of(plain)
    return written.day_first if reading.day_first else written.month_first


def _any_number(reading: ColumnReading, text: str) -> float:
    """Read any number, in a column that had no value while its table settled."""
    value, quantity = _boolean(reading, text), numeral(text)
    return quantity.value if math.isnan(value) and quantity is not None else value


def _nothing(_: ColumnReading, __: str) -> float:
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


def judge(name: str, values: Sequence[Value]) -> ColumnReading:
    """Return how to read a column, judged by its first values.

    name: of the column, by which large numbers may be times.
    values: the first ones; None for a missing one.
    """
    numbers = [value for value in values if isinstance(value, float)]
    texts = list[str]()
    for value in values:
        if isinstance(value, str) and not _ANY_TEXT.is_missing(value):
            plain = plain_number(value.strip())
            if plain is None:
                texts.append(value.strip())
            else:
                numbers.append(plain)
    if not texts:
        return _judge_numbers(name, numbers)
    given = [text for text in texts if text[:16].casefold() not in MISSING_BESIDE]
    for recognise in (_as_boolean, _as_time, _as_duration, _as_number):
        reading = recognise(given, numbers)
        if reading is not None:
            return _as_serials(name, reading, [*map(reading.number, given), *numbers])
    return _judge_texts(texts, numbers)


def like_a_time(name: str) -> bool:
    """Return whether a name is like that of a column of times."""
    return len(name) <= _LONGEST_CATEGORY and bool(_TIME_NAME.search(name))


def _is_date_name(name: str) -> bool:
    return len(name) <= _LONGEST_CATEGORY and bool(_DATE_NAME.search(name))


def _judge_numbers(name: str, numbers: Sequence[float]) -> ColumnReading:
    if not numbers:
        return EMPTY
    if like_a_time(name) and all(epoch(value) is not None for value in numbers):
        return ColumnReading("time", "seconds, or parts of them, since 1970, and named like a time")
    if like_a_time(name) and all(date_of_digits(value) is not None for value in numbers):
        return ColumnReading("time", "dates such as 20250301, and named like a time", _DATES)
    if _is_date_name(name) and all(date_of_serial(value) is not None for value in numbers):
        return ColumnReading("time", _SERIALS_WHY, _SERIALS)
    if _are_codes(numbers):
        why = (
            f"all of the first {len(numbers)} values are different whole numbers of as many digits"
        )
        return ColumnReading("identifier", why)
    return NUMBER


def _are_codes(numbers: Sequence[float]) -> bool:
    """Return whether long whole numbers name something, as numbers of cards and articles do.

    Moments, and numbers that count up or down, say when or how much.
    """
    least, largest = min(numbers), max(numbers)
    if len(numbers) < _LEAST_IDENTIFIERS or least < LEAST_CODE or largest > _LIMIT_OF_CODES:
        return False
    if not all(map(float.is_integer, numbers)) or len(set(numbers)) < len(numbers):
        return False
    as_long = len(f"{least:.0f}") == len(f"{largest:.0f}")
    in_order = list(numbers) in (sorted(numbers), sorted(numbers, reverse=True))
    return as_long and not in_order and any(epoch(number) is None for number in numbers)


def _as_boolean(texts: Sequence[str], numbers: Sequence[float]) -> ColumnReading | None:
    if not texts or not all(text[:8].casefold() in _BOOLEAN for text in texts):
        return None
    if not all(number in (0.0, 1.0) for number in numbers):
        return None
    return ColumnReading("boolean", "all values say yes or no")


def _as_time(texts: Sequence[str], numbers: Sequence[float]) -> ColumnReading | None:
    written = [time for time in map(moment, texts) if time is not None]
    epochs = sum(epoch(number) is not None for number in numbers)
    count = len(texts) + len(numbers)
    if not written or len(written) + epochs < NEARLY_ALL * count:
        return None
    day_first, ordered = _date_order(texts)
    why = f"{len(written) + epochs} of {count} values are dates or times"
    if ordered:
        why += f", the {'day' if day_first else 'month'} first"
    return ColumnReading("time", why, day_first=day_first, zone=_zone(texts), ordered=ordered)


def _zone(texts: Sequence[str]) -> float:
    """Return the seconds by which most times, as they are written, are ahead of UTC."""
    zones = Counter(time.zone for time in map(moment, texts) if time is not None)
    return max(zones, key=zones.__getitem__, default=0.0)


def _date_order(texts: Sequence[str]) -> tuple[bool, bool]:
    """Return whether days come first in dates, and whether some date has shown it.

    If none has, months come first in dates with slashes, as in 3/1/2025, and days in others.
    """
    orders = Counter(time.order for time in map(moment, texts) if time is not None)
    if orders["day"] or orders["month"]:
        return orders["day"] > orders["month"], True
    return not any("/" in text for text in texts), False


def first_order(texts: Iterable[str]) -> str:
    """Return "day" or "month" by the first unambiguous date; "" if there is none."""
    for text in texts:
        # If the year comes first, the month follows.
        if len(text) <= _LONGEST_CATEGORY and not text.lstrip()[:4].isdecimal():
            written = moment(text)
            if written is not None and written.order:
                return written.order
    return ""


def _as_duration(texts: Sequence[str], numbers: Sequence[float]) -> ColumnReading | None:
    """Recognise durations and times of day, of which some have several parts."""
    read = [text for text in texts if duration(text) is not None]
    count = len(texts) + len(numbers)
    if len(read) + len(numbers) < NEARLY_ALL * count or not any(map(is_composed, read)):
        return None
    unit = _MINUTES_FIRST if any(map(has_three_parts, texts)) else _HOURS_FIRST
    why = f"{len(read)} of {count} values are durations or times of day, read as seconds"
    return ColumnReading("number in text", why, unit)


def _as_number(texts: Sequence[str], numbers: Sequence[float]) -> ColumnReading | None:
    quantities = [(text, numeral(text)) for text in texts]
    units = Counter(quantity.unit for _, quantity in quantities if quantity is not None)
    if not units:
        return None
    commas = any(quantity.comma for _, quantity in quantities if quantity is not None)
    commas = commas and not any(_has_point(text) for text in texts)
    grouped = _are_grouped(texts, commas)
    # The most frequent unit; numbers without one ("#") have it, too.
    unit = max((unit for unit in units if unit != "#"), key=units.__getitem__, default="#")
    unit = positive(unit, units)
    alike = {each for each in units if each == "#" or measure_alike(each, unit)}
    read = sum(units[each] for each in alike) + len(numbers)
    count = len(texts) + len(numbers)
    others = {
        text for text, quantity in quantities if quantity is None or quantity.unit not in alike
    }
    few = 2 * read > count and len(others) <= _MOST_OTHERS
    if read < NEARLY_ALL * count and not few:
        return None
    shown = " ".join(unit.split("#")).strip()
    around = f" with {shown!r} around the digits" if shown else ""
    others_alike = sorted(alike.difference(("#", unit)), key=lambda each: (-units[each], each))
    if others_alike:
        converted_ones = ", ".join(each.replace("#", "") for each in others_alike[:_MOST_UNITS])
        around += f", into which {converted_ones} is converted"
    why = f"{read} of {count} values are numbers{around}"
    return ColumnReading("number in text", why, unit, commas, grouped=grouped)


def _has_point(text: str) -> bool:
    """Return whether a text certainly has a decimal point."""
    return bool(re.search(r"\d\.\d{1,2}(?!\d)|\d\.\d{4,}|,\d{3}\.", text))


def _are_grouped(texts: Sequence[str], commas: bool) -> bool:
    """Return whether the points of numbers separate thousands.

    It takes decimal commas, or other numbers with separated thousands, to say so: 90.637 alone may
    have three decimals. commas: whether there are decimal commas.
    """
    pointed = [text for text in texts if _POINT.search(text)]
    if not pointed or not all(map(GROUPED.search, pointed)):
        return False
    return commas or any(map(_CERTAINLY_GROUPED.search, texts))


def _as_serials(name: str, reading: ColumnReading, numbers: Sequence[float]) -> ColumnReading:
    """Return the reading of numbers with decimal commas, or of days that are written so."""
    if reading.unit != "#" or not reading.commas or not _is_date_name(name):
        return reading
    serials = all(date_of_serial(number) is not None for number in numbers)
    return ColumnReading("time", _SERIALS_WHY, _SERIALS, commas=True) if serials else reading


def _judge_texts(texts: Sequence[str], numbers: Sequence[float]) -> ColumnReading:
    count = len(texts) + len(numbers)
    different = len(set(texts))
    mean_words = sum(len(words_of(text)) for text in texts) / len(texts)
    spaced = sum(" " in text for text in texts)
    if 2 * len(numbers) > count:
        return ColumnReading("number", f"{len(numbers)} of {count} values are numbers")
    if count >= _LEAST_IDENTIFIERS and different == count and _are_unique_codes(texts):
        return ColumnReading("identifier", f"all of the first {count} values are different codes")
    long = max(map(len, texts)) > _LONGEST_CATEGORY
    placed = _placed(texts)
    if placed and _mean_words_but_numbers(texts) < _WORDS:
        why = f"{_share(different, count)}; each of the {len(placed)} numbers in them is learned"
        return ColumnReading("category", why, units=placed)
    if units := _measured_in_several(texts):
        why = f"numbers with several units, learned one by one: {', '.join(units)}"
        return ColumnReading("category", why, units=units)
    if long or (mean_words >= _WORDS and different >= _DIFFERENT * count):
        why = f"{mean_words:.0f} words in a value, {_share(different, count)}"
        return ColumnReading(
            "text",
            why,
            wordy=True,
            words=_frequent_words(texts),
            units=_frequent_units(texts) or placed,
        )
    if count >= _LEAST_IDENTIFIERS and different == count and not spaced:
        return ColumnReading(
            "identifier", f"all of the first {count} values are different single words"
        )
    wordy, units = _share_words(set(texts)), _frequent_units(texts)
    items = _frequent_words(texts) if _are_lists(set(texts)) else ()
    why, folded = _share(different, count), _are_spelled_variously(set(texts))
    if folded:
        why += f", {len(set(map(spelling, texts)))} of them apart from case and spaces"
    return ColumnReading("category", why, wordy=wordy, folded=folded, words=items, units=units)


def spelling(text: str) -> str:
    """Return a category as those are written that differ in case or spaces only.

    In texts such as mW the case says something: all letters, or the first ones, must be of one.
    """
    text = " ".join(text.split())
    plain = text.islower() or text.isupper() or text.istitle() or text == text.capitalize()
    return text.casefold() if plain else text


def _are_spelled_variously(different: Collection[str]) -> bool:
    """Return whether some categories of three letters and more differ in case or spaces only."""
    spelled = Counter(spelling(text) for text in different if len(text) <= _LONGEST_CATEGORY)
    return any(
        count > 1 and sum(map(str.isalpha, text)) >= _LEAST_LETTERS
        for text, count in spelled.items()
    )


def _mean_words_but_numbers(texts: Sequence[str]) -> float:
    return sum(not word.isdecimal() for text in texts for word in words_of(text)) / len(texts)


def _placed(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the places of numbers in texts that have as many, and the same around them: 118/83.

    Places that have one number are left out.
    """
    placed = [numbers for text in texts if (numbers := placed_numbers(text))]
    if len(texts) < _FIRST_TEXTS or len(placed) < NEARLY_ALL * len(texts):
        return ()
    ((n_places, as_many),) = Counter(map(len, placed)).most_common(1)
    ((_, alike),) = Counter(map(without_digits, texts)).most_common(1)
    if min(as_many, alike) < NEARLY_ALL * len(texts):
        return ()
    different = {
        place: len({numbers.get(place) for numbers in placed})
        for place in (f"#{k}" for k in range(1, n_places + 1))
    }
    places = tuple(place for place in different if different[place] > 1)
    # Several units say more than places.
    n_units = sum(map(bool, _frequent_units(texts)))
    return places if n_units < 2 and max(different.values()) >= _LEAST_NUMBERS else ()


def _measured_in_several(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the units of texts that are numbers with units which measure different things.

    Of mmol/L and mg/dL, as laboratories write, the substance decides what one is in the other.
    """
    if len(texts) < _FIRST_TEXTS:
        return ()
    values: dict[str, list[float]] = {}  # of each unit
    for text in texts:
        quantity, numbers = numeral(text), amounts(text)
        # Another word beside the unit says more than what is measured, as in "1 shared bath".
        if quantity is not None and len(numbers) == 1 and " " not in quantity.unit.strip("# "):
            ((unit, number),) = numbers.items()
            values.setdefault(unit, []).append(number)
    having = sorted(
        (unit for unit in values if len(set(values[unit])) >= _LEAST_NUMBERS),
        key=lambda unit: (-len(values[unit]), unit),
    )[:_MOST_UNITS]
    if len(having) < 2 or sum(len(values[unit]) for unit in having) < NEARLY_ALL * len(texts):
        return ()
    return tuple(having)


def _are_lists(different: set[str]) -> bool:
    """Return whether values are lists of a few items, as answers are that choose several."""
    lists = [
        [item.strip().casefold() for item in _ITEMS.split(text)]
        for text in different
        if len(text) <= _LONGEST_CATEGORY
    ]
    several = sum(len(items) > 1 for items in lists)
    return 2 * several >= len(different) >= 2 * len({item for items in lists for item in items})


def _are_unique_codes(texts: Sequence[str]) -> bool:
    """Return whether texts are single codes without words in common, as UUIDs are."""
    if all(map(_TELEPHONE.fullmatch, texts)):
        return True
    return all(map(_UNIQUE_CODE.fullmatch, texts)) and not _share_words(set(texts))


def _frequent_words(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the most frequent words that at least three texts have, and at least a tenth lack.

    Of words that occur in the same texts only the first counts.
    """
    having: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        for word in dict.fromkeys(words_of(text)):
            having.setdefault(word, []).append(i)
    if len(texts) < _FIRST_TEXTS:
        return ()
    different = {tuple(rows): word for word, rows in reversed(having.items())}
    most = NEARLY_ALL * len(texts)
    frequent = [rows for rows in different if _LEAST_TEXTS <= len(rows) <= most]
    frequent.sort(key=lambda rows: (-len(rows), rows))
    return tuple(different[rows] for rows in frequent[:_MOST_WORDS])


def _frequent_units(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the units of numbers in texts, the most frequent first; "" for numbers without one."""
    if len(texts) < _FIRST_TEXTS:
        return ()
    numbers: dict[str, list[float]] = {}
    for text in texts:
        for unit, number in amounts(text).items():
            numbers.setdefault(unit, []).append(number)
    frequent = [
        unit
        for unit, values in numbers.items()
        if len(values) >= _UNIT_SHARE * len(texts) and len(set(values)) >= _LEAST_NUMBERS
    ]
    return tuple(sorted(frequent, key=lambda unit: (-len(numbers[unit]), unit))[:_MOST_UNITS])


def _share_words(different: set[str]) -> bool:
    """Return whether values have a word in common with some others, on average."""
    values = Counter(word for text in different for word in set(words_of(text)))
    shared = sum(count for count in values.values() if 1 < count < len(different))
    return shared >= len(different)


def _share(different: int, count: int) -> str:
    return f"{different} of the first {count} values differ"


def given_kind(kind: Kind, values: Sequence[Value]) -> ColumnReading:
    """Return how to read a column whose kind is given; the rest is judged by its values."""
    texts = [value.strip() for value in values if isinstance(value, str)]
    texts = [text for text in texts if not _ANY_TEXT.is_missing(text)]
    reading = ColumnReading(kind, "given in the model's spec", fixed=True)
    if kind == "time":
        day_first, ordered = _date_order(texts)
        return reading._replace(day_first=day_first, zone=_zone(texts), ordered=ordered)
    if kind == "number":
        judged = _as_number(texts, ())
        counts = Counter(quantity.unit for quantity in map(numeral, texts) if quantity is not None)
        unit = max(counts, key=counts.__getitem__, default="#")
        commas, grouped = (judged.commas, judged.grouped) if judged else (False, False)
        return reading._replace(kind="number in text", unit=unit, commas=commas, grouped=grouped)
    if kind == "category":
        return reading._replace(folded=_are_spelled_variously(set(texts)))
    if kind == "text":
        words, units = _frequent_words(texts), _frequent_units(texts)
        return reading._replace(wordy=True, words=words, units=units)
    return reading


def reading_from_plain(plain: Sequence[Any]) -> ColumnReading:
    """Return a reading from its saved fields. Raises ValueError for invalid ones."""
    kind, why, unit, *flags, words, units, zone, ordered = plain
    known = kind in KINDS and isinstance(why, str) and isinstance(unit, str)
    if not known or len(flags) != _FLAGS or not all(type(flag) is bool for flag in flags):
        raise ValueError("the saved columns have readings of no known kind")
    if len(words) > _MOST_WORDS or not all(isinstance(word, str) for word in words):
        raise ValueError("the saved columns have words that no rows make")
    if len(units) > _MOST_UNITS or not all(isinstance(unit, str) for unit in units):
        raise ValueError("the saved columns have units that no rows make")
    if type(ordered) is not bool or type(zone) is not float or not abs(zone) <= _FARTHEST_ZONE:
        raise ValueError("the saved columns have dates that no rows make")
    fields = (kind, why, unit, *flags, tuple(words), tuple(units), zone, ordered)
    return ColumnReading._make(fields)

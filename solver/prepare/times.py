"""Moments of time in texts, as seconds since 1970 in UTC.

    2025-03-01T04:12:00Z   2025-03-01 04:12:00.5+01:00   20250301   2025/3/1
    03/01/2025 4:12 PM     1.3.2025    1-Mar-25          March 1, 2025    Sat, 01 Mar 2025 04:12 GMT
    01/Mar/2025:04:12:00 +0100   2025-03   03/2025   Mar 2025   Sat Mar 1 04:12:00 UTC 2025
    3. März 2025     1er mars 2025     3 de marzo de 2025     03-Dez-24

Months have the names of English, German, French, Spanish, Portuguese, Italian and Dutch, in full or
as far as no other month begins so.
Years are those of the Gregorian calendar, 0 to 9999; two digits are 1970 to 2069. Without a zone it
is UTC, so what a column says does not depend on where a server stands. Whether the day or the month
comes first in 03/01/2025 is for the column to say (`judging`).
"""

import re
from functools import lru_cache
from typing import NamedTuple
from unicodedata import combining, normalize

# No moment is written longer.
LONGEST = 48
DAY = 86_400.0
# The moments that a number may be: years 2001 to 2100 as seconds, or as milli-, micro- or
# nanoseconds.
FIRST_EPOCH, LAST_EPOCH = 9.7e8, 4.2e9
# The dates that whole numbers such as 20250301 may be, and the days, counted from 1899-12-30.
_FIRST_DATE, _LAST_DATE = 19_000_101, 20_991_231
_FIRST_SERIAL, _END_OF_SERIALS, _SERIAL_OF_1970 = 14_611, 73_051, 25_569
_PER_SECOND = (1.0, 1e3, 1e6, 1e9)
# Zones by the letters that logs have, in hours ahead of UTC. Those that mean several are left out.
_ZONES = {"Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "BST": 1, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2}
_ZONES |= {"EEST": 3, "MSK": 3, "JST": 9, "EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6}
_ZONES |= {"PST": -8, "PDT": -7}

# The names of each month, without accents; an abbreviation of one that is no beginning of it.
_MONTHS = (
    "january januar janvier enero janeiro gennaio januari",
    "february februar fevrier febrero fevereiro febbraio februari",
    "march maerz marz mars marzo marco maart mrz mrt",
    "april avril abril aprile",
    "may mai mayo maio maggio mei",
    "june juni juin junio junho giugno",
    "july juli juillet julio julho luglio",
    "august aout agosto augustus",
    "september septembre septiembre setembro settembre",
    "october oktober octobre octubre outubro ottobre",
    "november novembre noviembre novembro",
    "december dezember decembre diciembre dezembro dicembre",
)
_MONTH = r"(?P<month>[^\W\d_]{3,10})\.?"
_CLOCK = (
    r"(?:(?:[T\s,]+|:)(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?"
    r"\s*(?P<zone>z|" + "|".join(_ZONES) + r"|[+-]\d{2}:?\d{2}|[+-]\d{2})?"
)
_DAYNAME = r"(?:[^\W\d_]{2,10}\.?,?\s+)?"
_ORDINAL = "(?:st|nd|rd|th|er|[.º°])?"
_FORMS = tuple(
    (order, re.compile(pattern if "hour" in pattern else pattern + _CLOCK))
    for order, pattern in (
        ("ymd", r"(?P<year>\d{4})[-/.](?P<a>\d{1,2})[-/.](?P<b>\d{1,2})"),
        ("ymd", r"(?P<year>(?:19|20)\d{2})(?P<a>[01]\d)(?P<b>[0-3]\d)(?=$|[T\s])"),
        ("?", r"(?P<a>\d{1,2})(?P<gap>[-/.])(?P<b>\d{1,2})(?P=gap)(?P<year>\d{4}|\d{2})"),
        (
            "named",
            rf"{_DAYNAME}(?P<a>\d{{1,2}}){_ORDINAL}[-/\s]+(?:de\s+)?{_MONTH}[-/,\s]+(?:de\s+)?"
            r"(?P<year>\d{4}|\d{2})",
        ),
        ("named", rf"{_DAYNAME}{_MONTH}\s+(?P<a>\d{{1,2}}){_ORDINAL},?\s+(?P<year>\d{{4}})"),
        ("named", rf"{_DAYNAME}{_MONTH}\s+(?P<a>\d{{1,2}}){_CLOCK}\s+(?P<year>\d{{4}})"),
        # Months without a day, which are their first.
        ("ymd", r"(?P<year>(?:19|20)\d{2})[-/](?P<a>0[1-9]|1[0-2])"),
        ("ymd", r"(?P<a>0?[1-9]|1[0-2])[-/.](?P<year>(?:19|20)\d{2})"),
        ("named", rf"{_MONTH}[-\s]+(?P<year>(?:19|20)\d{{2}})"),
    )
)


class WrittenMoment(NamedTuple):
    """A moment in a text, in which the day or the month may come first.

    Attributes:
        order: "day" or "month" if the text is a date only with that one first; "" if both readings
            are dates, or the text leaves no choice.
        month_first: seconds since 1970 if the month comes first.
        day_first: the same if the day comes first. Both are equal where there is no choice.
        zone: the seconds that the clock that was read is ahead of UTC.
    """

    order: str
    month_first: float
    day_first: float
    zone: float = 0.0


def moment(text: str) -> WrittenMoment | None:
    """Return the moment that a text says; None for another text."""
    if not 6 <= len(text) <= LONGEST or not any(map(str.isdigit, text)):
        return None
    return _moment(text.strip())


@lru_cache(4096)  # the cells of a block are read, encoded and shown
def _moment(text: str) -> WrittenMoment | None:
    for order, form in _FORMS:
        match = form.fullmatch(text)
        if match is not None:
            return _read_date(order, match)
    return None


def _read_date(order: str, match: "re.Match[str]") -> WrittenMoment | None:
    """Return the moment of a text that matches one of `_FORMS`; None if it is no date."""
    clock = _clock(match)
    if clock is None:
        return None
    parts, zone = match.groupdict(), _offset(match["zone"])
    digits = match["year"]
    year, a, b = int(digits), int(parts.get("a", 1)), int(parts.get("b", 1))
    if len(digits) == 2:
        year += 2000 if year < 70 else 1900
    if order == "named":
        month = _MONTH_OF.get(_without_accents(match["month"]))
        day = None if month is None else _days(year, month, a)
        return None if day is None else _without_order(DAY * day + clock, zone)
    month_first = _days(year, a, b)
    if order == "ymd":
        return None if month_first is None else _without_order(DAY * month_first + clock, zone)
    day_first = _days(year, b, a)
    if month_first is None and day_first is None:
        return None
    if month_first is None:
        order, month_first = "day", day_first
    elif day_first is None:
        order, day_first = "month", month_first
    else:
        order = ""
    assert month_first is not None
    assert day_first is not None
    return WrittenMoment(order, DAY * month_first + clock, DAY * day_first + clock, zone)


def _without_order(seconds: float, zone: float) -> WrittenMoment:
    return WrittenMoment("", seconds, seconds, zone)


def _without_accents(name: str) -> str:
    letters = normalize("NFD", name.casefold())
    return "".join(letter for letter in letters if not combining(letter))


def _months_by_name() -> dict[str, int]:
    """Return the month of each name, and of each of its beginnings that no other month has."""
    months: dict[str, set[int]] = {}
    for month, names in enumerate(_MONTHS, 1):
        for name in names.split():
            for length in range(3, len(name) + 1):
                months.setdefault(name[:length], set()).add(month)
    return {name: min(of) for name, of in months.items() if len(of) == 1}


_MONTH_OF = _months_by_name()


def _clock(match: "re.Match[str]") -> float | None:
    """Return the seconds after midnight in UTC; None if there is no such time of day."""
    hour, minute, second = [int(each or 0) for each in match.group("hour", "minute", "second")]
    part, half, zone = match.group("part", "half", "zone")
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half[0] in "pP" else 0)
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and minute + second > 0):
        return None
    seconds = 3600.0 * hour + 60.0 * minute + second
    if part:
        seconds += float(f"0.{part}")
    return seconds - _offset(zone)


def _offset(zone: str | None) -> float:
    """Return how many seconds a zone is ahead of UTC."""
    if not zone:
        return 0.0
    if zone[0] not in "+-":
        return 3600.0 * _ZONES[zone.upper()]
    digits = zone[1:].replace(":", "")
    seconds = 3600.0 * int(digits[:2]) + 60.0 * int(digits[2:] or 0)
    return -seconds if zone[0] == "-" else seconds


_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _days(year: int, month: int, day: int) -> int | None:
    """Return the days from 1970-01-01 to a date (Hinnant's `days_from_civil`), if there is one."""
    if not 1 <= month <= 12 or not 1 <= day <= _LENGTHS[month - 1]:
        return None
    if month == 2 and day == 29 and (year % 4 or (year % 100 == 0 and year % 400)):
        return None
    y = year - (month <= 2)
    era, year_of_era = divmod(y, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    leap_days = year_of_era // 4 - year_of_era // 100
    return era * 146_097 + year_of_era * 365 + leap_days + day_of_year - 719_468


def epoch(value: float) -> float | None:
    """Return a number of seconds, or of parts of them, since 1970 as seconds; None if too far."""
    for parts in _PER_SECOND:
        if parts * FIRST_EPOCH <= value <= parts * LAST_EPOCH:
            return value / parts
    return None


def date_of_digits(value: float) -> float | None:
    """Return the moment of a date that is a number, such as 20250301; None for another number."""
    if not _FIRST_DATE <= value <= _LAST_DATE or value != int(value):
        return None
    days = _days(int(value) // 10_000, int(value) // 100 % 100, int(value) % 100)
    return None if days is None else DAY * days


def date_of_serial(value: float) -> float | None:
    """Return the moment of a day as spreadsheets count them; None before 1940 and after 2099."""
    if not _FIRST_SERIAL <= value < _END_OF_SERIALS:
        return None
    return float(round(DAY * (value - _SERIAL_OF_1970)))

"""Units of one measure, and durations: "1.5 GB" and "300 MB" are both bytes, "1h 23m" is 4980 s.

    factor_between("#mb", "#gb")  0.001      duration("6h 18m 43s")  22723.0
    factor_between("#day", "#days")  1.0     duration("05:38:32")    20312.0
    factor_between("#dr", "#cr")  -1.0       factor_between("#S", "#H")  -1.0  (Soll and Haben)
    factor_between("eur#", "#€")  1.0        converted(50.0, "#°f", "#°c")  10.0
    duration("12:30pm")  45000.0             duration("3pm")  54000.0
    duration("5:13 /km")  18780.0  (hours first, unless its column has three parts)

Units are written as in `numerals.Numeral`. "m" is a metre beside "km", a minute beside "h", and a
month beside "y".
"""

import re
from collections.abc import Collection
from functools import lru_cache

# No duration is written longer.
_LONGEST = 40
_SECONDS = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usec"), 1e-6),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), 604_800.0),
    **dict.fromkeys(("mo", "mos", "month", "months"), 2_629_746.0),
    **dict.fromkeys(("y", "yr", "yrs", "year", "years"), 31_556_952.0),
}
_BYTES = {"b": 1.0, "byte": 1.0, "bytes": 1.0}
_BYTES |= {f"{letter}b": 1000.0**k for k, letter in enumerate("kmgtp", 1)}
_BYTES |= {f"{letter}i{b}": 1024.0**k for k, letter in enumerate("kmgtp", 1) for b in ("", "b")}
_MEASURES = (
    _SECONDS,
    _BYTES,
    {"mg": 1e-3, "g": 1.0, "kg": 1e3, "oz": 28.349523125, "lb": 453.59237, "lbs": 453.59237},
    {
        **{"mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3, "yd": 0.9144},
        **dict.fromkeys(("in", "inch", "inches"), 0.0254),
        **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
        **dict.fromkeys(("mi", "mile", "miles"), 1609.344),
    },
    {"m/s": 3.6, **dict.fromkeys(("km/h", "kmh", "kph"), 1.0), "mph": 1.609344, "kn": 1.852},
    {"pa": 1.0, "hpa": 1e2, "mbar": 1e2, "kpa": 1e3, "bar": 1e5, "psi": 6894.757},
    {"w": 1.0, "kw": 1e3, "gw": 1e9},
    {"mv": 1e-3, "v": 1.0, "kv": 1e3},
    {"µa": 1e-6, "μa": 1e-6, "ma": 1e-3, "a": 1.0},
    {"j": 1.0, "kj": 1e3},
    {"ml": 1e-3, "cl": 1e-2, "l": 1.0},
    {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
    {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9},
    {"wh": 1.0, "kwh": 1e3, "mwh": 1e6, "gwh": 1e9},
)
_LEAST_PLURAL = 3
_YEARS = frozenset(("y", "yr", "yrs", "year", "years"))
# What a degree of each scale is in degrees Celsius, and where its 0 is.
_TEMPERATURES = {
    **dict.fromkeys(("°c", "c", "℃", "degc", "deg c"), (1.0, 0.0)),
    **dict.fromkeys(("°f", "f", "℉", "degf", "deg f"), (5.0 / 9.0, -160.0 / 9.0)),
}
# Signs of currencies, and the codes that mean the same.
_CODES = {"€": "eur", "$": "usd", "£": "gbp", "¥": "jpy", "₹": "inr"}
# Periods that amounts of money are for, and their months.
_MONTHS = dict.fromkeys(("p.a.", "p.a", "pa", "a", "y", "yr", "year", "annum", "jahr", "an"), 12.0)
_MONTHS |= dict.fromkeys(("p.m.", "p.m", "pm", "mo", "mth", "month", "monat", "mois"), 1.0)
_PERIOD = re.compile(
    r"(?:^|\s*(?:/|per\s|a\s|pro\s|par\s|\s))\s*("
    + "|".join(map(re.escape, sorted(_MONTHS, key=len, reverse=True)))
    + r")$"
)
# Units of debts, of the south and of the west, and the units whose numbers they are less than 0 of.
_OPPOSITES = {"#dr": ("#cr",), "#S": ("#H", "#n"), "#s": ("#n",), "#w": ("#e",)}
_CLOCK = re.compile(
    r"(?:(?P<days>\d{1,6})\s*d(?:ays?)?,?\s+)?(?P<first>\d{1,4}):(?P<second>\d{2})"
    r"(?::(?P<third>\d{2}(?:[.,]\d{1,9})?))?\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
)
# What follows a duration that something takes, such as a kilometre.
_EACH = re.compile(r"\s*(?:min|h)?\s*/\s*[^\W\d_]{1,8}$")
_HOUR = re.compile(r"(?P<hour>0?[1-9]|1[0-2])\s*(?P<half>[AaPp]\.?[Mm]\.?)")
_PART = r"(\d{1,12}(?:[.,]\d{1,9})?)\s*([^\W\d_]{1,12})\.?"
_PARTS = re.compile(rf"(?:{_PART}(?:\s*,\s*|\s+and\s+|\s*))+")
_ONE_PART = re.compile(_PART)
_ISO = re.compile(r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?")


def is_bytes(unit: str) -> bool:
    """Return whether a unit is one of bytes, beside which a B is a byte and no billion."""
    return unit[1:] in _BYTES


def positive(unit: str, units: Collection[str]) -> str:
    """Return the unit among some whose numbers are above 0 where those of `unit` are below it."""
    return next((each for each in _OPPOSITES.get(unit, ()) if each in units), unit)


@lru_cache(1024)
def factor_between(unit: str, other: str) -> float | None:
    """Return how many of another unit a unit is; None if they do not measure the same."""
    if unit == other:
        return 1.0
    if other in _OPPOSITES.get(unit, ()) or unit in _OPPOSITES.get(other, ()):
        return -1.0
    if (factor := _factor_of_money(unit, other)) is not None:
        return factor
    if unit[:1] != "#" or other[:1] != "#":
        return None
    unit, other = unit[1:].strip().casefold(), other[1:].strip().casefold()
    if "m" in (unit, other) and not _YEARS.isdisjoint((unit, other)):
        return 1.0 / 12.0 if unit == "m" else 12.0
    for factors in _MEASURES:
        if unit in factors and other in factors:
            return factors[unit] / factors[other]
    long = min(len(unit), len(other)) >= _LEAST_PLURAL
    return 1.0 if long and (unit == f"{other}s" or other == f"{unit}s") else None


def _factor_of_money(unit: str, other: str) -> float | None:
    """Return how many of another unit one of the same currency is; None for other units.

    Amounts without a period are those of the period that others have: 90 € p.a. beside EUR 80.
    """
    (currency, months), (other_currency, other_months) = _money(unit), _money(other)
    if currency is None or currency != other_currency:
        return None
    return other_months / months if months and other_months else 1.0


def _money(unit: str) -> tuple[str | None, float]:
    """Return the code of the currency that a unit is, before or after digits; None for others.

    Also return the months of its period; 0 without one.
    """
    around = unit.replace("#", "").strip().casefold()
    period = _PERIOD.search(around)
    if period is not None:
        around = around[: period.start()].strip()
    around = _CODES.get(around, around)
    months = 0.0 if period is None else _MONTHS[period[1]]
    return (around, months) if around in _CODES.values() else (None, 0.0)


def measure_alike(unit: str, other: str) -> bool:
    """Return whether two units measure the same."""
    return factor_between(unit, other) is not None or converted(0.0, unit, other) is not None


def converted(value: float, unit: str, other: str) -> float | None:
    """Return a quantity in another unit; None if that does not measure the same."""
    factor = factor_between(unit, other)
    if factor is not None:
        return factor * value
    scale, wanted = (_TEMPERATURES.get(each[1:].strip()) for each in (unit, other))
    if scale is None or wanted is None:
        return None
    return (scale[0] * value + scale[1] - wanted[1]) / wanted[0]


def is_composed(text: str) -> bool:
    """Return whether a duration has several parts, as 05:38:32, 3pm and 1h 23m have."""
    if ":" in text or text[:1] == "P" or _HOUR.fullmatch(text):
        return True
    return len(_ONE_PART.findall(text)) > 1


def has_three_parts(text: str) -> bool:
    """Return whether a text is like 1:05:38, with hours, minutes and seconds."""
    match = _CLOCK.fullmatch(text) if len(text) <= _LONGEST else None
    return match is not None and match["third"] is not None


def duration(text: str, *, minutes_first: bool = False) -> float | None:
    """Return the seconds of a duration or after midnight; None for another text.

    minutes_first: whether 4:05 is in minutes and seconds, as in a column that has 1:05:38, too.
    """
    if len(text) > _LONGEST or not any(map(str.isdigit, text)):
        return None
    sign = -1.0 if text[0] in "-−" else 1.0
    text = text.lstrip("-−+").strip()
    if "/" in text and ":" in text:
        text = _EACH.sub("", text)
    clock, hour = _CLOCK.fullmatch(text), _HOUR.fullmatch(text)
    if clock is not None:
        seconds = _clock_seconds(clock, minutes_first)
    elif hour is not None:
        seconds = 3600.0 * _hour_of_day(int(hour["hour"]), hour["half"])
    elif text[0] == "P":
        seconds = _iso_seconds(text)
    else:
        seconds = _sum_of_parts(text)
    return None if seconds is None else sign * seconds


def _clock_seconds(match: "re.Match[str]", minutes_first: bool) -> float | None:
    days, first, second, third, half = match.groups()
    hours, minutes, seconds = int(first), int(second), float((third or "0").replace(",", "."))
    if minutes > 59 or seconds >= 60.0:
        return None
    if half:
        if not 1 <= hours <= 12:
            return None
        hours = _hour_of_day(hours, half)
    elif minutes_first and third is None:
        hours, minutes, seconds = 0, hours, float(minutes)
    return 86_400.0 * int(days or 0) + 3600.0 * hours + 60.0 * minutes + seconds


def _hour_of_day(hour: int, half: str) -> int:
    """Return an hour of 1 to 12 in the first or the second half of a day as one of 0 to 23."""
    return hour % 12 + (12 if half[0] in "pP" else 0)


def _iso_seconds(text: str) -> float | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (float((p or "0").replace(",", ".")) for p in match.groups())
    return 86_400.0 * days + 3600.0 * hours + 60.0 * minutes + seconds


def _sum_of_parts(text: str) -> float | None:
    """Return the sum of parts, each shorter than the one before, such as 1h 23m."""
    if _PARTS.fullmatch(text) is None:
        return None
    total, before = 0.0, float("inf")
    for digits, unit in _ONE_PART.findall(text):
        factor = _SECONDS.get(unit.casefold(), before)
        if factor >= before:
            return None
        total, before = total + factor * float(digits.replace(",", ".")), factor
    return total

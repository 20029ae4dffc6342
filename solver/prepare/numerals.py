"""Numbers in texts: what people write around digits is a unit, a currency, a sign or a multiplier.

    "$1,234.50"  1234.5       "55.0%"   55.0        "(1,200)"  -1200.0
    "1.37kg"     1.37         "2.5M"    2.5e6       "735-739"  737.0 (the middle of a range)
    "12,5 EUR"   12.5         "1.234,5" 1234.5      "36 months" 36.0
    "£41k - £58k" 49500.0     "1.234,56-" -1234.56  "40°30' S"  -40.5
    "1 1/2 cups" 1.5          "3/4"     0.75
    "6+ years"   6.0          "<0.5 mg" 0.5

It says what one text may be. Whether a column is meant so is for `judging`.
"""

import math
import re
from functools import lru_cache
from typing import NamedTuple

# No quantity is written longer; so a text of a megabyte costs nothing.
LONGEST = 40
_LONGEST_UNIT = 16
# Numbers are looked for in so many characters of a text.
MOST_CHARACTERS = 4096
# Letters before digits are a name with a number, such as "user 12", unless they are a currency.
_CURRENCIES = frozenset(
    re.findall(
        r"\w+",
        "aud brl cad chf cny czk dkk eur gbp hkd huf idr ils inr jpy krw mxn myr nok nzd php pln "
        "rmb ron rub sek sgd thb try twd usd vnd zar r rs kr",
    )
)
# Letters that name a currency beside its sign, as in A$; without it, C-1005 is a name.
_WITH_A_SIGN = frozenset(("a", "c", "hk", "nz", "us", "r"))
_SIGNS = frozenset("$€£¥₹")

_DIGITS = r"\d+(?:[.,'’\u00a0\u202f ]\d+)*(?:[eE][+-]?\d{1,3})?|[.,]\d+"
_NUMERAL = re.compile(
    rf"(?P<open>\()?(?P<before>[^\d()+\-−.,]*)(?P<sign>[+\-−]?)(?P<after_sign>[^\d()+\-−.,]*)"
    rf"(?P<digits>{_DIGITS})(?:\s*(?:-|–|to)\s*(?P<other>{_DIGITS}))?(?P<unit>[^\d()]*)(?P<close>\))?"
)
# What separates the ends of a range that have units of their own.
_BETWEEN = re.compile(r"\s+(?:-|–|—|to)\s+|(?<=[\w%])[-–](?=[$€£¥₹])|(?<=[%kKM])[-–](?=\d)")
# Degrees of latitude or longitude, or with minutes.
_ANGLE = re.compile(
    r"(?P<sign>[+\-−]?)(?P<degrees>\d{1,3}(?:\.\d+)?)\s*°"
    r"(?:\s*(?P<minutes>\d{1,2}(?:\.\d+)?)\s*['′’](?:\s*(?P<seconds>\d{1,2}(?:\.\d+)?)\s*(?:[\"″”]|''))?)?"
    r"\s*(?P<side>[NSEW])?",
    re.IGNORECASE,
)
# Thousands do not begin with 0.
_POINT_DECIMAL = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_COMMA_DECIMAL = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")
_SPACED_THOUSANDS = re.compile(r"\d{1,3}(?:['’\u00a0\u202f ]\d{3})+(?:[.,]\d+)?")
# Digits whose points may separate thousands.
GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:\.\d{3})+(?![\d.])")
# A fraction, perhaps after a whole number, as on rulers and in recipes.
_FRACTION = re.compile(r"(?:(\d{1,6})[ -])?(\d{1,2})/(2|3|4|8|16|32)(?![\d/.,])")
# Numbers of a text that consists of some, such as 118/83: a decimal one is not part of 10.0.0.1.
_PLACED = re.compile(r"(?<![\d.])\d{1,15}\.\d{1,15}(?![\d.])|\d{1,15}")
MOST_PLACED = 3  # addresses of networks have four
# A small m is a metre, and a small b or t no multiplier either.
_AMOUNT = re.compile(r"(?<![^\W_])(\d+(?:,\d{3})*(?:\.\d+)?)(?:[\s-]?([^\W\d_]{1,12}|[%\"'+°]))?")
# What a finite number in a data file begins and ends with, of ASCII.
_SPACES = " \t\n\v\f\r\x1c\x1d\x1e\x1f"
_BEGINS, _ENDS = frozenset("0123456789+-." + _SPACES), frozenset("0123456789." + _SPACES)
_PLAIN = re.compile(r"\d*\.?\d*")
_MULTIPLIERS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_MULTIPLIERS |= dict.fromkeys(("tsd", "Tsd", "tsd.", "Tsd.", "thousand", "Thousand"), 1e3)
_MULTIPLIERS |= {"million": 1e6, "Million": 1e6, "billion": 1e9, "Billion": 1e9}
_MULTIPLIERS |= dict.fromkeys(("mn", "Mn", "mio", "Mio", "Mio."), 1e6)
_MULTIPLIERS |= dict.fromkeys(("bn", "Bn", "mrd", "Mrd", "Mrd."), 1e9)
# A small m or b is a million or a billion only beside a currency.
_OF_MONEY = {"m": 1e6, "b": 1e9}
_MINUS = {"-", "−"}
# A minus after the digits, alone or before a currency, as some programs write debts.
_MINUS_AFTER = re.compile(r"[-−](?:$|\s+|(?=[$€£¥₹]))")
# What says that a number is a bound or is rounded, before and after it, apart from signs.
_BOUND_BEFORE = re.compile(
    r"[<>≤≥~≈=]+|(?:less|more) than|under|over|up to|at (?:least|most)|about"
)
_BOUND_AFTER = re.compile(r"^\+|\b(?:and|or) (?:up|more|over|above|older|less)\b|\bplus$")
# Units whose case says what they mean: S and H mark debts and credits, s and h are durations.
_WITH_CASE = frozenset("SH")


class Numeral(NamedTuple):
    """A number in a text.

    Attributes:
        value: the number.
        unit: what stands around the digits, with # in their place; the same for all cells of a
            column that has one unit.
        comma: whether a decimal comma was read that could also have separated thousands.
        factor: the multiplier, of a million or so, that is in the value.
    """

    value: float
    unit: str
    comma: bool = False
    factor: float = 1.0

    @property
    def is_amount(self) -> bool:
        """Whether nothing is around the digits but signs and currencies, such as $, % or EUR."""
        before, _, after = self.unit.partition("#")
        return _is_currency(before) and _is_currency(after)


def plain_number(text: str) -> float | None:
    """Return the finite number that a text is, as data files have them; None for another text."""
    if text[:1] not in _BEGINS or text[-1:] not in _ENDS:
        return None
    if len(text) > LONGEST or "_" in text or not text.isascii():
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def text_within(text: str, unit: str) -> str | None:
    """Return what a unit surrounds in a text if that is plain digits; else None.

    It is as `numeral` reads it, at a tenth of the cost.

    unit: see `Numeral`.
    """
    before, _, after = unit.partition("#")
    if len(text) > LONGEST or not (text.startswith(before) and text.endswith(after)):
        return None
    digits = text[len(before) : len(text) - len(after)].rstrip(" ")
    plain = digits.isascii() and digits.replace(".", "", 1).isdigit()
    # A point at the end may be one of the unit's.
    return digits if plain and digits[-1] != "." and after not in _MULTIPLIERS else None


def numeral(text: str, *, commas: bool = False, grouped: bool = False) -> Numeral | None:
    """Return the number in a text; None if it is not one number with something around it.

    commas: whether 1,234 is a decimal number, as in a column that shows decimal commas.
    grouped: whether the point of 1.234 separates thousands.
    """
    if len(text) > LONGEST:
        return None
    if grouped:
        text = GROUPED.sub(lambda match: match[0].replace(".", ""), text)
    text = _with_fraction(text.strip())
    match = _NUMERAL.fullmatch(text)
    if "°" in text and (angle := _ANGLE.fullmatch(text)) and (angle["minutes"] or angle["side"]):
        return Numeral(_degrees(angle), "#°")
    if match is None:
        return _range(_BETWEEN.split(text), commas)
    opened, before, sign, after_sign, digits, last, unit, closed = match.groups()
    if not sign and (minus := _MINUS_AFTER.match(unit)):
        sign, unit = "-", unit[minus.end() :]
    around = _around(before + after_sign, unit)
    if around is None or (opened is None) != (closed is None):
        return None
    value, comma = _number(digits, commas)
    if value is None:
        return None
    if last is not None:
        other, other_comma = _number(last, commas)
        if other is None or other < value or sign:
            return None
        value, comma = 0.5 * (value + other), comma or other_comma
    negative = (opened is not None) != (sign in _MINUS)
    value = around.factor * (-value if negative else value)
    return Numeral(value, around.unit, comma, around.factor) if math.isfinite(value) else None


def _with_fraction(text: str) -> str:
    """Return a text with its fraction, if it begins with one, as a decimal number."""
    match = _FRACTION.match(text) if "/" in text else None
    if match is None or int(match[2]) >= int(match[3]):
        return text
    return f"{int(match[1] or 0) + int(match[2]) / int(match[3])}{text[match.end() :]}"


def _range(ends: list[str], commas: bool) -> Numeral | None:
    """Return the middle of a range whose two ends have the same unit, or one of them none."""
    read = [numeral(end, commas=commas) for end in ends] if len(ends) == 2 else []
    if not read or read[0] is None or read[1] is None or read[0].value > read[1].value:
        return None
    low, high = read[0], read[1]
    if low.unit != high.unit and "#" not in (low.unit, high.unit):
        return None
    unit = high.unit if low.unit == "#" else low.unit
    return Numeral(0.5 * (low.value + high.value), unit, low.comma or high.comma, high.factor)


def _degrees(angle: "re.Match[str]") -> float:
    """Return an angle in degrees, negative in the south and in the west."""
    degrees, minutes, seconds = (
        float(x or 0) for x in angle.group("degrees", "minutes", "seconds")
    )
    size = degrees + minutes / 60.0 + seconds / 3600.0
    opposite = (angle["side"] or "").upper() in {"S", "W"}
    return -size if opposite != (angle["sign"] in _MINUS) else size


def amounts(text: str) -> dict[str, float]:
    """Return the first number before each unit in a text, and the first without one, by unit.

    "300.0HP 3.7L V6" has 300.0 hp and 3.7 l: the digits of V6 are part of a word.
    """
    first = dict[str, float]()
    for digits, unit in _AMOUNT.findall(text[:MOST_CHARACTERS].casefold()):
        if unit not in first and len(digits) <= LONGEST:
            first[unit] = float(digits.replace(",", ""))
    return first


def placed_numbers(text: str) -> dict[str, float]:
    """Return the numbers of a text that consists of 2 to MOST_PLACED, under #1, #2 and so on.

    "118/83" has 118 and 83, "2024-W05" has 2024 and 5.
    """
    numbers = _PLACED.findall(text) if len(text) <= LONGEST else []
    if not 2 <= len(numbers) <= MOST_PLACED:
        return {}
    return {f"#{place}": float(digits) for place, digits in enumerate(numbers, 1)}


def without_digits(text: str) -> str:
    """Return what is around the numbers of a short text, without spaces."""
    return "".join(_PLACED.sub("#", text[:LONGEST]).split())


class _Around(NamedTuple):
    """What stands around digits."""

    unit: str  # see `Numeral`
    factor: float  # what it multiplies them by


def _around(before: str, after: str) -> _Around | None:
    """Return what stands around digits, before and after them; None if it makes them no number."""
    short = len(before) <= _LONGEST_UNIT and len(after) <= _LONGEST_UNIT
    return _short_around(before, after) if short else None


@lru_cache(1024)
def _short_around(before: str, after: str) -> _Around | None:
    before = _BOUND_BEFORE.sub("", before.casefold()).strip()
    after = _BOUND_AFTER.sub("", after).strip()
    if not _may_precede(before):
        return None
    unit, factor = _multiplier(after, money=bool(before) and _is_currency(before))
    unit = unit if unit in _WITH_CASE else unit.casefold()
    return _Around(f"{before}#{unit}", factor)


def _may_precede(before: str) -> bool:
    """Return whether a text before digits may be a currency or a sign."""
    letters = "".join(filter(str.isalpha, before)).lower()
    return not letters or letters in _CURRENCIES or _beside_a_sign(letters, before)


def _beside_a_sign(letters: str, around: str) -> bool:
    return letters in _WITH_A_SIGN and not _SIGNS.isdisjoint(around)


def _is_currency(around: str) -> bool:
    """Return whether a text beside digits is a sign, or a currency: $, %, EUR or A$, but not A."""
    letters = "".join(filter(str.isalpha, around))
    if not letters or _beside_a_sign(letters, around):
        return True
    return letters in _CURRENCIES and (len(letters) == 3 or letters != around)


def _multiplier(unit: str, *, money: bool) -> tuple[str, float]:
    """Return a unit without its multiplier, and that. money: whether a currency comes before."""
    if money and unit in _OF_MONEY:
        return "", _OF_MONEY[unit]
    first, _, rest = unit.partition(" ")
    return (
        (rest, _MULTIPLIERS[first]) if first in _MULTIPLIERS and _is_currency(rest) else (unit, 1.0)
    )


def _number(digits: str, commas: bool) -> tuple[float | None, bool]:
    """Return digits with separators as a number, and whether a decimal comma alone was read."""
    if _PLAIN.fullmatch(digits):
        return float(digits), False
    mantissa, _, exponent = digits.lower().partition("e")
    comma = False
    if (commas or exponent) and "." not in mantissa and mantissa.count(",") == 1:
        mantissa, comma = mantissa.replace(",", "."), True
    elif _POINT_DECIMAL.fullmatch(mantissa):
        mantissa = mantissa.replace(",", "")
    elif _COMMA_DECIMAL.fullmatch(mantissa):
        mantissa = mantissa.replace(".", "").replace(",", ".")
    elif _SPACED_THOUSANDS.fullmatch(mantissa):
        mantissa = re.sub(r"['’\u00a0\u202f ]", "", mantissa).replace(",", ".")
    elif mantissa.count(",") == 1 and "." not in mantissa:
        mantissa, comma = mantissa.replace(",", "."), True
    elif not _PLAIN.fullmatch(mantissa):
        return None, False
    try:
        return float(f"{mantissa}e{exponent}" if exponent else mantissa), comma
    except ValueError:
        return None, False

"""Bounds on the numbers in a saved state, as tables with a line for each kind of array.

By default, floats must be finite and integers not below zero. A line allows an array more or less:
in `IN_ROWS` for the rows of a model, otherwise beside the checks of the head that saves it. Shapes
and types are checked before.
"""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from wolfstream.service.heads.saved_arrays import Arrays, WrongArrays

# Not every larger integer is a 64-bit float; no stream has so many samples.
_MOST_SAMPLES = 2.0**53


@dataclass(frozen=True)
class Numbers:
    """A closed interval of numbers.

    Attributes:
        least, most: the bounds.
        missing: whether NaN may stand for a missing number.
        below, above: whether -inf and inf are allowed besides the interval.
    """

    least: float = -math.inf
    most: float = math.inf
    missing: bool = False
    below: bool = False
    above: bool = False


# (pattern of an array's name, bounds on its numbers or a tuple of bounds, one for each element).
# The first pattern that matches applies. Without one, the defaults above do.
Bounds: TypeAlias = tuple[tuple[str, Numbers | tuple[Numbers, ...]], ...]

ANY = Numbers()
COUNT = Numbers(0.0, _MOST_SAMPLES)
PLACE = Numbers(-1.0, _MOST_SAMPLES)  # an index; -1 for none
FROM_ZERO = Numbers(0.0)
POSITIVE = Numbers(5e-324)
WIDTH = Numbers(1e-300, 1e100)  # gamma of a kernel
SHARE = Numbers(0.0, 1.0)
MAY_BE_MISSING = Numbers(missing=True)
# Sums of rows. No row has a larger norm than 1e50, so squares of these sums do not overflow.
SUM = Numbers(-1e150, 1e150)
# Means of logarithms of floats.
LOGARITHM = Numbers(-1000.0, 1000.0)
# Rounding may leave weights on the simplex slightly below zero.
WEIGHT = Numbers(-1e-9)

# Rows, their preparation, and the facts about their columns.
IN_ROWS: Bounds = (
    (r"prepare_(window_)?(weight|square|count)", FROM_ZERO),
    (r"prepare_unit", FROM_ZERO),
    (r"prepare_before", MAY_BE_MISSING),
    (r"prepare_differences_(square|between|excess|since_square|before_square)", FROM_ZERO),
    (r"prepare_differences_(mean|block_mean)", LOGARITHM),
    (r"prepare_differences_(logarithms|block_count|blocks|alarms|since_count)", COUNT),
    (r"columns_missing", COUNT),
    (r"columns_revised", PLACE),
)


def check_numbers_in(arrays: Arrays, bounds: Bounds) -> None:
    """Raise WrongArrays for an array with numbers out of bounds."""
    for name, array in arrays.items():
        wanted = _numbers_in(name, array.dtype.kind, bounds)
        each = wanted if isinstance(wanted, tuple) else (wanted,)
        parts = array if isinstance(wanted, tuple) else (array,)
        if len(parts) != len(each) or not all(map(_are_within, parts, each)):
            raise WrongArrays(f"its array {name} has numbers that no learner holds")


@lru_cache(4096)  # bounded, because clients choose the names in files
def _numbers_in(name: str, kind: str, bounds: Bounds) -> Numbers | tuple[Numbers, ...]:
    for pattern, numbers in bounds:
        if re.fullmatch(pattern, name):
            return numbers
    return ANY if kind == "f" else COUNT


def _are_within(array: object, numbers: Numbers) -> bool:
    values = np.asarray(array)
    if values.dtype.kind not in "biuf":
        return False
    with np.errstate(invalid="ignore"):
        within = (values >= numbers.least) & (values <= numbers.most) & np.isfinite(values)
    for allowed, is_such in (
        (numbers.missing, np.isnan),
        (numbers.below, np.isneginf),
        (numbers.above, np.isposinf),
    ):
        if allowed:
            within |= is_such(values)
    return bool(within.all())

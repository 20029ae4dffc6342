"""Bounds on the numbers in a saved state, as a table with a line for each kind of array.

A learner saves finite numbers, and counts that are not below zero. Where an array may hold anything
else, or less, a line here says so. Shapes and types are checked by each kind of head.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from wolfstream.service.heads.saved_arrays import Arrays, WrongArrays

# Beyond it, not every whole number is a 64-bit float; no stream has so many samples.
_MOST_SAMPLES = 2.0**53


@dataclass(frozen=True)
class Numbers:
    """A closed interval of numbers.

    Attributes:
        least, most: the bounds.
        missing: whether NaN may stand for a number that there is not.
        below, above: whether -inf and inf are allowed beside the interval.
    """

    least: float = -math.inf
    most: float = math.inf
    missing: bool = False
    below: bool = False
    above: bool = False


_ANY = Numbers()
_COUNT = Numbers(0.0, _MOST_SAMPLES)
_PLACE = Numbers(-1.0, _MOST_SAMPLES)  # an index; -1 for none
_FROM_ZERO = Numbers(0.0)
_POSITIVE = Numbers(5e-324)
_WIDTH = Numbers(1e-300, 1e100)  # of a kernel, as its gamma
_SHARE = Numbers(0.0, 1.0)
_MAY_BE_MISSING = Numbers(missing=True)
# Sums of rows. No row is longer than 1e50, so the squares of these sums do not overflow.
_SUM = Numbers(-1e150, 1e150)
# Rounding takes weights on the simplex a little below zero.
_WEIGHT = Numbers(-1e-9)

_MOMENTS = r"(prepare|hashed|lags|target)_(window_)?(weight|square|count)"
# pattern of an array's name within its head -> its numbers; a tuple has one for each element. The
# first pattern that matches decides. Other arrays hold any finite floats, or counts.
_OF_ARRAYS: tuple[tuple[str, Numbers | tuple[Numbers, ...]], ...] = (
    # Rows, their preparation, and the facts about their columns.
    (_MOMENTS, _FROM_ZERO),
    (r"(prepare|hashed|lags|target)_unit", _FROM_ZERO),
    (r"prepare_before", _MAY_BE_MISSING),
    (r"prepare_differences_(square|between|excess|since_square)", _FROM_ZERO),
    (r"prepare_differences_(logarithms|block_count|blocks|changes|since_count)", _COUNT),
    (r"columns_missing", _COUNT),
    (r"columns_revised", _PLACE),
    # The bank.
    (r"last", _MAY_BE_MISSING),
    (r"losses_recent", _MAY_BE_MISSING),
    (r"losses_count", _COUNT),
    (r"neighbours_(weight|counts)", _FROM_ZERO),
    (r"endless\d+(_own)?_evidence", (_FROM_ZERO, _COUNT)),
    (r"endless\d+_mean", (_ANY, _COUNT)),
    (r"endless\d+_(table|advantage)", _FROM_ZERO),
    (r"(endless\d+|bayes_earlier|combination)_curvature", _POSITIVE),
    (r"combination_(square|memory)", _FROM_ZERO),
    (r"combination_(kept|weight)", _SHARE),
    (r"combination_step", _FROM_ZERO),
    (r"target_units", (_ANY, _POSITIVE, _FROM_ZERO, _ANY, _ANY)),
    (r"target_scale", (_ANY, _POSITIVE)),
    (r"early_codes", _MAY_BE_MISSING),
    (r"early_weight", _FROM_ZERO),
    (r"(diagonal|texts)_(G|square)", _FROM_ZERO),
    (r"diagonal_entries", _COUNT),
    # Trees that join it.
    (r"trees_(losses_recent|window_X|window_words)", _MAY_BE_MISSING),
    (r"trees_losses_count", _COUNT),
    (r"trees_counts", _PLACE),  # -1 where no fit goes on
    (r"trees_window_weight", _POSITIVE),
    (r"trees_forest_bins_edges", Numbers(above=True)),
    (r"trees_forest_(fresh|residual|past)_right", Numbers(0.0, 2.0**64)),
    (r"trees_forest_unit", _POSITIVE),
    (r"trees_mixing_curvature", _POSITIVE),
    (r"trees_mixing_(square|memory|error|step)", _FROM_ZERO),
    (r"trees_mixing_weight", _SHARE),
    # Labels before a row, which join it.
    (r"past_losses_recent", _MAY_BE_MISSING),
    (r"past_losses_count", _COUNT),
    (r"past_recent", Numbers(0.0, 2.0**64)),
    (r"past_last", _PLACE),
    (r"past_(table|share|stay|scale)", _FROM_ZERO),
    (r"past_combination_curvature", _POSITIVE),
    (r"past_(combination|mixture)_(square|memory|error|step)", _FROM_ZERO),
    (r"past_(combination|mixture)_weight", _SHARE),
    # ASSET.
    (r"(course\d+_)?progress_steps", _COUNT),
    (r"(course\d+_)?(progress_\w+|square_norm|weight)", _FROM_ZERO),
    (r"(course\d+_)?(direction|rest|before|b|b_sum|b_before|scale|scale_sum|moved|factor)", _SUM),
    (r"lost", _FROM_ZERO),
    # The working set.
    (r"auto_gamma", _WIDTH),
    (r"widths", (_WIDTH, Numbers(1.0), _COUNT)),
    (r"search_errors", Numbers(0.0, above=True)),
    (r"q|alpha", _WEIGHT),
    (r"sign", Numbers(-1.0, 1.0)),
    (r"codes|numbers|moved_said", _PLACE),
    (r"moved_(table|advantage)", _FROM_ZERO),
    # Calibration. The score of a class of which nothing was known is -inf; squares may overflow.
    (r"(past_)?calibration_(scores|waiting)", Numbers(-1e150, 1e150, below=True)),
    (r"(past_)?calibration_widths", Numbers(0.0, above=True)),
)


def check_numbers_in(arrays: Arrays, heads: Mapping[str, object]) -> None:
    """Raise WrongArrays for an array with numbers that no learner saves.

    Args:
        arrays: of a model's state.
        heads: whose names prefix the names of their arrays.
    """
    for name, array in arrays.items():
        head, _, own = name.partition(".")
        wanted = _numbers_in(own if head in heads else name, array.dtype.kind)
        each = wanted if isinstance(wanted, tuple) else (wanted,)
        parts = array if isinstance(wanted, tuple) else (array,)
        if len(parts) != len(each) or not all(map(_are_within, parts, each)):
            raise WrongArrays(f"its array {name} has numbers that no learner holds")


@cache
def _numbers_in(name: str, kind: str) -> Numbers | tuple[Numbers, ...]:
    for pattern, numbers in _OF_ARRAYS:
        if re.fullmatch(pattern, name):
            return numbers
    return _ANY if kind == "f" else _COUNT


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

"""A head in a model file, and checks of its arrays: types, shapes, indices, and bounds on numbers.

Compiled code does not check indices: a model file with an index out of range could make it read or
write any memory. A checksum proves that a file is unchanged, not who wrote it. Arrays have the
names that learners give them. Each check raises WrongArrays.

Types and shapes are checked first, then numbers, by tables with a line for each kind of array. By
default, floats must be finite and integers not below zero. A line allows an array more or less: in
`IN_ROWS` for the rows of a model, otherwise beside the checks of the head that saves it.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


class WrongArrays(ValueError):
    """Arrays of a saved state are invalid, or do not fit each other; the message says which."""


class SavedHead(NamedTuple):
    """A head as read from a model file, not yet trusted.

    Attributes:
        plain: the plain data of its state.
        arrays: the arrays of its state, without its calibration.
        blank: the arrays of a new head of the same spec.
        n_classes: the number of known classes; None for regression.
        dimension: the dimension of the model's rows; None before the first row.
        width: the width of prepared rows; None if they are sparse.
        texts: the number of texts and codes of a row that the head crosses.
        sparse: whether the model's rows are sparse.
        sequence: the model's sequence.
    """

    plain: Mapping[str, Any]
    arrays: Arrays
    blank: Arrays
    n_classes: int | None
    dimension: int | None
    width: int | None
    texts: int
    sparse: bool
    sequence: int

    @property
    def stored_dimension(self) -> int | None:
        """The dimension of stored rows; a set that forgets adds their time as one more."""
        if self.dimension is None or "widths" not in self.arrays:
            return self.dimension
        return self.dimension + 1


def n_saved_rows(name: str, arrays: Arrays) -> int:
    """Return the number of rows, dense or sparse, saved under a name."""
    if name in arrays:
        return len(arrays[name])
    require(f"{name}_indptr" in arrays, name, "is missing")
    return len(arrays[f"{name}_indptr"]) - 1


def check_numbers(name: str, arrays: Arrays, below: int | None, least: int = 0) -> None:
    """Check for integers of at least `least` and, if `below` is given, less than that."""
    array = arrays[name]
    whole = array.dtype.kind == "i"
    require(whole and (array.size == 0 or array.min() >= least), name, "has numbers below zero")
    if below is not None and array.size:
        require(array.max() < below, name, f"has numbers above {below - 1}")


def check_floats(name: str, arrays: Arrays) -> None:
    """Check that an array exists and holds 64-bit floats."""
    require(name in arrays, name, "is missing")
    require(is_double(name, arrays), name, "is not of 64-bit floats")


def is_double(name: str, arrays: Arrays) -> bool:
    """Return whether an array holds 64-bit floats."""
    return bool(arrays[name].dtype == np.float64)


def check_shape(name: str, arrays: Arrays, shape: tuple[int | None, ...]) -> None:
    """Check a shape, in which None stands for any length."""
    present = shape_of(name, arrays)
    fits = len(present) == len(shape) and all(
        wanted is None or length == wanted for length, wanted in zip(present, shape, strict=True)
    )
    require(fits, name, f"has the shape {present}")


def shape_of(name: str, arrays: Arrays) -> tuple[int, ...]:
    """Return the shape of an array."""
    require(name in arrays, name, "is missing")
    return arrays[name].shape


def require(holds: bool | np.bool_, name: str, what: str) -> None:
    """Raise WrongArrays, "its array NAME WHAT", unless a condition holds."""
    if not holds:
        raise WrongArrays(f"its array {name} {what}")


def check_names(arrays: Arrays, blank: Arrays) -> None:
    """Check for the names of a new head's arrays, and no others."""
    if differing := arrays.keys() ^ blank.keys():
        name = min(differing)
        raise WrongArrays(f"its array {name} is {'missing' if name in blank else 'unknown'}")


def check_weights(name: str, arrays: Arrays, samples: int) -> None:
    """Check for a number above zero for each of the samples."""
    check_shape(name, arrays, (samples,))
    check_floats(name, arrays)
    weight = arrays[name]
    require(bool((np.isfinite(weight) & (weight > 0.0)).all()), name, "is not above zero")


def check_counts(arrays: Arrays, n: int, n_classes: int | None) -> None:
    """Check `counts`: n integers, the first the number of classes if that is given."""
    check_shape("counts", arrays, (n,))
    check_numbers("counts", arrays, None)
    same = n_classes is None or int(arrays["counts"][0]) == n_classes
    require(same, "counts", "does not have the number of classes")


def check_sparse(name: str, arrays: Arrays, dimension: int | None) -> None:
    """Check sparse rows: their bounds, columns and numbers."""
    ends, indices = arrays[f"{name}_indptr"], arrays.get(f"{name}_indices")
    require(indices is not None, f"{name}_indices", "is missing")
    assert indices is not None
    check_shape(f"{name}_width", arrays, (1,))
    check_numbers(f"{name}_width", arrays, None)
    width = int(arrays[f"{name}_width"][0])
    require(width <= (dimension or 0), f"{name}_width", "exceeds the dimension of the model")
    check_shape(f"{name}_indptr", arrays, (None,))
    check_numbers(f"{name}_indptr", arrays, len(indices) + 1)
    ordered = len(ends) > 0 and ends[0] == 0 and bool((np.diff(ends) >= 0).all())
    require(ordered and ends[-1] <= len(indices), f"{name}_indptr", "is not in order")
    check_shape(f"{name}_indices", arrays, (None,))
    require(indices.dtype == np.int32, f"{name}_indices", "is not of 32-bit integers")
    check_numbers(f"{name}_indices", arrays, width)
    check_shape(f"{name}_data", arrays, (len(indices),))
    check_floats(f"{name}_data", arrays)


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

"""The task of regression, where y are numbers, its targets (`samples.tasks`)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wolfstream.service.errors import refuse_all
from wolfstream.service.samples.raw_arrays import read_raw_vector
from wolfstream.service.samples.values import NUMERIC, listed, not_what, wrong_in
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.read_cells import number_of

SCORE = "mae"
BASELINES: Sequence[str] = ("running_mean", "last_value")
TYPE: type = np.ndarray
PACKED: type = bytes

# The squares of errors of such numbers can still be summed.
LARGEST_TARGET = 1e100


def read(y: Any, single: bool) -> Float64Array:
    """Return targets, (n,) float64, also from texts with a unit or a currency.

    single: whether y is one target, not a list.

    Raises InvalidSamples.
    """
    if isinstance(y, dict):
        raw = read_raw_vector(y, "/y", "numbers")
        with np.errstate(invalid="ignore"):  # a signalling NaN is refused like any other
            targets = raw.astype(np.float64)
        if (np.abs(targets) <= LARGEST_TARGET).all():
            return targets
        y = targets.tolist()
    else:
        y = listed(y, single)
        if str in set(map(type, y)):
            y = list(map(_number_of, y))
        if set(map(type, y)) <= NUMERIC and all(map(_is_in_range, y)):
            return np.array(y, np.float64)
    wrong = wrong_in(y, single, _problem)
    refuse_all("the model's task is regression: each of y must be a number", wrong)
    raise AssertionError("numbers were refused, but each of them is valid")


def _number_of(value: Any) -> Any:
    """Return the number of a text such as "$1,234.50", and any other value unchanged."""
    number = number_of(value) if type(value) is str else None
    return value if number is None else number


def _is_in_range(value: float) -> bool:
    return -LARGEST_TARGET <= value <= LARGEST_TARGET


def recorded(y: Float64Array) -> Float64Array:
    """Return the numbers as a record has them: aligned, in order, little-endian."""
    return np.ascontiguousarray(y, "<f8")


def pack(y: Float64Array) -> bytes:
    """Return the numbers as bytes."""
    return recorded(y).tobytes()


def unpack(plain: bytes) -> Float64Array:
    """Invert `pack`; a copy, because compiled code would be compiled again for read-only arrays."""
    return np.frombuffer(plain, "<f8").copy()


def plain(y: Float64Array) -> list[float]:
    """Return the numbers as a list."""
    numbers: list[float] = y.tolist()
    return numbers


def take(y: Float64Array, indices: Sequence[int]) -> Float64Array:
    """Return the numbers at some indices."""
    return y[indices]


def join(parts: Sequence[Float64Array]) -> Float64Array:
    """Return the numbers of all parts."""
    return np.concatenate(parts)


def key(number: float) -> float:
    """Return the number, which has one spelling."""
    return number


def are_answers(values: Sequence[Any]) -> bool:
    """Return whether all values are valid targets, or predictions, which may be None."""
    return all(y is None or (type(y) in NUMERIC and math.isfinite(y)) for y in values)


def losses(prediction: Sequence[Any], y: Float64Array) -> Float64Array:
    """Return the absolute error of each prediction; NaN where there is none."""
    return np.abs(np.array([np.nan if p is None else p for p in prediction], np.float64) - y)


def n_classes(_: Float64Array) -> int:
    """Return 1, because one function learns all numbers."""
    return 1


def example(n: int, _: Sequence[Any]) -> Float64Array:
    """Return some numbers."""
    return np.arange(n, dtype=np.float64) % 3.0


def _problem(value: Any) -> str:
    """Return what is wrong with a target; "" if it is valid."""
    if type(value) not in NUMERIC:
        return f"must be a number{not_what(value)}"
    if _is_in_range(value):
        return ""
    finite = type(value) is int or math.isfinite(value)
    return f"is beyond {LARGEST_TARGET:g}" if finite else "is NaN or infinite"

"""The types of numerical arrays that signatures name; shapes are in the docstrings."""

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
# float32, or float64 where a kernel's values do not fit float32 (`kernels.precision`).
FloatArray = NDArray[Any]

# Making this many Python numbers of an array takes about a millisecond.
_PART = 1 << 15


def plain(array: NDArray[Any]) -> Float64Array:
    """Return the array as compiled code takes it: float64, contiguous and writeable.

    It takes read-only arrays, or ones that are not contiguous, for other types.
    """
    flags = array.flags
    if array.dtype == np.float64 and flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, np.float64, ("C", "W"))


def to_lists(array: NDArray[Any]) -> list[Any]:
    """Return `array.tolist()`; of a large array made in parts, between which other threads run."""
    if array.size <= _PART or array.ndim < 2:
        whole: list[Any] = array.tolist()
        return whole
    step = max(_PART * len(array) // array.size, 1)
    parts = (array[start : start + step].tolist() for start in range(0, len(array), step))
    return list(chain.from_iterable(parts))

"""The types of numerical arrays that signatures name; shapes are in the docstrings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
# float32, or float64 where a kernel's values do not fit float32 (`kernels.precision`).
FloatArray = NDArray[Any]


def plain(array: NDArray[Any]) -> Float64Array:
    """Return the array as compiled code takes it: float64, contiguous and writeable.

    It takes read-only arrays, or ones that are not contiguous, for other types.
    """
    flags = array.flags
    if array.dtype == np.float64 and flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, np.float64, ("C", "W"))

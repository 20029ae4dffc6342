"""The types of numerical arrays that signatures name; shapes are in the docstrings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
# float32, or float64 where a kernel's values do not fit float32 (`kernels.precision`).
FloatArray = NDArray[Any]

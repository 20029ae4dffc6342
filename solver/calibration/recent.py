"""The last columns of a stream of numbers, as arrays that do not change."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound="np.generic[Any]")


def appended(recent: NDArray[T], columns: NDArray[T], most: int) -> NDArray[T]:
    """(rows, at most `most`): the columns so far and more of them, the oldest first and left out.

    A new array, so that views may share the one of before.
    """
    kept = recent[:, max(0, recent.shape[1] + columns.shape[1] - most) :]
    return np.concatenate([kept, columns[:, -most:]], axis=1)

"""The last columns of a stream, as immutable arrays."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound="np.generic[Any]")


def appended(recent: NDArray[T], columns: NDArray[T], most: int) -> NDArray[T]:
    """Return the last columns with further ones, oldest first; a new array, as views share the old.

    recent: (rows, m) the last columns so far.
    columns: (rows, n) further ones.
    most: how many columns are kept.
    """
    kept = recent[:, max(0, recent.shape[1] + columns.shape[1] - most) :]
    return np.concatenate([kept, columns[:, -most:]], axis=1)

"""Adds learners on texts to a bank that has learned rows without texts.

The other experts keep what they have learned. The new ones have learned nothing, and their weight
is that of every expert before the first sample.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PER_EXPERT = ("combination_", "losses_")


def with_experts(
    state: Mapping[str, NDArray[Any]], blank: Mapping[str, NDArray[Any]], at: int, count: int
) -> dict[str, NDArray[Any]]:
    """Return a bank's state with more experts.

    state: of the bank.
    blank: of a bank with these experts and as many classes that has learned nothing. Arrays with an
        axis of experts are longer in it.
    at: the number of the first new expert.
    count: how many experts are new.
    """
    grown = {**blank, **state}
    for name, array in state.items():
        shape = blank[name].shape if name.startswith(_PER_EXPERT) else array.shape
        axes = [axis for axis, n in enumerate(array.shape) if shape[axis] == n + count]
        if axes:
            wider = blank[name].copy()
            kept = [np.arange(length) for length in array.shape]
            for axis in axes:
                kept[axis] = np.delete(np.arange(wider.shape[axis]), np.arange(at, at + count))
            wider[np.ix_(*kept)] = array
            grown[name] = wider
    weight = grown["combination_weight"]
    grown["combination_weight"] = weight / weight.sum()
    return grown

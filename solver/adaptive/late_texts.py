"""Learners of texts for a bank that has learned rows without any: they come as new experts.

What the other learners know stays as it is. The new ones know nothing, and weigh what every expert
does before the first sample.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OF_EXPERTS = ("combination_", "losses_")


def with_experts(
    state: Mapping[str, NDArray[Any]], blank: Mapping[str, NDArray[Any]], at: int, count: int
) -> dict[str, NDArray[Any]]:
    """Return a bank's state with `count` more experts, the first of them at the place `at`.

    blank: the state of a bank that has them, as many classes, and no sample. The arrays that have
    an axis of experts are those that are longer there.
    """
    grown = {**blank, **state}
    for name, array in state.items():
        shape = blank[name].shape if name.startswith(_OF_EXPERTS) else array.shape
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

"""A head's calibration in its saved state, and in responses about numbers."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors import Untrained
from wolfstream.solver.calibration.values import ValueConfidence
from wolfstream.solver.stream.votes import HeadAnswer

_PREFIX = "calibration_"
NOT_JUDGED = (
    "the head has learned no sample that it had predicted before, so its certainty is unknown: "
    "teach it more samples"
)


def with_calibration(state: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a calibration's arrays under the names that they have in a head's state."""
    return {f"{_PREFIX}{name}": array for name, array in state.items()}


def calibration_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the calibration's arrays in a head's state; inverts `with_calibration`."""
    prefix = len(_PREFIX)
    return {name[prefix:]: array for name, array in arrays.items() if name.startswith(_PREFIX)}


def without_calibration(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the other arrays of a head's state."""
    return {name: array for name, array in arrays.items() if not name.startswith(_PREFIX)}


def deviations(past_errors: ValueConfidence, head_answer: HeadAnswer) -> dict[str, Any]:
    """Return `standard_deviation`: the head's own or, without one, that of its last errors.

    Raises Untrained if there are no errors yet.
    """
    deviation = head_answer.deviation
    if deviation is None:
        if not past_errors.samples:
            raise Untrained(NOT_JUDGED)
        deviation = np.full(len(head_answer.prediction), past_errors.deviation)
    return {"standard_deviation": deviation.tolist()}


def interval_of(
    past_errors: ValueConfidence, head_answer: HeadAnswer, confidence: float
) -> dict[str, Any]:
    """Return `prediction_interval`: two ends for each row; None until enough targets have come."""
    half = past_errors.half_width(confidence)
    ends = [
        [value - half, value + half] if isfinite(half) else [None, None]
        for value in head_answer.prediction.tolist()
    ]
    return {"prediction_interval": ends}

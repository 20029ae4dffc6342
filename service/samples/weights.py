"""Reads and checks the weights of samples in decoded bodies."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from wolfstream.service.errors import SampleError, refuse, refuse_all
from wolfstream.service.samples.raw_arrays import read_raw_vector
from wolfstream.service.samples.values import NUMERIC, not_what
from wolfstream.solver.rows.sample_weights import Weights

LEAST_WEIGHT, LARGEST_WEIGHT = 1e-6, 1e6


def read_weight(weight: Any, n: int) -> Weights:
    """Return the weights of n samples, (n,) float64; None if all are 1.

    weight: of the body, a number for all samples, or an array with one for each.

    Raises InvalidSamples.
    """
    if isinstance(weight, dict):
        weight = read_raw_vector(weight, "/weight", "weights").tolist()
    if not isinstance(weight, list):
        if problem := _problem(weight):
            refuse("/weight", problem)
        return None if weight == 1 else np.full(n, float(weight))
    if any(map(_problem, weight)):
        refuse_all("some weights are not valid", _wrong_in(weight))
    if len(weight) != n:
        refuse("/weight", f"has {len(weight)} weights for {n} samples")
    return None if set(weight) == {1} else np.array(weight, np.float64)


def _problem(weight: Any) -> str:
    """Return what is wrong with a weight; "" if it is valid."""
    if type(weight) not in NUMERIC:
        return f"must be a number{not_what(weight)}"
    if LEAST_WEIGHT <= weight <= LARGEST_WEIGHT:
        return ""
    if type(weight) is float and not math.isfinite(weight):
        return "is NaN or infinite"
    detail = f"must be from {LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
    return f"{detail}; leave out a sample that counts nothing" if weight == 0 else detail


def _wrong_in(weights: list[Any]) -> Iterator[SampleError]:
    for i, weight in enumerate(weights):
        if detail := _problem(weight):
            yield {"row": i, "pointer": f"/weight/{i}", "detail": detail}

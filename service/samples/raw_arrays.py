"""Raw arrays of a body, {"dtype", "shape", "data"}: little-endian numbers as bytes; weights."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from wolfstream.service.errors import SampleError, refuse, refuse_all
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


_DTYPES = {"<f4", "<f8", "<i8"}
_FIELDS = {"dtype", "shape", "data"}


def has_fields_of_raw(x: dict[Any, Any]) -> bool:
    """Return whether an object has the fields of a raw array."""
    return x.keys() == _FIELDS


def read_raw(raw: dict[str, Any], pointer: str) -> np.ndarray[Any, Any]:
    """Return a raw array as a copy, aligned and writable. Raises InvalidSamples."""
    if raw.keys() != _FIELDS:
        refuse(pointer, "must be an array, or {dtype, shape, data}")
    dtype, shape, data = raw["dtype"], raw["shape"], raw["data"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        refuse(f"{pointer}/dtype", 'must be "<f4", "<f8" or "<i8"')
    if (
        not isinstance(shape, list)
        or not 1 <= len(shape) <= 2
        or not all(type(length) is int and 0 <= length < 2**31 for length in shape)
    ):
        refuse(f"{pointer}/shape", "must be one or two lengths")
    if not isinstance(data, bytes):
        refuse(f"{pointer}/data", "must be bytes, which only MessagePack can carry")
    count = 1
    for length in shape:
        count *= length
    expected = count * np.dtype(dtype).itemsize
    if len(data) != expected:
        refuse(f"{pointer}/data", f"has {len(data)} bytes, dtype and shape need {expected}")
    return np.frombuffer(data, dtype).reshape(shape).copy()


def read_raw_vector(raw: dict[str, Any], pointer: str, elements: str) -> np.ndarray[Any, Any]:
    """Return a raw array of one dimension, as `read_raw` does.

    elements: what they are called in a refusal.

    Raises InvalidSamples.
    """
    vector = read_raw(raw, pointer)
    if vector.ndim != 1:
        refuse(pointer, f"a raw array of {elements} must have one dimension")
    return vector

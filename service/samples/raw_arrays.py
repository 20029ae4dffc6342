"""Raw arrays of a body, {"dtype", "shape", "data"}: little-endian numbers as bytes."""

from typing import Any

import numpy as np

from wolfstream.service.errors import refuse

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
